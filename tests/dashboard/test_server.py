"""The server's start."""

from __future__ import annotations

import gc

import pytest

from dpviz.dashboard.shell import server
from dpviz.dashboard.work import cached_runs


def test_libraries_are_left_out_of_the_collections_after_every_run_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_runs, "outcome", lambda spec: (_ for _ in ()).throw(OSError("no data")))
    before = gc.get_freeze_count()
    try:
        server._warm()
        assert gc.get_freeze_count() > before
        assert len(gc.get_objects()) < gc.get_freeze_count() / 10, "what is collected is little beside what is not"
    finally:
        gc.unfreeze()
