"""The map as a person uses it: a click, a lasso, a link."""

import math
import re
from typing import Any

import pytest

PATH = "/Person"
MAP = ".st-key-map"


def place(page: Any, point: int) -> tuple[float, float, int]:
    """Screen position and row id of a point of the map's first trace."""
    page.locator(f"{MAP} .nsewdrag").scroll_into_view_if_needed()
    x, y, row = page.evaluate(
        """i => {const g = document.querySelector('.st-key-map .js-plotly-plot'), l = g._fullLayout, t = g._fullData[0],
        r = g.getBoundingClientRect();
        return [r.left + l._size.l + l.xaxis.d2p(t.x[i]), r.top + l._size.t + l.yaxis.d2p(t.y[i]), t.customdata[i]]}""",
        point,
    )
    return x, y, row


def lasso(page: Any) -> None:
    """Draws a ring around nearly everything."""
    page.locator(f"{MAP} [data-title='Lasso Select']").click()
    page.locator(f"{MAP} .nsewdrag").scroll_into_view_if_needed()
    box = page.locator(f"{MAP} .nsewdrag").bounding_box()
    x, y, w, h = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 0.49 * box["width"], 0.49 * box["height"]
    page.mouse.move(x + w, y)
    page.mouse.down()
    for k in range(1, 26):
        page.mouse.move(x + w * math.cos(k / 4), y + h * math.sin(k / 4))
    page.mouse.up()


@pytest.mark.long
def test_a_click_chooses_the_person_and_the_address(one: Any) -> None:
    page = one.open("?dataset=teaching&mechanism=output-gaussian", PATH)
    x, y, row = place(page, 5)
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    page.wait_for_function("r => new URLSearchParams(location.search).get('row') !== null", arg=row)
    one.settled()
    chosen = int(re.search(r"row=(\d+)", page.url)[1])  # type: ignore[index]
    page.wait_for_selector(f"table >> text=row {chosen}")
    page.reload()
    one.settled()
    assert page.get_by_label("Row id", exact=True).input_value() == str(chosen)


@pytest.mark.long
def test_a_lasso_chooses_a_group_and_letting_go_forgets_it(one: Any) -> None:
    page = one.open("?dataset=teaching&mechanism=output-gaussian", PATH)
    lasso(page)
    page.get_by_role("button", name="Clear the group").wait_for()
    one.settled()
    before = page.locator("table", has_text="The chosen group").inner_text()
    page.get_by_role("slider", name="Privacy budget ε").press("ArrowRight")
    page.wait_for_function("() => location.search.includes('epsilon=1.12')")
    one.settled()
    assert page.locator("table", has_text="The chosen group").inner_text().split()[:8] == before.split()[:8]
    page.get_by_role("button", name="Clear the group").click()
    page.get_by_role("button", name="Clear the group").wait_for(state="detached")


@pytest.mark.long
@pytest.mark.parametrize("dataset", ["census-40000"])
def test_a_lasso_over_many_points_answers(one: Any, dataset: str) -> None:
    page = one.open(f"?dataset={dataset}&mechanism=output-gaussian", PATH)
    lasso(page)
    page.get_by_role("button", name="Clear the group").wait_for()
    rows = page.locator("table", has_text="The chosen group").inner_text().split("\n")
    assert any(int(word.replace(",", "")) > 10_000 for word in " ".join(rows).split() if re.fullmatch(r"\d+,\d+", word))
