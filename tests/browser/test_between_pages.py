"""The run goes along from page to page, and back."""

from typing import Any

import pytest


@pytest.mark.long
def test_the_run_goes_along_to_a_page_and_back(one: Any) -> None:
    page = one.open("?dataset=iris&epsilon=0.5&seeds=3")
    sentence = one.sentence
    assert "at ε = 0.5 " in sentence
    for name in ("Trade-off", "Person", "Audit"):
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_function("path => location.pathname.endsWith(path)", arg=name.replace(" ", "_"))
        page.wait_for_function("() => document.querySelector('h1')?.innerText.trim().length")
        page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
        assert "dataset=iris" in page.url, name
        assert "epsilon=0.5" in page.url, name
        page.go_back()
        page.wait_for_function("() => location.pathname === '/'")
        one.waits_for(sentence)  # the page before has a sentence too, and keeps it for a moment


@pytest.mark.long
@pytest.mark.parametrize("link", ["Attack this", "claim"])
def test_one_back_undoes_one_link(one: Any, link: str) -> None:
    page = one.open("?dataset=teaching&epsilon=0.5&seeds=3&mechanism=dp-gd&dp-gd.steps=20", path="/One_model")
    before = page.evaluate("history.length")
    page.locator("[data-testid=stPageLink]", has_text=link).first.locator("a").click()
    page.wait_for_function("() => location.pathname.length > 1 && document.querySelector('h1')?.innerText.trim().length")
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_timeout(500)  # an address that is corrected later makes a second entry
    assert page.evaluate("history.length") == before + 1
    page.go_back()
    page.wait_for_function(
        "() => location.pathname.endsWith('model') && /at ε.=.0\\.5 /.test(document.querySelector('.st-key-headline')?.innerText)"
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "query", "other"),
    [
        ("/Person", "?dataset=iris&seeds=3&x=petal length (cm)&row=3", "wine"),
        ("/Trade-off", "?dataset=teaching&seeds=3&points=2&methods=dp-gd&tune=steps,clip_norm", "Song SGD"),
    ],
)
def test_one_back_undoes_one_choice_that_the_pages_own_settings_do_not_fit(one: Any, path: str, query: str, other: str) -> None:
    page = one.page
    page.goto(f"{one.address}{path}{query}")
    page.get_by_role("slider", name="Privacy budget ε").wait_for()
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    before, address = page.evaluate("history.length"), page.url
    box = page.get_by_role("combobox", name="Dataset" if other == "wine" else "Mechanism").first
    box.click()
    box.fill(other)
    box.press("Enter")
    page.wait_for_function("old => location.href !== old", arg=address)
    page.wait_for_selector("[data-testid=stAlert]")  # what was dropped is said
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_timeout(500)  # an address that is corrected later makes a second entry
    assert page.evaluate("history.length") == before + 1
    page.go_back()
    page.wait_for_function("old => location.href === old", arg=address)


@pytest.mark.long
def test_what_was_retrained_is_there_after_a_look_at_another_page(one: Any) -> None:
    page = one.open("?dataset=teaching&mechanism=rsgd-ar&seeds=2", path="/Sensitivity")
    page.get_by_role("button", name="Retrain on neighbouring datasets and draw what happens").click()
    retrained = page.get_by_text("Observed points come from training on the rows without noise")
    retrained.wait_for()
    page.get_by_role("link", name="Data", exact=True).first.click()
    page.wait_for_function("() => location.pathname.includes('Data')")
    page.get_by_role("link", name="Sensitivity").first.click()
    page.wait_for_function("() => location.pathname.includes('Sensitivity')")
    retrained.wait_for()
    one.quiet()
    page.get_by_role("button", name="Retrain on neighbouring datasets and draw what happens").wait_for(state="detached")
