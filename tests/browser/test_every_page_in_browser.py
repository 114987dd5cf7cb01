"""Every page in a narrow window and at 200 % zoom, with a keyboard and with a screen reader."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from support import until
from support_pages import ACCOUNTING, PAGES, SENSITIVITY

WIDER = """() => document.querySelector(".stMain").scrollWidth - document.querySelector(".stMain").clientWidth"""

#: controls without any text that a screen reader could read out, and charts without a description
UNNAMED = """() => {
  const controls = "button, input, select, textarea, a[href], [role=slider], [role=combobox], [role=radio], [role=switch]";
  const said = (e) => [
    e.getAttribute("aria-label"), e.textContent, e.title,
    ...(e.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => id && document.getElementById(id)?.textContent),
    ...[...(e.labels ?? [])].map((label) => label.textContent),
  ].some((text) => text && text.trim());
  const seen = (e) => e.checkVisibility({opacityProperty: true, visibilityProperty: true}) && e.getBoundingClientRect().width > 1;
  const bad = [...document.querySelectorAll(controls)].filter((e) => seen(e) && !said(e)).map((e) => e.outerHTML.slice(0, 120));
  for (const chart of document.querySelectorAll("[data-testid=stPlotlyChart], .dpviz-picture")) {
    const named = chart.closest("[aria-label]") ?? chart.querySelector("[aria-label]") ?? chart;
    if ((named.getAttribute("aria-label") ?? "").length < 30) bad.push("chart " + chart.className);
  }
  return bad;
}"""


@pytest.mark.long
def test_no_page_scrolls_sideways_and_everything_has_a_name(reader: Callable[..., Any]) -> None:
    one = reader(width=400)
    page = one.open("?dataset=teaching&seeds=2")
    page.locator("h1").evaluate("e => e.insertAdjacentHTML('afterend', '<button style=width:2000px></button>')")
    assert page.evaluate(WIDER) > 0, "the control: a wide button is seen"
    assert len(page.evaluate(UNNAMED)) == 1, "the control: a button without a name is seen"
    for name in PAGES:
        page.set_viewport_size({"width": 400, "height": 900})
        page.goto(f"{one.address}/{name}?dataset=teaching&seeds=2")
        page.wait_for_selector("h1")
        page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
        assert page.locator("[data-testid=stException]").count() == 0, name
        for width in (400, 640):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function(f"window.innerWidth === {width}")
            assert page.evaluate(WIDER) <= 0, (name, width)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (name, width)
            assert page.evaluate(UNNAMED) == [], (name, width)
        if name in {"", SENSITIVITY, ACCOUNTING}:
            levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
            assert levels[0] == levels.count(1) == 1, name
            assert all(b <= a + 1 for a, b in itertools.pairwise(levels)), name


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
    page.add_style_tag(content="h1 { opacity: 0.3 !important }")  # not on the heading itself, which may be drawn again
    page.evaluate("document.querySelector('main, body').insertAdjacentHTML('beforeend', '<button></button><input>')")
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
