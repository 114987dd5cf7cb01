"""Whatever stands in the address, every page opens, says what is wrong, and works.

The README's tests try one address, the long ones some more. The whole attack, about 3,000 addresses, is one command:

    DPVIZ_ADDRESSES=280 pytest -n 0 -m long tests/pages/test_any_address.py
"""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest
from support import LIMIT, mostly_long
from support_pages import PAGES, Page, addressed, opened, settled, text, with_open_folds

import dpviz
from dpviz.dashboard.components.recorder import get_recorder
from dpviz.dashboard.frame import address
from dpviz.dashboard.jobs import pool
from dpviz.experiments.run import links
from dpviz.experiments.run.spec import RunSpec

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


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"mechanism": "dp-dg"}, "Did you mean 'dp-gd'? Choose one of: "),
        ({"mechanism": "amp", "model": "mlp"}, "Choose another mechanism or another model. The page goes on without it."),
        ({f"x{k}": "" for k in range(5)}, "'x3', 'x4'. They are ignored."),
        ({f"x{k}": "" for k in range(6)}, "'x3', 'x4'\u00a0…. They are ignored."),
    ],
)
def test_what_is_wrong_in_a_link_is_explained(query: dict[str, str], said: str) -> None:
    (warning,) = opened("One_model", **query).warning
    assert said in warning.value.replace("\\", "")


@pytest.mark.parametrize("name", ["", "One_model", "Groups", "Guarantees"])
def test_what_is_wrong_stands_above_all_numbers(name: str) -> None:
    """An address of a table that is not there shows another table: the reader learns it before any number of that."""
    page = settled(opened(name, dataset="data/none.csv"))
    order = [type(one).__name__ for one in page.main]
    assert order.index("Warning") < order.index("Markdown")


BEFORE, FIRST, SECOND = 0.5, 0.56, 0.63


def _asks(page: AppTest, epsilon: float) -> float:
    """The page asked for again while the browser's address has this ε; the ε that the page and its address then have."""
    page.query_params["epsilon"] = str(epsilon)
    page.run()
    shown = float(page.select_slider(key="epsilon").value)
    assert page.query_params["epsilon"] in (str(shown), [str(shown)])
    return shown


def _moves(page: AppTest, to: float, address: float) -> float:
    """The slider moved while the browser's address has an ε; the same as `_asks`."""
    page.select_slider(key="epsilon").set_value(to)
    return _asks(page, address)


@pytest.mark.parametrize(
    ("moved", "asked", "shown"),
    [
        pytest.param([FIRST], [BEFORE, BEFORE], [FIRST, FIRST], id="two requests with the old address leave what was set"),
        pytest.param([FIRST, SECOND], [BEFORE], [SECOND], id="so does one with the first address"),
        pytest.param([FIRST, SECOND], [FIRST], [SECOND], id="and one with an address that lies between"),
        pytest.param([FIRST], [FIRST, BEFORE], [FIRST, BEFORE], id="one after the browser heard of the newest is news"),
        pytest.param([FIRST], [SECOND], [SECOND], id="so is one that nobody wrote"),
    ],
)
def test_what_a_browser_asks_with(moved: list[float], asked: list[float], shown: list[float]) -> None:
    page = opened("One_model", epsilon=str(BEFORE))
    assert [_moves(page, epsilon, BEFORE) for epsilon in moved] == moved
    assert [_asks(page, epsilon) for epsilon in asked] == shown


PAGE = (Path(__file__).parents[2] / "docs" / "pitfalls.md").read_text(encoding="utf-8")
LINKS = re.findall(r"^\| \d+ .* \[“(.+)”\]\(http://127\.0\.0\.1:8501(/[^)]+)\) \|$", PAGE, re.M)


def test_each_pitfall_has_a_link_of_this_version() -> None:
    assert len(LINKS) == 12
    assert all(f"&{links.KEY}={links.VERSION}" in link for _, link in LINKS)


@pytest.mark.long
@pytest.mark.parametrize(("words", "link"), LINKS, ids=range(1, len(LINKS) + 1))
def test_a_link_shows_it(words: str, link: str) -> None:
    address = urlsplit(link)
    page = settled(opened(address.path.strip("/"), **dict(parse_qsl(address.query))))
    run = get_recorder(page.session_state).run
    assert run[0].to_query() == RunSpec.from_query(address.query).to_query()
    remarks = [remark.value for remark in [*page.error, *page.warning, *page.info]]
    assert not [remark for remark in remarks if "goes on without" in remark or "no version" in remark], remarks
    assert words in text(page) + "".join(remarks)


