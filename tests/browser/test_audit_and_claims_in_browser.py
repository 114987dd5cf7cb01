"""The pages Audit and Paper claims as people see them."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_an_attack_grows_and_ends_in_a_verdict(reader: Callable[..., Any], width: int, scheme: str) -> None:
    one = reader(width=width, scheme=scheme)
    page = one.page
    page.goto(f"{one.address}/Audit?dataset=teaching&mechanism=dbdp-pi&runs=200&pair=worst-case")
    page.get_by_text("claim exceeded").first.wait_for()
    page.wait_for_selector(".js-plotly-plot .main-svg")
    assert "an attacker guesses" in one.sentence
    assert "claim exceeded (ε is at least" in one.sentence
    page.get_by_text("Lower bounds on ε").click()
    assert page.get_by_text("✗ above the claim").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.long
def test_every_epsilon_leads_to_its_audit_and_its_claims(one: Any) -> None:
    page = one.open("?dataset=teaching&mechanism=dbdp-pi&seeds=2")
    page.get_by_role("link", name="claims of papers about it").click()
    page.wait_for_function("() => location.pathname.includes('Paper_claims') && location.search.includes('mechanism=dbdp-pi')")
    test_it = page.get_by_role("button", name="Test it")
    test_it.wait_for()
    assert "about=mechanism" in page.url
    test_it.click()
    page.get_by_text("1 tested again in this session").wait_for()
    page.go_back()
    page.wait_for_function("() => location.pathname === '/'")
    page.get_by_role("link", name="Attack this").click()
    page.wait_for_function("() => location.pathname.includes('Audit')")
    assert "mechanism=dbdp-pi" in page.url


@pytest.mark.long
@pytest.mark.parametrize(
    "where",
    ["/", "/Trade-off", "/Sensitivity_and_rates", "/Influence_and_noise", "/Privacy_accounting"],
    ids=lambda path: path[1:],
)
def test_each_page_with_an_epsilon_links_to_audit_and_claims(one: Any, where: str) -> None:
    page = one.open("?dataset=teaching&mechanism=rsgd-ar&seeds=2", path=where)
    if where == "/Trade-off":
        page.locator(".st-key-progress [data-testid=stProgress]").wait_for(state="detached")
        one.unfold("What is each ε worth? Attack a method, or see what papers claim about it")
    if where == "/Influence_and_noise":
        one.unfold("Guarantee")
    audit = page.get_by_role("link", name="Attack RSGD-AR" if where == "/Trade-off" else "Attack").first
    audit.wait_for()
    assert page.get_by_role("link", name="claims of papers about it").first.is_visible()
    audit.click()
    page.wait_for_function("() => location.pathname.includes('Audit') && location.search.includes('mechanism=rsgd-ar')")


@pytest.mark.long
def test_what_was_retrained_is_there_after_a_look_at_another_page(one: Any) -> None:
    page = one.open("?dataset=teaching&mechanism=rsgd-ar&seeds=2", path="/Sensitivity_and_rates")
    page.get_by_role("button", name="Retrain on neighbouring datasets and draw what happens").click()
    retrained = page.get_by_text("Observed points come from training on the rows without noise")
    retrained.wait_for()
    page.get_by_role("link", name="Audit", exact=True).first.click()
    page.wait_for_function("() => location.pathname.includes('Audit')")
    page.get_by_role("link", name="Sensitivity and rates").first.click()
    page.wait_for_function("() => location.pathname.includes('Sensitivity')")
    retrained.wait_for()
    one.quiet()
    page.get_by_role("button", name="Retrain on neighbouring datasets and draw what happens").wait_for(state="detached")
