"""Names from a table that try to be links, icons or Markdown: every page shows them as plain text."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support import LIMIT, mostly_long
from support_pages import Page, settled, with_open_folds

ROOT = Path(__file__).parents[2]
PAGES = ["app.py", *(f"pages/{path.name}" for path in sorted((ROOT / "pages").glob("*.py")))]
FILE = "www.evil.example **bold** :red[x] $x$.csv"
#: what each would become: a link, a picture, an icon, bold text, a colour, a formula
NAMES = "www.evil.example http://evil.example/a.png :material/home: **bold** :red[x] $x$ [t](http://evil.example)".split()
#: Streamlit would obey each of these where it stands in Markdown without a backslash or a word joiner
OBEYED = re.compile(
    r"www\.evil|https?://evil|:material/home:|(?<!\\)\*(?<!\\)\*bold|(?<!\\):red(?<!\\)\[|(?<!\\)\$x|(?<!\\)\[t(?<!\\)\]",
    re.IGNORECASE,
)


@pytest.fixture(autouse=True)
def _hostile_table(data_folder: Path) -> None:
    (data_folder / FILE).write_bytes(table())


def table() -> bytes:
    rows = [f"{k % 37},{NAMES[k % len(NAMES)]},{k * 7 % 11},{NAMES[k * k % 3 % 2]}" for k in range(60)]
    return "\n".join([",".join((NAMES[0], NAMES[2], NAMES[3], NAMES[1])), *rows]).encode()


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
    for name in NAMES:
        assert OBEYED.search(f"row {name} here"), name


@pytest.mark.parametrize("script", mostly_long(PAGES, "app.py", "pages/4_Person.py", "pages/92_Data.py"))
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
    for k, name in enumerate(NAMES):
        page.query_params[name] = name
        page.query_params["dataset" if k % 2 else "epsilon"] = name
    page.run()
    assert page.warning
    assert not obeyed(page)


def test_hostile_names_of_an_upload_are_plain_text() -> None:
    page = Page(ROOT / "pages" / "92_Data.py", default_timeout=LIMIT)
    page.query_params["dataset"] = "teaching"
    page.run()
    page.file_uploader[0].set_value((FILE, table(), "text/csv")).run()
    assert not obeyed(page)
    page.button(key="dpviz.make").click().run()
    assert not obeyed(page)
    assert str(page.session_state["dataset"]).startswith("upload-")
