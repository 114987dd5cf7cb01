"""The pages Audit and Paper claims as people see them."""

from typing import Any

import pytest


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
