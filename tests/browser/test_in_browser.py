"""The first page as a person meets it."""

import re
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from dpviz.experiments.run.links import KEY

PICTURE = ".dpviz-lines svg"


def query(page: Any) -> dict[str, str]:
    return {k: v[-1] for k, v in parse_qs(urlparse(page.url).query).items() if k != KEY}


@pytest.mark.long
def test_first_page_answers_in_one_sentence_and_a_picture(one: Any) -> None:
    page = one.open()
    said = r"at ε = 1 has \d+\.\d % accuracy; without privacy, \d+\.\d %: .*\.\s.*at most \d+\.\d %"
    assert re.search(said, one.sentence.replace("\u00a0", " "))
    page.wait_for_function("() => document.querySelectorAll('.dpviz-picture svg').length === 5")
    assert page.title().startswith("dpviz")


def test_moving_epsilon_changes_sentence_picture_and_address(one: Any) -> None:
    page = one.open("?dataset=breast-cancer")
    before = page.locator(PICTURE).inner_html()
    one.press("ArrowLeft")
    assert page.locator(PICTURE).inner_html() != before
    assert query(page) == {"dataset": "breast-cancer", "epsilon": "0.9"}
    assert "at ε = 0.9 " in one.sentence


def test_a_link_restores_the_run_and_back_goes_back(one: Any) -> None:
    page = one.open("?dataset=iris&model=svm&epsilon=0.37&lam=0.01&mechanism=dp-gd&dp-gd.steps=20&seeds=5")
    assert "at ε = 0.37 " in one.sentence
    link = query(page)
    assert link == {"dataset": "iris", "model": "svm", "epsilon": "0.37", "lam": "0.01", "dp-gd.steps": "20", "seeds": "5"} | {
        "mechanism": "dp-gd"
    }
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
