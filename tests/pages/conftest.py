"""Pages without a browser: pages wait for their runs, and nothing waits for a browser to draw."""

import pytest
from support import LIMIT

from dpviz.dashboard.one_run import views
from dpviz.dashboard.shell import page
from dpviz.dashboard.work import front, tasks


@pytest.fixture(autouse=True)
def _nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "PATIENCE", LIMIT)
    monkeypatch.setattr(views, "PATIENCE", LIMIT)
    monkeypatch.setattr(views, "ALMOST", LIMIT)
    monkeypatch.setattr(front, "TOGETHER", LIMIT)
    monkeypatch.setattr(page, "TOP", 0.0)
