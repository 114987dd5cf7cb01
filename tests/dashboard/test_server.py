"""The server's start."""

from __future__ import annotations

import gc
import inspect
import threading
from pathlib import Path

import pytest

from dpviz.dashboard.shell import page, server
from dpviz.dashboard.work import cached_runs

ROOT = Path(__file__).parents[2]


def test_libraries_are_left_out_of_the_collections_after_every_run_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_runs, "outcome", lambda spec: (_ for _ in ()).throw(OSError("no data")))
    before = gc.get_freeze_count()
    try:
        server._warm()
        assert gc.get_freeze_count() > before
        assert len(gc.get_objects()) < gc.get_freeze_count() / 10, "what is collected is little beside what is not"
    finally:
        gc.unfreeze()


def test_a_page_sets_the_process_up_once_whichever_command_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(server, "_ready", False)
    monkeypatch.setattr(server, "_warm", lambda: started.append("warm"))
    monkeypatch.setattr(server.sys, "setswitchinterval", lambda seconds: started.append(f"switch {seconds}"))
    server.prepare_once()
    assert started == [], "without a server, as in a test of a page, there is nothing to set up"
    monkeypatch.setattr(server.private, "serving", lambda: True)
    for _ in range(3):
        server.prepare_once()
    for thread in threading.enumerate():
        if thread.name == "dpviz-warm":
            thread.join(60)
    assert sorted(started) == [f"switch {server.SWITCH}", "warm"]


def test_every_page_begins_with_the_frame_that_sets_the_process_up() -> None:
    for path in [ROOT / "app.py", *(ROOT / "pages").glob("*.py")]:
        assert "page.start(" in path.read_text(), path.name
    assert "server.prepare_once()" in inspect.getsource(page.start)


def test_pages_have_numbers_of_their_own_which_give_their_order() -> None:
    names = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
    assert [name.partition("_")[0] for name in names] == [str(k) for k in range(len(names))]
