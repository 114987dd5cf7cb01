"""The server's start."""

import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpviz.common import threads
from dpviz.dashboard.frame import server
from dpviz.dashboard.jobs import cached_runs

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def not_forever(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a server holds until it ends is let go of after each test."""
    with contextlib.ExitStack() as held:
        monkeypatch.setattr(server, "_forever", held)
        yield


def test_libraries_are_left_out_of_the_collections_after_every_run_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_runs, "outcome", lambda spec: (_ for _ in ()).throw(OSError("no data")))
    before = gc.get_freeze_count()
    try:
        server._warm()
        assert gc.get_freeze_count() > before
        assert len(gc.get_objects()) < gc.get_freeze_count() / 10, "what is collected is little beside what is not"
    finally:
        gc.unfreeze()


def test_a_server_has_one_thread_for_matrix_products_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number itself belongs to the process, in which the work of other tests may change it at any time."""
    happened: list[str] = []

    @contextlib.contextmanager
    def one_thread() -> Iterator[None]:
        happened.append("one thread")
        yield
        happened.append("as before")

    def outcome(spec: object) -> None:
        happened.append("first model")
        raise OSError("no data")

    monkeypatch.setattr(threads, "thread_settings", one_thread)
    monkeypatch.setattr(cached_runs, "outcome", outcome)
    server._warm()
    gc.unfreeze()
    assert happened == ["one thread", "first model"]
    server._forever.close()
    assert happened[2:] == ["as before"]
