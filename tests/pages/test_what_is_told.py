"""What a page tells the browser of its controls replaces what a reader is just choosing, so it tells only what is news."""

from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from support_pages import opened, settled

QUERY = {"Person": {"mechanism": "outpert-gd"}, "": {"model": "mlp-12", "metric": "recall-at-precision-50"}}
KINDS = ("number_input", "text_input", "slider", "select_slider", "selectbox", "radio", "multiselect", "toggle", "checkbox")


def controls(page: AppTest) -> Iterator[Any]:
    for kind in KINDS:
        yield from page.get(kind)


def told(page: AppTest) -> list[str]:
    return [one.key for one in controls(page) if one.proto.set_value]


@pytest.mark.parametrize("name", ["", "Trade-off", "Person"])
def test_a_page_that_is_drawn_again_tells_nothing_of_its_controls(name: str) -> None:
    page = opened(name, **QUERY.get(name, {}))
    assert told(page)  # the first time, of those that the address sets
    settled(page).run()  # the methods that are drawn follow when all are measured
    assert list(controls(page))
    assert not told(page)
