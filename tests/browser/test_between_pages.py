"""The run goes along from page to page, and back."""

from pathlib import Path
from typing import Any

import pytest

from dpviz.dashboard.shell.links import title

PAGES = sorted((Path(__file__).parents[2] / "pages").glob("*.py"))


@pytest.mark.long
def test_the_run_goes_along_to_every_page_and_back(one: Any) -> None:
    page = one.open("?dataset=iris&epsilon=0.5&seeds=3")
    sentence = one.sentence
    assert "at ε = 0.5 " in sentence
    for path in PAGES:
        page.get_by_role("link", name=title(path.stem), exact=True).click()
        page.wait_for_function("stem => location.pathname.endsWith(stem)", arg=path.stem.partition("_")[2])
        page.wait_for_function("() => document.querySelector('h1')?.innerText.trim().length")
        page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
        assert "dataset=iris" in page.url, path.stem
        assert "epsilon=0.5" in page.url, path.stem
        page.go_back()
        page.wait_for_function("() => location.pathname === '/'")
        one.waits_for(sentence)  # the page before has a sentence too, and keeps it for a moment


@pytest.mark.long
@pytest.mark.parametrize("link", ["Attack this", "claim"])
def test_one_back_undoes_one_link(one: Any, link: str) -> None:
    page = one.open("?dataset=teaching&epsilon=0.5&seeds=3&mechanism=dp-gd&dp-gd.steps=20")
    before = page.evaluate("history.length")
    page.locator("[data-testid=stPageLink]", has_text=link).first.locator("a").click()
    page.wait_for_function("() => location.pathname.length > 1 && document.querySelector('h1')?.innerText.trim().length")
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_timeout(500)  # an address that is corrected later makes a second entry
    assert page.evaluate("history.length") == before + 1
    page.go_back()
    page.wait_for_function(
        "() => location.pathname === '/' && /at ε.=.0\\.5 /.test(document.querySelector('.st-key-headline')?.innerText)"
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "query", "other"),
    [
        ("/Influence_and_noise", "?dataset=iris&seeds=3&x=petal length (cm)&row=3", "wine"),
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
