"""Pages without a browser: nothing is computed ahead, pages wait for their runs, and nothing waits for a browser to draw."""

import math

import pytest
from support import LIMIT

from dpviz.dashboard.shell import page
from dpviz.dashboard.work import front, in_front, look_ahead


@pytest.fixture(autouse=True)
def _nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_ahead, "FROM", math.inf)
    monkeypatch.setattr(in_front, "PATIENCE", LIMIT)
    monkeypatch.setattr(in_front, "ALMOST", LIMIT)
    monkeypatch.setattr(front, "TOGETHER", LIMIT)
    monkeypatch.setattr(page, "TOP", 0.0)
