"""What is used of Streamlit beyond its public interface: one file has all of it, and Streamlit still does what is relied on."""

import ast
import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit import net_util
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime, RuntimeConfig, SessionClientDisconnectedError
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.runtime import MESSAGE_FLUSH_INTERVAL_SECS
from streamlit.runtime.scriptrunner import ScriptRunContext
from streamlit.runtime.session_manager import SessionManager
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.testing.v1 import AppTest
from streamlit.web.server import server_util
from streamlit.web.server.starlette import starlette_app
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string, generate_xsrf_token_string
from support import LIMIT

from dpviz.dashboard.frame import private, session

ROOT = Path(__file__).parents[2]
FILES = [*(ROOT / "dpviz/dashboard").rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"]


def test_private_names_stand_in_one_file() -> None:
    found = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            inside = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("streamlit.runtime", "streamlit.web"))
            unlisted = isinstance(node, ast.Constant) and str(node.value).startswith(("streamlit.emojis", "streamlit.material"))
            runtime = isinstance(node, ast.ImportFrom) and node.module == "streamlit" and "runtime" in ast.unparse(node)
            other = isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls")
            name = node.attr if other and isinstance(node, ast.Attribute) else ""
            if inside or runtime or unlisted or (name.startswith("_") and not name.startswith("__")):
                found.add(path.name)
    assert found == {"private.py"}


def page_of(script: str) -> AppTest:
    page = AppTest.from_string(
        f"import streamlit as st\nfrom dpviz.dashboard.frame import private\n{script}", default_timeout=LIMIT
    )
    page.run()
    return page


def test_outside_of_a_page_nothing_is_known() -> None:
    assert not private.in_session()
    assert private.session_id() is None
    assert private.main_script() is None
    assert private.page() == ""
    assert private.through_history()
    assert not private.spoken_of("a")
    private.on_error(lambda error: True)
    private.forget_controls()
    private.release("a file")


def test_a_page_knows_its_session_its_script_and_itself() -> None:
    page = page_of(
        "known = isinstance(private.main_script().name, str), private.page() != ''\n"
        "st.json([private.in_session(), *known, private.through_history()])"
    )
    assert not page.exception
    assert page.json[0].value == "[true, true, true, false]"


def test_an_error_of_a_page_is_caught() -> None:
    page = page_of("private.on_error(lambda error: (st.warning(str(error)), True)[1])\nraise ValueError('in words')")
    assert [one.value for one in page.warning] == ["in words"]
    assert not page.exception
    assert page_of("private.on_error(lambda error: False)\nraise ValueError('not mine')").exception


def test_what_the_browser_has_said_of_a_control_is_known() -> None:
    page = page_of("told = private.spoken_of('a')\nst.text_input('A', key='a')\nst.button('again')\nst.text(told)")
    assert page.text[0].value == "False"
    page.text_input(key="a").set_value("x").run()
    assert page.text[0].value == "True"


def test_a_control_looks_at_its_own_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "st.session_state.setdefault('n', None)\nst.session_state.setdefault('s', None)\n"
        "st.number_input('N', key='n')\nst.selectbox('S', ['a', 'b'], key='s')\nst.text_input('T', key='t', value='x')\n"
        "st.radio('R', ['a', 'b'], key='r')\nst.json(dict(st.session_state))"
    )
    before = page_of(script)
    copies: list[SessionState] = []
    whole = SessionState.filtered_state.fget
    monkeypatch.setattr(SessionState, "filtered_state", property(lambda state: (copies.append(state), whole(state))[1]))
    page_of(script)
    most = len(copies)
    monkeypatch.setattr(SafeSessionState, "filtered_state", SafeSessionState.filtered_state)  # put back afterwards
    private.look_keys_up()
    copies.clear()
    after = page_of(script)
    assert len(copies) == most - 4, "one for each control; or Streamlit looks keys up by now, and nothing is left to do here"
    for page in (before, after):
        page.text_input(key="t").set_value("y").run()
        assert (page.number_input(key="n").value, page.selectbox(key="s").value, page.radio(key="r").value) == (None, None, "a")
    assert before.json[0].value == after.json[0].value
    kept = private._State(after.session_state._state)
    assert {"n", "s", "t", "r"} <= set(kept)
    assert len(kept) == len(set(kept))


