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


@pytest.mark.parametrize(
    ("moved", "asked", "shown"),
    [
        pytest.param([FIRST], [BEFORE, BEFORE], [FIRST, FIRST], id="two requests with the old address leave what was set"),
        pytest.param([FIRST, SECOND], [BEFORE], [SECOND], id="so does one with the first address"),
        pytest.param([FIRST, SECOND], [FIRST], [SECOND], id="and one with an address that lies between"),
        pytest.param([FIRST], [FIRST, BEFORE], [FIRST, BEFORE], id="one after the browser heard of the newest is news"),
        pytest.param([FIRST], [SECOND], [SECOND], id="so is one that nobody wrote"),
    ],
)
def test_what_a_browser_asks_with(moved: list[float], asked: list[float], shown: list[float]) -> None:
    page = opened("One_model", epsilon=str(BEFORE))
    assert [_moves(page, epsilon, BEFORE) for epsilon in moved] == moved
    assert [_asks(page, epsilon) for epsilon in asked] == shown
