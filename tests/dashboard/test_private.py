"""What is used of Streamlit beyond its documented functions, and what `streamlit run` answers and asks for."""

import ast
import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.testing.v1 import AppTest
from streamlit.web.server.app_discovery import discover_asgi_app
from support import LIMIT, parse, until, walk

from dpviz.dashboard.frame import private

ROOT = Path(__file__).parents[2]
FILES = [*(ROOT / "dpviz/dashboard").rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"]


def test_private_names_stand_in_one_file() -> None:
    found = set()
    for path in FILES:
        for node in walk(parse(path.read_text())):
            inside = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("streamlit.runtime", "streamlit.web"))
            runtime = isinstance(node, ast.ImportFrom) and node.module == "streamlit" and "runtime" in ast.unparse(node)
            other = isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls")
            name = node.attr if other and isinstance(node, ast.Attribute) else ""
            if inside or runtime or (name.startswith("_") and not name.startswith("__")):
                found.add(path.name)
    assert found == {"private.py"}


def page_of(script: str) -> AppTest:
    page = AppTest.from_string(
        f"import streamlit as st\nfrom dpviz.dashboard.frame import private\n{script}", default_timeout=LIMIT
    )
    page.run()
    assert not page.exception
    return page


def test_outside_of_a_page_nothing_is_known() -> None:
    assert not private.is_session()
    assert private.session_id() is None
    assert private.main_script() is None
    assert private.came_by_history()
    assert not private.browser_knows("a")
    private.release_files()


def test_a_page_knows_its_session_and_its_script() -> None:
    page = page_of("st.json([private.is_session(), isinstance(private.main_script().name, str), private.came_by_history()])")
    assert page.json[0].value == "[true, true, false]"


def test_what_the_browser_has_said_of_a_control_is_known() -> None:
    page = page_of("told = private.browser_knows('a')\nst.text_input('A', key='a')\nst.button('again')\nst.text(told)")
    assert page.text[0].value == "False"
    page.text_input(key="a").set_value("x").run()
    assert page.text[0].value == "True"


def test_the_bytes_of_uploaded_files_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    manager: Any = MemoryUploadedFileManager("/upload")
    for session in ("mine", "other"):
        manager.add_file(session, UploadedFileRec(file_id="f", name="f", type="", data=bytes(1000)))
    monkeypatch.setattr(private, "session_id", lambda: "mine")
    monkeypatch.setattr(private.runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=manager))
    private.release_files()
    assert list(manager.file_storage) == ["other"]


def test_a_session_is_closed() -> None:
    assert callable(Runtime.close_session)
    private.close("nobody's")  # there is no server


def test_a_session_that_connects_again_reads_no_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    session = SimpleNamespace(_local_sources_watcher=1, disconnect_file_watchers=lambda: stopped.append("a"))
    known = SimpleNamespace(get_active_session_info=lambda name: SimpleNamespace(session=session) if name == "a" else None)
    loop = SimpleNamespace(eventloop=SimpleNamespace(call_soon_threadsafe=lambda call: call()))
    server: Any = object.__new__(Runtime)
    server._session_mgr = known
    monkeypatch.setattr(Runtime, "_get_async_objs", lambda _: loop)
    monkeypatch.setattr(private.runtime, "get_instance", lambda: server)
    for kind, name in (("auto", "a"), ("none", "b"), ("none", "a")):
        monkeypatch.setattr(private, "get_option", lambda _, kind=kind: kind)
        monkeypatch.setattr(private, "session_id", lambda name=name: name)
        assert not stopped
        private.watch_no_files()
    assert stopped == ["a"]
    assert all(hasattr(AppSession, name) for name in ("disconnect_file_watchers", "register_file_watchers"))


#: runs Streamlit's command, and writes down every name that is looked up and every address that a stream is sent to
LISTEN = """
import sys, time
def hook(event, arguments):
    asked = None
    if event == "socket.getaddrinfo":
        asked = arguments[0]
    elif event == "socket.connect" and arguments[0].type & 15 == 1 and isinstance(arguments[1], tuple):
        asked = arguments[1][0]
    if asked is not None and str(asked) not in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::"):
        with open("asked", "a") as file:
            file.write(f"{asked}\\n")
sys.addaudithook(hook)
from streamlit.web import cli
cli.main(sys.argv[1:])
"""


