"""Requests under another name, and those of other sites, are refused; a session belongs to one browser."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import streamlit as st

from dpviz.common.limits import DEMO
from dpviz.dashboard.frame import guard, server, session


def ask(
    kind: str, names: list[str] | None, path: str = "/", method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], str]:
    """(status, the answer's headers, the browser that the app was told of): 0 where a socket reached the app."""
    told, sent = [""], [{"status": 0, "headers": []}]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        told.append(dict(scope["headers"])[guard.BROWSER_HEADER].decode())
        if kind == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    given = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {"type": kind, "path": path, "method": method, "headers": given, "extensions": {"websocket.http.response": {}}}
    # in a thread of its own: a browser test may have left this one with a loop
    with ThreadPoolExecutor(1) as apart:
        apart.submit(lambda: asyncio.run(guard.Guard(app, names, ())(scope, None, send))).result()
    answer = next((message for message in sent if message.get("status")), sent[0])
    return answer["status"], {name.decode(): value.decode() for name, value in answer["headers"]}, told[-1]


HERE = guard.names_of(None)


@pytest.mark.parametrize(
    ("host", "reached"),
    [
        ("127.0.0.1:8501", True),
        ("192.168.0.7", True),  # an address cannot be pointed elsewhere
        ("localhost", True),
        ("LOCALHOST.:1", True),
        ("[::1]:8501", True),
        ("evil.example", False),
        ("evil.example:8501", False),
        ("localhost.evil.example", False),
        ("", False),
        ("[", False),
    ],
)
def test_only_names_that_the_server_was_started_for(host: str, reached: bool) -> None:
    assert ask("http", HERE, host=host)[0] == (200 if reached else 421)
    assert ask("websocket", HERE, host=host, origin=f"http://{host}")[0] == (0 if reached else 421)


@pytest.mark.parametrize(
    ("origin", "reached"),
    [
        ("http://localhost:8501", True),
        ("https://localhost:8501", True),
        ("http://localhost:9999", False),
        ("http://127.0.0.1:8501", False),
        ("http://evil.example", False),
        ("null", False),
        ("http://[", False),
    ],
)
def test_pages_of_other_sites_are_refused(origin: str, reached: bool) -> None:
    assert ask("websocket", HERE, host="localhost:8501", origin=origin)[0] == (0 if reached else 403)
    assert ask("http", HERE, host="localhost:8501", origin=origin)[0] == (200 if reached else 403)


def test_a_socket_needs_an_origin() -> None:
    assert ask("websocket", HERE, host="localhost:8501")[0] == 403


def test_names_beside_the_local_ones() -> None:
    wide = guard.names_of("0.0.0.0", ["Data.example."])
    assert ask("http", wide, host="data.example")[0] == 200
    assert ask("http", wide, host="evil.example")[0] == 421
    assert "lab" in guard.names_of("lab")


def test_no_other_page_may_show_an_answer_inside_itself() -> None:
    for names, status in ((HERE, 200), (list[str](), 421)):
        answer = ask("http", names, host="localhost")
        assert answer[0] == status
        assert answer[1]["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in answer[1]["content-security-policy"]


def test_under_streamlit_run_its_list_of_names_holds_for_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "get_option", {"server.allowedHosts": ["localhost", "*.school.example"]}.get)
    assert ask("http", None, host="class.school.example")[0] == 200
    assert ask("http", None, host="evil.example")[0] == 421


def test_a_browser_gets_a_secret_and_the_app_is_told_of_it() -> None:
    _, first, told = ask("http", HERE, host="localhost")
    assert told == ""
    cookie, *rules = first["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Lax"} <= set(rules)
    _, second, told = ask("http", HERE, host="localhost", cookie=cookie, x_dpviz_browser="of another one")
    assert told == cookie.partition("=")[2]
    assert "set-cookie" not in second


def test_what_the_server_holds_is_not_told() -> None:
    for path, answer in (("/_stcore/metrics", 404), ("/dpviz/_stcore/metrics", 404), ("/_stcore/health", 200)):
        assert ask("http", HERE, path, host="localhost")[0] == answer, path


def test_files_are_taken_for_the_browsers_own_session_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_visits", {"a": session._Visit("a", "hers", "secret")})

    def put(path: str, browser: str, method: str = "PUT") -> int:
        return ask(
            "http", HERE, f"/dpviz/_stcore/upload_file/{path}", method, host="localhost", cookie=f"dpviz_browser={browser}"
        )[0]

    assert put("hers/file", "secret") == 200
    for method in ("PUT", "DELETE"):
        assert put("hers/file", "another", method) == 403
        assert put("unknown/file", "secret", method) == 403
    monkeypatch.setenv(DEMO, "1")
    assert put("hers/file", "secret") == 403


def test_the_app_under_streamlit_run_may_be_shown_in_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its hosts do so."""
    monkeypatch.setattr(server, "_load", lambda: None)
    (alone,) = server.settings()["middleware"]
    assert alone.cls is guard.Guard
    assert (alone.kwargs["names"], alone.kwargs["ancestors"]) == (None, None)
    assert "x-frame-options" not in guard.headers(None)
