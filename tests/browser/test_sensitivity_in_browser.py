"""The pages on sensitivity, rates and accounting as a person meets them."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

Make = Callable[..., Any]
SENSITIVITY, ACCOUNTING = "/Sensitivity_and_rates", "/Privacy_accounting"


def main(page: Any) -> str:
    return str(page.locator("[data-testid=stMainBlockContainer]").inner_text())


@pytest.mark.long
def test_sensitivity_answers_and_links(one: Any) -> None:
    page = one.open("?dataset=teaching&mechanism=rsgd-ar&part=training", SENSITIVITY)
    page.wait_for_selector(".st-key-slack .main-svg")
    for words in ("Where does it come from?", "Why does averaging help?", "Does the permutation help?", "What does λ buy?"):
        assert words in main(page)
    before = page.locator(".st-key-trace .scatterlayer").inner_html()
    one.unfold("More settings, compare, report")
    page.locator("[data-testid=stSidebar]").get_by_text("Averaging", exact=True).click()
    page.wait_for_function("t => document.querySelector('.st-key-trace .scatterlayer').innerHTML !== t", arg=before)
    one.settled()
    query = parse_qs(urlparse(page.url).query)
    assert query["rsgd-ar.averaging"] == ["false"]
    assert "No averaging here" in main(page)


@pytest.mark.long
def test_observed_points_come_on_request(one: Any) -> None:
    page = one.open("?dataset=teaching&mechanism=output-gaussian&over=lam", SENSITIVITY)
    page.get_by_role("button", name="Retrain on neighbouring datasets").click()
    page.wait_for_function("document.body.innerText.includes('observed, adversarial')")


@pytest.mark.long
def test_accounting_names_the_tightest_proof(one: Any) -> None:
    page = one.open("?dataset=teaching&mechanism=dp-sgd", ACCOUNTING)
    assert "PLD, remove and add" in one.sentence
    assert "Neighbouring datasets" in main(page)


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", [SENSITIVITY, ACCOUNTING])
def test_narrow_screens_have_no_sideways_scroll(reader: Make, scheme: str, path: str) -> None:
    page = reader(width=400, scheme=scheme).open("?dataset=teaching", path)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("document.querySelector('[data-testid=stMainBlockContainer]').scrollWidth <= window.innerWidth")
