"""What is used of Streamlit beyond its documented functions stands in one file, and Streamlit still does what is relied on."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.testing.v1 import AppTest
from support import LIMIT

from dpviz.dashboard.frame import private

ROOT = Path(__file__).parents[2]
FILES = [*(ROOT / "dpviz/dashboard").rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"]


def test_private_names_stand_in_one_file() -> None:
    found = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
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
