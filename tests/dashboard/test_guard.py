"""Requests under another name, and sockets of other pages, are refused."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from streamlit import config

from dpviz.dashboard.frame import guard, server


def ask(kind: str, names: frozenset[str] | None, addresses: bool = False, **headers: str) -> tuple[bool, dict[str, Any]]:
    """(whether the app was reached, the first answer)."""
    reached, sent = [], []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(True)
        await send({"type": f"{kind}.response.start", "status": 200, "headers": []})

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    given = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    made = guard.Guard(app, names=names, addresses=addresses)
    # in a thread of its own: a browser test may have left this one with a loop
    with ThreadPoolExecutor(1) as apart:
        apart.submit(lambda: asyncio.run(made({"type": kind, "headers": given}, receive, send))).result()
    return bool(reached), sent[0]


HERE = guard.names_of(None)


@pytest.mark.parametrize(
    ("host", "reached"),
    [
        ("127.0.0.1:8501", True),
        ("localhost", True),
        ("LOCALHOST.:1", True),
        ("[::1]:8501", True),
        ("evil.example", False),
        ("evil.example:8501", False),
        ("localhost.evil.example", False),
        ("192.168.0.7", False),
        ("", False),
        ("[", False),
    ],
)
def test_only_names_that_the_server_was_started_for(host: str, reached: bool) -> None:
    assert ask("http", HERE, host=host)[0] is reached
    assert ask("websocket", HERE, host=host, origin=f"http://{host}")[0] is reached


@pytest.mark.parametrize(
    ("origin", "reached"),
    [
        ("http://localhost:8501", True),
        ("https://localhost:8501", True),
        ("http://localhost:9999", False),
        ("http://127.0.0.1:8501", False),
        ("http://evil.example", False),
        ("null", False),
        (None, False),
    ],
)
def test_a_socket_needs_the_origin_of_the_server(origin: str | None, reached: bool) -> None:
    headers = {"host": "localhost:8501"} | ({} if origin is None else {"origin": origin})
    answer = ask("websocket", HERE, **headers)
    assert answer[0] is reached
    assert reached or answer[1]["type"] == "websocket.close"


def test_names_beside_the_local_ones() -> None:
    wide = guard.names_of("0.0.0.0", ["data.example"])
    assert ask("http", wide, addresses=True, host="192.168.0.7:8501")[0], "an address cannot be pointed elsewhere"
    assert ask("http", wide, addresses=True, host="data.example")[0]
    assert not ask("http", wide, addresses=True, host="evil.example")[0]
    assert "lab" in guard.names_of("lab")


def test_no_other_page_may_show_an_answer_inside_itself() -> None:
    for names, status in ((HERE, 200), (frozenset[str](), 421)):
        _, answer = ask("http", names, host="localhost")
        assert answer["status"] == status
        assert (b"x-frame-options", b"DENY") in answer["headers"]
        assert any(name == b"content-security-policy" and b"frame-ancestors 'none'" in value for name, value in answer["headers"])


def test_where_names_are_left_to_streamlit_its_list_holds_for_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    monkeypatch.setattr(config, "get_option", lambda name: listed if name == "server.allowedHosts" else None)
    assert ask("http", None, host="evil.example")[0], "Streamlit takes an empty list for all names"
    listed += ["localhost", "*.school.example"]
    for kind in ("http", "websocket"):
        assert ask(kind, None, host="class.school.example", origin="http://class.school.example")[0]
        assert not ask(kind, None, host="evil.example", origin="http://evil.example")[0]


def test_the_first_guard_stays_and_stands_before_streamlits_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_guard", None)
    monkeypatch.setattr(server, "_start", lambda: None)
    monkeypatch.setattr(server.memory, "c_library", lambda name, *numbers: None)
    monkeypatch.setattr(server.private, "stay_inside", lambda: None)
    monkeypatch.setattr(server.private, "look_keys_up", lambda: None)
    monkeypatch.setattr(server.private, "send_to_the_present_client", lambda: None)
    server.prepare(guard.made(HERE, ancestors=()))
    (first,) = server.middleware()
    assert first.cls is guard.Guard
    assert first.kwargs["names"] == HERE
    monkeypatch.setattr(server, "_guard", None)
    (alone,) = server.middleware()
    assert alone.kwargs["names"] is None, "`streamlit run` leaves the names to its own list"
    assert (b"x-frame-options", b"DENY") in first.kwargs["answered"]
    assert (b"x-frame-options", b"DENY") not in alone.kwargs["answered"], "hosts of `streamlit run` show apps in frames"
