"""Every page in a narrow window and at 200 % zoom: nothing scrolls sideways, every control and chart has a name."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
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
