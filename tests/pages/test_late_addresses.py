"""A browser asks with an old address until it hears of a newer one; what its controls say is not lost then."""

import pytest
from streamlit.testing.v1 import AppTest
from support_pages import opened

BEFORE, FIRST, SECOND = 0.5, 0.56, 0.63


def _asks(page: AppTest, epsilon: float) -> float:
    """The page asked for again while the browser's address has this ε; the ε that the page and its address then have."""
    page.query_params["epsilon"] = str(epsilon)
    page.run()
    shown = float(page.select_slider(key="epsilon").value)
    assert page.query_params["epsilon"] in (str(shown), [str(shown)])
    return shown


def _moves(page: AppTest, to: float, address: float) -> float:
    """The slider moved while the browser's address has an ε; the same as `_asks`."""
    page.select_slider(key="epsilon").set_value(to)
    return _asks(page, address)


def test_a_second_request_with_the_old_address_leaves_what_was_set() -> None:
    page = opened("", epsilon=str(BEFORE))
    assert _moves(page, FIRST, BEFORE) == FIRST
    assert _asks(page, BEFORE) == FIRST
    assert _asks(page, BEFORE) == FIRST


@pytest.mark.parametrize("late", [BEFORE, FIRST])
def test_so_does_one_with_any_address_that_lies_between(late: float) -> None:
    page = opened("", epsilon=str(BEFORE))
    assert _moves(page, FIRST, BEFORE) == FIRST
    assert _moves(page, SECOND, BEFORE) == SECOND
    assert _asks(page, late) == SECOND


def test_an_address_that_the_browser_had_before_it_heard_of_the_newest_is_news() -> None:
    page = opened("", epsilon=str(BEFORE))
    assert _moves(page, FIRST, BEFORE) == FIRST
    assert _asks(page, FIRST) == FIRST
    assert _asks(page, BEFORE) == BEFORE


def test_so_is_one_that_nobody_wrote() -> None:
    page = opened("", epsilon=str(BEFORE))
    assert _moves(page, FIRST, BEFORE) == FIRST
    assert _asks(page, SECOND) == SECOND
