"""The network in a real browser: its line bends, its width is in the address and goes along from page to page."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Make = Callable[..., Any]


def bend(page: Any) -> float:
    """How far the line without privacy leaves every straight line, in the drawn plane."""
    ends = page.evaluate(
        """() => { const lines = [...document.querySelectorAll('.dpviz-lines svg g path[fill=none]')];
        const thick = lines.find(line => line.getAttribute('stroke-width') === '5').getAttribute('d');
        const ends = thick.slice(1).split(/[ML]/).map(end => end.split(' ').map(Number));
        return [ends.map(end => end[0] / 128), ends.map(end => end[1] / 128)] }"""
    )
    points = np.array(ends, float).T
    points = points[np.isfinite(points).all(axis=1)]
    assert len(points) > 2
    spread = points - points.mean(axis=0)
    across = np.linalg.svd(spread, full_matrices=False)[2][-1]
    return float(np.abs(spread @ across).max())


@pytest.mark.long
@pytest.mark.parametrize(("model", "curved"), [("mlp-12", True), ("logistic", False)])
def test_the_line_of_a_network_bends(reader: Make, model: str, curved: bool) -> None:
    page = reader().open(f"?dataset=teaching&model={model}&lam=0.0001&seeds=3")
    assert (bend(page) > 0.1) == curved
    assert curved or bend(page) < 0.1 / 128  # ends are written to a tenth of a pixel