ROOT = Path(__file__).parents[2]
SCRIPTS = ["app.py", *(f"pages/{path.name}" for path in sorted((ROOT / "pages").glob("*.py")))]
FILE = "www.evil.example **bold** :red[x] $x$.csv"
#: what each would become: a link, a picture, an icon, bold text, a colour, a formula
HOSTILE = "www.evil.example http://evil.example/a.png :material/home: **bold** :red[x] $x$ [t](http://evil.example)".split()
#: Streamlit would obey each of these where it stands in Markdown without a backslash or a word joiner
OBEYED = re.compile(
    r"www\.evil|https?://evil|:material/home:|(?<!\\)\*(?<!\\)\*bold|(?<!\\):red(?<!\\)\[|(?<!\\)\$x|(?<!\\)\[t(?<!\\)\]",
    re.IGNORECASE,
)


@pytest.fixture(autouse=True)
def _hostile_table(data_folder: Path) -> None:
    (data_folder / FILE).write_bytes(table())


def table() -> bytes:
    rows = [f"{k % 37},{HOSTILE[k % len(HOSTILE)]},{k * 7 % 11},{HOSTILE[k * k % 3 % 2]}" for k in range(60)]
    return "\n".join([",".join((HOSTILE[0], HOSTILE[2], HOSTILE[3], HOSTILE[1])), *rows]).encode()


def markdown_of(page: AppTest) -> Iterator[str]:
    """Every text of a page that Streamlit takes for Markdown; options of lists, fields, code and data frames are plain."""
    for kind in ("markdown", "caption", "title", "header", "subheader", "warning", "info", "error", "success", "toast"):
        for element in getattr(page, kind):
            yield str(element.value)
    for kind in "button toggle radio selectbox multiselect text_input number_input select_slider expander".split():
        for element in getattr(page, kind):
            yield str(element.label)
            yield str(getattr(element, "help", "") or "")
    for radio in page.radio:
        yield from map(str, radio.options)
    for metric in page.metric:
        yield from (str(metric.label), str(metric.value), str(metric.delta))
    for shown in page.table:
        yield str(shown.value.index.name)
        yield from map(str, [*shown.value.index, *shown.value.columns, *shown.value.to_numpy().ravel()])


def obeyed(page: AppTest) -> list[str]:
    return [text for text in markdown_of(page) if OBEYED.search(text)]


def test_the_check_finds_what_is_obeyed() -> None:
    for name in HOSTILE:
        assert OBEYED.search(f"row {name} here"), name


@pytest.mark.parametrize("script", mostly_long(SCRIPTS, "app.py", "pages/4_Person.py", "pages/92_Data.py"))
def test_hostile_names_are_plain_text_on_every_page(script: str) -> None:
    linked = script.endswith("Lessons.py")  # its links are found from the first page alone
    page = with_open_folds(Page(ROOT / ("app.py" if linked else script), default_timeout=LIMIT))
    name = f"data/{FILE}"
    page.query_params.update({"dataset": name, "mechanism": "pidp-sgd", "seeds": "2", "points": "2", "row": "0", "runs": "200"})
    page.run()
    page = settled(page.switch_page(script).run() if linked else page)
    assert page.session_state["dataset"] == name
    assert not obeyed(page)


def test_hostile_names_in_an_address_are_plain_text() -> None:
    page = with_open_folds(Page(ROOT / "pages" / "1_One_model.py", default_timeout=LIMIT))
    for k, name in enumerate(HOSTILE):
        page.query_params[name] = name
        page.query_params["dataset" if k % 2 else "epsilon"] = name
    page.run()
    assert page.warning
    assert not obeyed(page)


def test_hostile_names_of_an_upload_are_plain_text() -> None:
    page = addressed("Data").run()
    page.file_uploader[0].set_value((FILE, table(), "text/csv")).run()
    assert not obeyed(page)
    page.button(key="dpviz.make").click().run()
    assert not obeyed(page)
    assert str(page.session_state["dataset"]).startswith("upload-")
