"""What a reader with a keyboard or a screen reader meets on every page: no serious violation, tables of charts, few controls."""

from collections.abc import Callable
from typing import Any

import pytest
from support import until
from support_pages import PAGES

QUERY = "?dataset=teaching&seeds=2"
SERIOUS = {"serious", "critical"}

#: charts without a table of their numbers, which stands beside them for screen readers
UNTOLD = """() => {
  const live = [...document.querySelectorAll("[data-testid=stPlotlyChart]")].map((e) => {
    for (let box = e.closest(".stElementContainer"); box; box = box.previousElementSibling) {
      const told = box.querySelector(".dpviz-read tbody");
      if (told) return told;
    }
  });
  const still = [...document.querySelectorAll(".dpviz-picture")].map((e) => e.parentElement.querySelector(".dpviz-read tbody"));
  return [...live, ...still].filter((told) => !told?.rows.length).length;
}"""

#: what can be used in the first view: all that has the focus of a keyboard or a pointer's click, but the links to the pages,
#: which are one tab stop, the app's own bar, and the arrows inside a list, which do what its field does
CONTROLS = """() => [...document.querySelectorAll(
    ".stApp :is(a[href], button, input, select, textarea, summary, [role=slider], [role=tab], [tabindex='0'])")]
  .filter((e) => !e.closest("[data-testid=stHeader], [data-testid=stToolbar], .st-key-pages") && !e.disabled)
  .filter((e) => e.type !== "radio" || e === e.closest("[role=radiogroup]").querySelector("input"))  // a group is one tab stop
  .filter((e) => !(e.tagName === "BUTTON" && e.closest("[role=combobox], .stSelectbox")))
  .filter((e) => {
    const box = e.getBoundingClientRect();
    const seen = e.checkVisibility({opacityProperty: true, visibilityProperty: true});
    return seen && box.width > 1 && box.height > 1 && box.top < innerHeight && box.bottom > 0;
  })
  .map((e) => `${e.tagName} ${e.getAttribute("aria-label") || e.innerText || e.title || e.dataset.testid}`.slice(0, 60))"""


def violations(page: Any) -> list[str]:
    """Serious violations that axe-core finds; pale texts (WCAG 2.2, 1.4.3) are among them."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {n['html'][:200]}" for v in found if v["impact"] in SERIOUS for n in v["nodes"]]


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1280, "dark")])  # colours do not depend on the width
def test_no_page_has_a_serious_violation_and_every_chart_has_a_table(reader: Callable[..., Any], width: int, scheme: str) -> None:
    one = reader(width, scheme)
    page = one.open(QUERY)
    page.locator("h1").evaluate("e => { e.style.opacity = 0.3; e.insertAdjacentHTML('afterend', '<button></button><input>') }")
    rules = {line.partition(":")[0] for line in violations(page)}
    assert {"button-name", "label", "color-contrast"} <= rules, "the control: a pale heading, a button and a field without a name"
    # in one call: the page may be drawn again between two
    without = page.evaluate(f"() => {{ document.querySelector('.dpviz-read').remove(); return ({UNTOLD})() }}")
    assert without == 1, "the control: a chart without its table is found"
    for name in PAGES:
        page.goto(f"{one.address}/{name}{QUERY}")
        page.wait_for_selector("h1")
        one.quiet()
        # a table that scrolls gets its tab stop when it has been drawn
        if found := violations(page):
            until(lambda: violations(page) == [], f"{name} without violations, of {found}")
        until(lambda: page.evaluate(UNTOLD) == 0, f"a table for every chart of {name}")


def controls(one: Any) -> list[str]:
    """The controls of a page that has been drawn, whose work has ended and whose script has set the tab order."""
    one.quiet()
    one.page.wait_for_function("![...document.querySelectorAll('button')].some((e) => e.innerText === 'Cancel')")
    # the script takes the scrolling area out of the tab order twice a second, so up to half a second late
    one.page.wait_for_selector(".stMain[tabindex='-1']")
    return one.page.evaluate(CONTROLS)


@pytest.mark.long
def test_at_most_twelve_controls_are_in_the_first_view(reader: Callable[..., Any]) -> None:
    one = reader(1440)
    page = one.page
    one.open()
    before = len(controls(one))
    # in one call: the page may be drawn again between two
    add = "document.querySelector('h1').insertAdjacentHTML('afterend', '<button>one more</button>')"
    assert len(page.evaluate(f"() => {{ {add}; return ({CONTROLS})() }}")) == before + 1, "the control: a button more is counted"
    for name in PAGES:
        page.goto(f"{one.address}/{name}")
        page.wait_for_selector("h1")
        found = controls(one)
        assert 1 + len(found) <= 12, (name, found)  # the links to the pages count as one


@pytest.mark.long
def test_figures_follow_the_theme_without_a_click(reader: Callable[..., Any]) -> None:
    page = reader(scheme="light").open("?dataset=teaching&seeds=2")
    page.wait_for_selector(".dpviz-picture svg")
    page.emulate_media(color_scheme="dark")
    dark = "getComputedStyle(document.querySelector('.dpviz-picture svg')).backgroundColor === 'rgb(14, 17, 23)'"
    page.wait_for_function(dark)
