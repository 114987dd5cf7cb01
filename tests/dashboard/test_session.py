"""Sessions that were left: what they keep goes, though nobody else comes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from dpviz.dashboard.shell import session
from dpviz.dashboard.shell.session import LINGER, close_left


class Server:
    """As much of Streamlit's runtime as is asked for."""

    def __init__(self) -> None:
        self.active: set[str] = set()
        self.closed: list[str] = []
        self.waiting: list[tuple[Callable[[str], None], str]] = []

    def is_active_session(self, name: str) -> bool:
        return name in self.active

    def close_session(self, name: str) -> None:
        self.closed.append(name)

    def _get_async_objs(self) -> SimpleNamespace:
        return SimpleNamespace(
            eventloop=SimpleNamespace(call_soon_threadsafe=lambda close, name: self.waiting.append((close, name)))
        )

    def loop(self) -> None:
        for close, name in self.waiting:
            close(name)
        self.waiting.clear()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(session, "_watched", {"a": None, "b": None})
    return Server()


def test_a_session_that_was_left_is_closed_and_another_is_not(server: Server) -> None:
    server.active = {"a", "b"}
    assert not close_left(server, 0.0)  # type: ignore[arg-type]
    server.active = {"b"}
    assert not close_left(server, 1000.0)  # type: ignore[arg-type]
    assert not close_left(server, 1000.0 + LINGER - 1)  # type: ignore[arg-type]
    assert close_left(server, 1000.0 + LINGER) == ["a"]  # type: ignore[arg-type]
    server.loop()
    assert server.closed == ["a"]
    assert not close_left(server, 1e6)  # type: ignore[arg-type]


def test_who_comes_back_in_time_keeps_the_session(server: Server) -> None:
    close_left(server, 0.0)  # type: ignore[arg-type]
    server.active = {"a"}
    close_left(server, LINGER - 1)  # type: ignore[arg-type]
    server.active = set()
    assert close_left(server, LINGER + 1) == ["b"]  # type: ignore[arg-type]
    server.active = {"b"}  # just before the loop gets to it
    server.loop()
    assert server.closed == []


def test_streamlit_still_has_what_is_relied_on() -> None:
    from streamlit.runtime import Runtime
    from streamlit.runtime.memory_session_storage import MemorySessionStorage

    for name in ("is_active_session", "close_session", "_get_async_objs"):
        assert callable(getattr(Runtime, name))
    assert MemorySessionStorage()._cache._ttl > LINGER
