"""The pages on sensitivity, rates and accounting as a person meets them."""

from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

SENSITIVITY = "/Sensitivity_and_rates"


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