@pytest.mark.parametrize("present", [False, True])
def test_a_page_reaches_a_browser_that_connects_again_while_others_are_served(
    present: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control shows that Streamlit loses it."""
    monkeypatch.setattr(Runtime, "_instance", None)
    monkeypatch.setattr(Runtime, "_send_message", Runtime._send_message)  # put back afterwards
    if present:
        private.send_to_the_present_client()
    arrived: list[ForwardMsg] = []

    async def serve() -> None:
        served = Runtime(
            RuntimeConfig(str(ROOT / "app.py"), MemoryMediaFileStorage("/media"), MemoryUploadedFileManager("/files"))
        )
        await served.start()

        def leave(message: ForwardMsg) -> None:
            raise SessionClientDisconnectedError

        def connect_again(message: ForwardMsg) -> None:
            served.disconnect_session(cut)
            back = served.connect_session(SimpleNamespace(write_forward_msg=arrived.append), {}, existing_session_id=cut)
            assert back == cut
            served.get_app_session(cut)._enqueue_forward_msg(ForwardMsg(hash="page"))

        other = served.connect_session(SimpleNamespace(write_forward_msg=connect_again), {})
        cut = served.connect_session(SimpleNamespace(write_forward_msg=leave), {})
        served.get_app_session(other)._enqueue_forward_msg(ForwardMsg(hash="of another one"))
        for _ in range(10):
            await asyncio.sleep(MESSAGE_FLUSH_INTERVAL_SECS)
        served.stop()
        await served.stopped

    with ThreadPoolExecutor(1) as thread:  # a browser that is open runs a loop in this one
        thread.submit(asyncio.run, serve()).result()
    assert [message.hash for message in arrived] == ["page"] * present


def test_options_of_controls_that_are_gone_are_let_go_of() -> None:
    page = page_of(
        "st.selectbox('Shown', ['stays'], key='stays')\n"
        "if not st.session_state.get('forget'):\n"
        "    st.selectbox('Once', ['hidden feature'], key='once')\n"
        "else:\n"
        "    private.forget_controls()\n"
        "st.checkbox('Forget', key='forget')\n"
        "state = private._state()\n"
        "st.text(sorted(one.split('-')[-1] for one in state._new_widget_state.widget_metadata))"
    )
    assert page.text[0].value == "['forget', 'once', 'stays']"
    page.checkbox(key="forget").check().run()
    assert page.text[0].value == "['forget', 'stays']"
    page.selectbox(key="stays").select("stays").run()
    assert not page.exception


def test_the_bytes_of_an_uploaded_file_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[tuple[str, str]] = []
    manager = MemoryUploadedFileManager("")
    monkeypatch.setattr(manager, "remove_file", lambda *one: removed.append(one))
    monkeypatch.setattr(private, "session_id", lambda: "mine")
    monkeypatch.setattr(private, "running", lambda: SimpleNamespace(uploaded_file_mgr=manager))
    private.release("file")
    assert removed == [("mine", "file")]


def test_a_browser_has_a_secret_that_its_cookies_hide() -> None:
    token = generate_xsrf_token_string()
    assert decode_xsrf_token_string(token)[0] is not None
    again = generate_xsrf_token_string(*decode_xsrf_token_string(token))
    assert decode_xsrf_token_string(again)[0] == decode_xsrf_token_string(token)[0], "the same browser, another cookie"
    assert private.browser() is None


def test_a_session_that_connects_again_reads_no_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    info = SimpleNamespace(
        session=SimpleNamespace(_local_sources_watcher=1, disconnect_file_watchers=lambda: stopped.append("a"))
    )
    running: Any = object.__new__(Runtime)
    running._session_mgr = SimpleNamespace(get_active_session_info=lambda name: info if name == "a" else None)
    monkeypatch.setattr(Runtime, "_get_async_objs", lambda _: SimpleNamespace(eventloop=loop))
    loop = SimpleNamespace(call_soon_threadsafe=lambda call: call())
    monkeypatch.setattr(private, "running", lambda: running)
    for kind in ("auto", "none"):
        monkeypatch.setattr(private, "get_option", lambda name, kind=kind: {"server.fileWatcherType": kind}[name])
        private.watch_no_files("a")
        private.watch_no_files("b")
    assert stopped == ["a"]


def test_streamlit_still_has_what_is_relied_on() -> None:
    relied_on: list[tuple[type, tuple[str, ...]]] = [
        (Runtime, ("is_active_session", "close_session", "_get_async_objs")),
        (SessionManager, ("get_session_info", "get_active_session_info")),
        (MemoryUploadedFileManager, ("remove_file",)),
        (SessionState, ("clear", "_get_widget_id")),
        (MemoryFragmentStorage, ("clear",)),
        (ForwardMsgQueue, ("clear",)),
        (ClientState, ("Clear",)),
        (AppSession, ("disconnect_file_watchers",)),
    ]
    for part, names in relied_on:
        assert all(callable(getattr(part, name)) for name in names)
    set_in_init = AppSession.__init__.__code__.co_names
    kept = {"_scriptrunner", "_event_loop", "_fragment_storage", "_browser_queue", "_client_state", "_local_sources_watcher"}
    assert kept <= set(set_in_init)
    assert "_session_mgr" in Runtime.__init__.__code__.co_names
    assert isinstance(SessionState()._new_widget_state.widget_metadata, dict)
    assert isinstance(SessionState()._new_widget_state.states, dict)
    assert {"on_script_error", "is_history_navigation"} <= set(ScriptRunContext.__dataclass_fields__)
    assert callable(starlette_app.create_streamlit_middleware)
    assert MemorySessionStorage()._cache._ttl > session.LINGER + session._TICK


def test_files_that_nothing_names_are_counted_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = MemoryUploadedFileManager("/upload")
    for name in ("first", "second", "third"):
        manager.add_file("a", UploadedFileRec(file_id=name, name=name, type="", data=bytes(1_000_000)))
    manager.add_file("b", UploadedFileRec(file_id="other", name="other", type="", data=bytes(500_000)))
    monkeypatch.setattr(private, "running", lambda: SimpleNamespace(uploaded_file_mgr=manager))
    assert private.bytes_that_arrived() == 3_500_000
    private.keep_newest_files()
    assert private.arrived(manager) == {"a": {"third": 1_000_000}, "b": {"other": 500_000}}


def test_a_refused_origin_asks_nobody_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control shows that Streamlit would ask an outside service for this machine's address."""
    asked: list[str] = []
    monkeypatch.setattr(net_util, "_external_ip", None)
    monkeypatch.setattr(net_util, "_make_blocking_http_get", lambda url, **_: asked.append(url))
    monkeypatch.setattr(net_util, "get_external_ip", net_util.get_external_ip)  # put back at the end
    assert not server_util.is_url_from_allowed_origins("http://evil.example")
    assert asked
    asked.clear()
    private.stay_inside()
    assert not server_util.is_url_from_allowed_origins("http://evil.example")
    assert asked == []


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", ["http://127.0.0.1:8501"]),
        ("::1", ["http://[::1]:8501"]),
        ("0.0.0.0", ["http://localhost:8501", "http://10.0.0.7:8501"]),
        (None, ["http://localhost:8501", "http://10.0.0.7:8501"]),
    ],
)
def test_addresses_of_the_server(host: str | None, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "get_option", lambda name: host)
    monkeypatch.setattr(net_util, "_internal_ip", "10.0.0.7")
    assert private.addresses() == expected
