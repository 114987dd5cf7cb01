"""A link without a version in a browser."""

from typing import Any

import pytest

from dpviz.experiments.run import links


@pytest.mark.long
def test_one_click_opens_a_link_as_it_was_meant_and_back_returns(one: Any) -> None:
    page = one.open("?dataset=iris&epsilon=0.5&seeds=2", version="")
    assert page.url.endswith("?dataset=iris&epsilon=0.5&seeds=2")  # as it was typed: nothing new for Back
    page.get_by_text("This link names no version").wait_for()
    page.get_by_role("button", name="Open it as it was meant then").click()
    page.wait_for_url("**lam=0.001**")
    one.settled()
    assert "row_scaling=unit" in page.url
    assert f"v={links.VERSION}" in page.url
    assert page.get_by_text("This link names no version").count() == 0
    page.go_back()
    page.get_by_text("This link names no version").wait_for()
    assert page.url.endswith("?dataset=iris&epsilon=0.5&seeds=2")
