"""Every text of every page stands out from what is behind it, in both themes, and figures follow the theme."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGES = sorted(path.stem.split("_", 1)[1] for path in (Path(__file__).parents[2] / "pages").glob("*.py"))

#: texts whose contrast (WCAG 2.2, 1.4.3) is below 4.5, or 3 where they are large; figures have tests of their own, and what
#: Streamlit fades before it takes it away is not there to be read
PROBE = """() => {
  const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return [m[0], m[1], m[2], m[3] === undefined ? 1 : m[3]]; };
  const over = (a, b) => [0, 1, 2].map(k => a[k] * a[3] + b[k] * (1 - a[3])).concat(1);
  const light = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = c => 0.2126 * light(c[0]) + 0.7152 * light(c[1]) + 0.0722 * light(c[2]);
  const bad = [];
  const walker = document.createTreeWalker(document.querySelector(".stApp"), NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.textContent.trim()) continue;
    if (e.closest("svg, script, style, .katex-mathml, [disabled], [aria-disabled=true], [data-stale=true]")) continue;
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height || !e.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const chain = [];
    for (let p = e; p; p = p.parentElement) chain.unshift(p);
    let back = [255, 255, 255, 1], opacity = 1;
    for (const p of chain) {
      const s = getComputedStyle(p);
      opacity *= Number(s.opacity);
      const thumb = p.querySelector(":scope > [data-testid=stSliderThumbValue]"); // the value stands above the thumb
      if (!thumb && s.backgroundColor.startsWith("rgb")) back = over(parse(s.backgroundColor), back);
    }
    const s = getComputedStyle(e), ink = parse(s.color);
    ink[3] *= opacity;
    const [a, b] = [luminance(over(ink, back)), luminance(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(s.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(s.fontWeight) >= 700) ? 3 : 4.5;
    if (ratio < least) bad.push(ratio.toFixed(2) + " " + node.textContent.trim().slice(0, 40));
  }
  return bad;
}"""

DARK = "getComputedStyle(document.querySelector('.stApp')).backgroundColor === 'rgb(14, 17, 23)'"


@pytest.mark.long
def test_every_text_has_contrast(reader: Callable[..., Any]) -> None:
    one = reader(scheme="light")
    page = one.open("?dataset=teaching&seeds=2")
    assert page.evaluate(PROBE) == []
    page.locator("h1").evaluate("e => e.style.opacity = 0.3")
    assert len(page.evaluate(PROBE)) == 1, "the control: one pale heading is found"
    for name in ("", *PAGES):
        page.emulate_media(color_scheme="light")
        page.goto(f"{one.address}/{name}?dataset=teaching&seeds=2")
        page.wait_for_selector("h1")
        page.wait_for_timeout(1500)
        one.quiet()
        assert page.evaluate(PROBE) == [], (name, "light")
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(DARK)
        page.wait_for_timeout(1500)  # colours fade over
        one.quiet()
        assert page.evaluate(PROBE) == [], (name, "dark")


@pytest.mark.long
def test_figures_follow_the_theme_without_a_click(reader: Callable[..., Any]) -> None:
    page = reader(scheme="light").open("?dataset=teaching&seeds=2")
    page.wait_for_selector(".dpviz-picture svg")
    page.emulate_media(color_scheme="dark")
    dark = "getComputedStyle(document.querySelector('.dpviz-picture svg')).backgroundColor === 'rgb(14, 17, 23)'"
    page.wait_for_function(dark)
