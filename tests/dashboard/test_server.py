"""The server's start, requests that are refused, sessions that belong to one browser, and demonstrations with limits."""

import asyncio
import contextlib
import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from support import LIMIT, assert_refused
from support_pages import addressed

import dpviz
from dpviz.common import memory, threads
from dpviz.common.limits import DEMO, DEMO_LIMITS
from dpviz.dashboard.audit import attack, ordinary_rows
from dpviz.dashboard.frame import guard, links, server, session
from dpviz.dashboard.jobs import cached_runs
from dpviz.datasets.sources import folder, remote
from dpviz.experiments.run.resolve import resolve

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def not_forever(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a server holds until it ends is let go of after each test."""
    with contextlib.ExitStack() as held:
        monkeypatch.setattr(server, "_forever", held)
        monkeypatch.setattr(server, "LATER", 0.0)
        monkeypatch.setattr(server, "_load_other_pages", lambda: None)
        yield


def test_libraries_are_left_out_of_the_collections_after_every_run_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_runs, "outcome", lambda spec: (_ for _ in ()).throw(OSError("no data")))
    before = gc.get_freeze_count()
    try:
        server._load()
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
    server._load()
    gc.unfreeze()
    assert happened == ["one thread", "first model"]
    server._forever.close()
    assert happened[2:] == ["as before"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", ["http://127.0.0.1:8501/dpviz"]),
        ("::1", ["http://[::1]:8501/dpviz"]),
        ("0.0.0.0", ["http://localhost:8501/dpviz", "http://10.0.0.7:8501/dpviz"]),
    ],
)
def test_the_address_is_printed_and_opened_where_a_person_sits_here(
    host: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def start() -> None:
        async with server.settings()["lifespan"](None):
            pass

    opened: list[str] = []
    options = {"server.address": host, "server.port": 8501, "server.baseUrlPath": "/dpviz/", "server.headless": False}
    monkeypatch.setattr(server, "_load", lambda: None)
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    assert re.fullmatch(r"(\d+\.){3}\d+|", server._network_address())
    monkeypatch.setattr(server, "_network_address", lambda: "10.0.0.7")
    monkeypatch.setattr(server.st, "get_option", options.get)
    for options["server.headless"] in (False, True):
        with ThreadPoolExecutor(1) as apart:
            apart.submit(lambda: asyncio.run(start())).result()
    assert capsys.readouterr().out == f"dpviz: {' or '.join(expected)}\n" * 2
    assert opened == expected[:1]


def test_every_page_stands_in_one_group_of_the_navigation() -> None:
    titles = [links.title(path.stem) for path in (ROOT / "pages").glob("*.py")]
    assert sorted([links.FIRST, *titles]) == sorted(title for group in links.GROUPS.values() for title in group)


def test_the_address_is_printed_as_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("segno")
    server._check_code("", "0.0.0.0")
    server._print_code("http://10.0.0.7:8501/dpviz")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "http://10.0.0.7:8501/dpviz"
    assert len(lines) > 10


@pytest.mark.parametrize(
    ("address", "host", "said"), [("", None, "0.0.0.0"), ("", "127.0.0.1", "0.0.0.0"), ("javascript:x", "0.0.0.0", "no address")]
)
def test_no_code_leads_nowhere(address: str, host: str | None, said: str) -> None:
    assert_refused(server._check_code, address, host, match=said)


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
        assert (answer[0], answer[1]["x-frame-options"]) == (status, "DENY")
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


FIRST = """
import sys
from dpviz.dashboard.frame import current_run, fields, guessing, links, page, sidebar
from dpviz.dashboard.story import playing, scenes, settings
from dpviz.dashboard.jobs import cached_runs
from dpviz.experiments.run.spec import RunSpec

cached_runs.outcome(RunSpec())
print(*sorted({"numba", "scipy.optimize", "scipy.stats", "sklearn.linear_model", "sklearn.model_selection"} & set(sys.modules)))
"""


@pytest.mark.long
def test_the_first_page_needs_no_slow_library() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["scipy.optimize"]  # which is there, so that the others would be seen


def test_a_demonstration_reads_no_folder_and_downloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.csv").write_text("a,b\n1,0\n2,1\n" * 40)
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    monkeypatch.setattr(remote.fetch, "fetch", lambda *_: pytest.fail("a download"))
    assert "data/mine.csv" in folder.names()
    monkeypatch.setenv(DEMO, "1")
    assert folder.names() == ()
    assert_refused(dpviz.load_dataset, "data/mine.csv")
    assert_refused(remote.download, "adult", match="demonstration")


def test_a_demonstration_has_limits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    greedy = [dpviz.RunSpec("teaching", seeds=DEMO_LIMITS.seeds + 1), dpviz.RunSpec(f"census-{DEMO_LIMITS.rows + 1}", seeds=2)]
    for spec in greedy:
        assert resolve(spec).spec.seeds == spec.seeds, "the control: elsewhere they are fine"
    monkeypatch.setenv(DEMO, "1")
    resolve(dpviz.RunSpec(f"census-{DEMO_LIMITS.rows}", seeds=DEMO_LIMITS.seeds))
    for spec, field in zip(greedy, ("seeds", "dataset"), strict=True):
        assert_refused(resolve, spec, match="this demonstration takes at most", field=field)


def test_links_of_a_demonstration_train_no_more_models_than_it_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    for of, key, asked in ((attack.fields_of, "runs", "20000"), (ordinary_rows.fields_of, "shadows", "4096")):
        monkeypatch.setenv(DEMO, "0")
        (field,) = (one for one in of(dpviz.RunSpec()) if one.key == key)
        assert field.read(asked) == asked
        monkeypatch.setenv(DEMO, "1")
        (field,) = (one for one in of(dpviz.RunSpec()) if one.key == key)
        assert_refused(field.read, asked)
        assert field.read(field.default) == field.default


def test_what_all_sessions_keep_is_bounded_in_a_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: memory.Cache[int] = memory.Cache("of this test", 10**12, lambda number: number)
    for demonstration, left in (("0", True), ("1", False)):
        monkeypatch.setenv(DEMO, demonstration)
        kept.put("a", DEMO_LIMITS.megabytes * 1_000_000 + 1, owner="")
        addressed("Data").run()
        assert ("a" in kept) is left


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"ancestors": ["https://x/path"]}, "--frame-ancestors"),
        ({"ancestors": ["*"]}, "--frame-ancestors"),
        ({"ancestors": ["https://a; script-src *"]}, "--frame-ancestors"),
        ({"base_path": "a b"}, "--base-path"),
        ({"base_path": "x?y"}, "--base-path"),
        ({"base_path": "../x"}, "--base-path"),
    ],
)
def test_bad_addresses_of_a_deployment_are_named(options: dict[str, object], field: str) -> None:
    assert_refused(server.serve, Path("app.py"), field=field, **options)


def test_frames_are_allowed_by_name_only() -> None:
    opened = guard.headers(["https://a.example", "https://b.example"])
    assert "x-frame-options" not in opened
    assert "frame-ancestors https://a.example https://b.example;" in opened["content-security-policy"]