@contextmanager
def streamlit_run(script: Path, folder: Path) -> Iterator[int]:
    """The port of a server that `streamlit run` starts for the whole network, without a browser."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = ["--server.port", str(port), "--server.headless", "true", "--server.address", "0.0.0.0"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STREAMLIT_")}
    environment |= {"PYTHONPATH": str(ROOT), "DPVIZ_CACHE": str(folder)}
    command = [sys.executable, "-c", LISTEN, "run", str(script), *flags]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: answers(port), "the server's start")
            yield port
        finally:
            process.kill()


def answers(port: int) -> bool:
    try:
        return status(port, "/_stcore/health") == 200
    except OSError:
        return False


def status(port: int, path: str, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.putrequest("GET", path, skip_host=True)
    for name, value in ({"host": f"localhost:{port}"} | headers).items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    try:
        return connection.getresponse().status
    finally:
        connection.close()


SOCKET = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_version": "13", "sec_websocket_key": "a" * 22 + "=="}
PATHS = ("/", "/index.html", "/static/js/none.js", "/Data", "/_stcore/health", "/_stcore/host-config", "/_stcore/metrics")


def test_streamlit_finds_the_guarded_app_in_the_first_page(tmp_path: Path) -> None:
    assert discover_asgi_app(ROOT / "app.py").import_string == "app:app"
    (tmp_path / "app.py").write_text("import streamlit as st\n\nst.title('page')\n")
    assert not discover_asgi_app(tmp_path / "app.py").is_asgi_app


@pytest.mark.long
def test_the_first_page_is_guarded_and_asks_nobody_outside(tmp_path: Path) -> None:
    with streamlit_run(ROOT / "app.py", tmp_path) as port:
        for path in PATHS:
            assert status(port, path) in (200, 404), path
            assert status(port, path, host="evil.example") == 421, path
        stream = "/_stcore/stream"
        assert status(port, stream, origin=f"http://localhost:{port}", **SOCKET) == 101
        for origin in ("http://evil.example", "http://localhost:9", "null"):
            assert status(port, stream, origin=origin, **SOCKET) == 403
            assert status(port, "/_stcore/health", origin=origin) == 403
        assert status(port, stream, origin="http://evil.example", **(SOCKET | {"host": "evil.example"})) == 421
    assert not (tmp_path / "asked").exists(), (tmp_path / "asked").read_text()


@pytest.mark.long
def test_another_browser_that_knows_a_session_does_not_take_it_over(tmp_path: Path) -> None:
    client = pytest.importorskip("websockets.sync.client")

    def session(port: int, cookie: str, known: str = "") -> str:
        """The session that a browser gets which asks for one."""
        protocols = [text for text in ("streamlit", "xsrf", known) if text]
        where, headers = f"localhost:{port}", {"Cookie": f"dpviz_browser={cookie}"}
        with client.connect(
            f"ws://{where}/_stcore/stream",
            origin=f"http://{where}",
            additional_headers=headers,
            subprotocols=protocols,
            proxy=None,
        ) as stream:
            ask = BackMsg()
            ask.rerun_script.query_string = ""
            stream.send(ask.SerializeToString())
            while True:
                message = ForwardMsg()
                message.ParseFromString(stream.recv())
                if message.WhichOneof("type") == "new_session":
                    return str(message.new_session.initialize.session_id)

    with streamlit_run(ROOT / "app.py", tmp_path) as port:
        hers = session(port, "hers")
        assert session(port, "other", hers) != hers
        assert session(port, "hers", hers) == hers


@pytest.mark.long
def test_a_page_without_the_guard_would_ask(tmp_path: Path) -> None:
    """The control: any Host is answered, and Streamlit asks an outside service for this machine's address."""
    (tmp_path / "page.py").write_text("import streamlit as st\n\nst.title('page')\n")
    with streamlit_run(tmp_path / "page.py", tmp_path) as port:
        assert status(port, "/", host="evil.example") == 200
        assert status(port, "/_stcore/stream", origin="http://evil.example", **SOCKET) == 403
    assert "amazonaws.com" in (tmp_path / "asked").read_text()
