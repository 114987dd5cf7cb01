"""Whatever stands in the address, every page opens, says what is wrong, and works.

The README's tests try one address, the long ones some more. The whole attack, about 3,000 addresses, is one command:

    DPVIZ_ADDRESSES=280 pytest -n 0 -m long tests/pages/test_any_address.py
"""

import logging
import os

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest
from support import LIMIT
from support_pages import PAGES, opened, settled, with_open_folds

import dpviz
from dpviz.dashboard.frame import address
from dpviz.dashboard.jobs import pool

pytestmark = pytest.mark.usefixtures("fresh_pool")

COUNT = int(os.environ.get("DPVIZ_ADDRESSES", "4"))
FILES = {name or "first": path for name, path in PAGES.items()}
VALUES = ("", " ", *"0 1 2 -1 0.5 1e-9 1e6 1e400 -0 nan inf １ 1_0 0x10 true None []".split())
TEXTS = (*r"x a,b a&b=c#d %2e%2e ../../etc/passwd ';-- <b>x</b> $\frac{1}{2}$ :material/x: 👾".split(), "\u202e", "\x00")
PLAIN = ("teaching", "iris", "breast-cancer", "census-100")
DATASETS = (*PLAIN, "census-99", "census-１００", "data/x.csv", "upload-0123456789abcdef", "rows-0", "ä" * 300)
MODELS = ("logistic", "svm", "mlp", "mlp-2", "mlp-0", "mlp-99999999", "Logistic")


def knobs() -> list[str]:
    """Keys of all mechanisms' knobs."""
    return [f"{name}.{knob}" for name, cls in dpviz.list_mechanisms().items() for knob in cls.knobs()]


def queries() -> some.SearchStrategy[dict[str, str]]:
    """Addresses: keys that mean something with values that do and do not, and keys that mean nothing."""
    value = some.one_of(some.sampled_from(VALUES), some.sampled_from(TEXTS), some.text(max_size=8))
    keys = some.one_of(
        some.sampled_from(sorted({*address.FIELDS, *address.page_keys()})), some.sampled_from(knobs()), some.text(max_size=8)
    )
    listed = {
        "dataset": some.one_of(some.sampled_from(DATASETS), value),
        "mechanism": some.one_of(some.sampled_from(sorted(dpviz.list_mechanisms())), value),
        "model": some.one_of(some.sampled_from(MODELS), value),
        "seeds": some.sampled_from(("1", "2", "0", "x", "10001")),  # so that nothing takes long
    }
    known = some.fixed_dictionaries({}, optional=listed)
    return some.builds(lambda a, b: {**b, "seeds": "2", **a}, known, some.dictionaries(keys, value, max_size=5))


def check(name: str, query: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """Opens a page at an address and draws it once more."""
    caplog.clear()
    page = with_open_folds(AppTest.from_file(str(FILES["first"]), default_timeout=LIMIT))
    if name != "first":
        page.switch_page(f"pages/{FILES[name].name}")  # so that it knows the other pages
    for key, value in query.items():
        page.query_params[key] = value
    for _ in range(2):
        page.run()
        assert not page.exception, query
        assert page.title, query
        assert len(page.sidebar.children) > 0, query
    pool.pool().clear()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR], query


def test_an_address(caplog: pytest.LogCaptureFixture) -> None:
    check(
        "Trade-off",
        {"dataset": "upload-0123456789abcdef", "mechanism": "x", "epsilon": "１", "seeds": "-1", "👾": "\x00"},
        caplog,
    )


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_any_address(name: str, caplog: pytest.LogCaptureFixture) -> None:
    @settings(max_examples=COUNT, database=None, phases=[Phase.generate], report_multiple_bugs=False)
    @given(queries())
    def attack(query: dict[str, str]) -> None:
        check(name, query, caplog)

    attack()


def test_an_unknown_method_in_a_link_is_explained() -> None:
    (warning,) = opened("One_model", mechanism="dp-dg").warning
    assert "Did you mean 'dp-gd'? Choose one of: " in warning.value.replace("\\", "")


def test_advice_on_a_method_is_shown_as_it_is() -> None:
    (warning,) = opened("One_model", mechanism="amp", model="mlp").warning
    assert warning.value.endswith("Choose another mechanism or another model. The page goes on without it.")


@pytest.mark.parametrize("name", ["", "One_model", "Groups", "Guarantees"])
def test_what_is_wrong_stands_above_all_numbers(name: str) -> None:
    """An address of a table that is not there shows another table: the reader learns it before any number of that."""
    page = settled(opened(name, dataset="data/none.csv"))
    order = [type(one).__name__ for one in page.main]
    assert order.index("Warning") < order.index("Markdown")
