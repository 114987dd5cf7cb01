"""The first page as a person meets it."""

import itertools
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from dpviz.experiments.run.links import KEY

Make = Callable[..., Any]
PICTURE = ".dpviz-accuracy svg"


def query(page: Any) -> dict[str, str]:
    return {k: v[-1] for k, v in parse_qs(urlparse(page.url).query).items() if k != KEY}


@pytest.mark.long
def test_first_page_answers_in_one_sentence_and_a_picture(one: Any) -> None:
    page = one.open()
    said = r"at ε = 1 is right \d+\.\d % of the time, \d+\.\d points worse than the .* noise \d+\.\d\.\s.*at most \d+\.\d %"
    assert re.search(said, one.sentence.replace("\u00a0", " "))
    assert "over 10 noise draws" in page.locator("[data-testid=stMainBlockContainer]").inner_text()
    assert "✓ proved" in page.locator("[data-testid=stMainBlockContainer]").inner_text()
    assert page.locator(".dpviz-picture svg").count() == 2
    assert page.title().startswith("dpviz")


def test_moving_epsilon_changes_sentence_picture_and_address(one: Any) -> None:
    page = one.open("?dataset=breast-cancer")
    before = page.locator(PICTURE).inner_html()
    one.press("ArrowLeft")
    assert page.locator(PICTURE).inner_html() != before
    assert query(page) == {"dataset": "breast-cancer", "epsilon": "0.9"}
    assert "at ε = 0.9 " in one.sentence


def test_a_link_restores_the_run_and_back_goes_back(one: Any) -> None:
    page = one.open("?dataset=iris&model=svm&epsilon=0.37&lam=0.01&dp-gd.steps=20&seeds=5")
    assert "at ε = 0.37 " in one.sentence
    assert "over 5 noise draws" in page.locator("[data-testid=stMainBlockContainer]").inner_text()
    link = query(page)
    assert link == {"dataset": "iris", "model": "svm", "epsilon": "0.37", "lam": "0.01", "dp-gd.steps": "20", "seeds": "5"}
    first = one.sentence
    one.press("ArrowRight")
    second = one.sentence
    assert second != first
    page.go_back()
    one.waits_for(first)
    one.settled()
    assert query(page) == link
    page.go_forward()
    one.waits_for(second)


#: tests of addresses without a browser try many more
BAD = [
    ("epsilon=nan", "Privacy budget ε"),
    ("dataset=../../etc/passwd", "Dataset"),
    ("mechanism=<img src=http://192.0.2.1/x.png>", "Mechanism"),
    ("mechanism=![x](http://192.0.2.1/x.png)", "Mechanism"),
]


@pytest.mark.long
@pytest.mark.parametrize(("bad", "field"), BAD)
def test_a_bad_address_is_explained_and_the_page_works(one: Any, bad: str, field: str) -> None:
    page = one.open(f"?{bad}")
    warning = page.locator("[data-testid=stAlert]").first.inner_text()
    assert field in warning
    assert len(warning) > 30
    assert "at ε = 1 " in one.sentence
    one.press("ArrowLeft")
    assert page.locator("[data-testid=stAlert]").count() == 0


@pytest.mark.long
@pytest.mark.parametrize("path", ["/", "/Sensitivity_and_rates", "/Privacy_accounting"])
def test_headings_are_in_order(reader: Make, path: str) -> None:
    page = reader().open("?dataset=teaching", path)
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
