"""Pages without a browser: pages wait for their runs, and nothing waits for a browser to draw."""

import pytest
from support import LIMIT

from dpviz.dashboard.shell import page
from dpviz.dashboard.work import front, in_front


@pytest.fixture(autouse=True)
def _nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_front, "PATIENCE", LIMIT)
    monkeypatch.setattr(in_front, "ALMOST", LIMIT)
    monkeypatch.setattr(front, "TOGETHER", LIMIT)
    monkeypatch.setattr(page, "TOP", 0.0)
