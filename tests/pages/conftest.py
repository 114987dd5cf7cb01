"""Pages that are opened without a browser: nothing is computed ahead, and nothing waits for a browser to draw."""

from __future__ import annotations

import math

import pytest

from dpviz.dashboard.shell import page
from dpviz.dashboard.work import look_ahead


@pytest.fixture(autouse=True)
def _nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_ahead, "FROM", math.inf)
    monkeypatch.setattr(page, "TOP", 0.0)
