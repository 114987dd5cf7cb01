"""All that the app uses of Streamlit beyond its public interface. A test of each stands in `tests/dashboard/test_private.py`.

Streamlit 1.67 has no public way to: name a session and close it, tell a page from another one, hear of "Back", tell whether the
browser has spoken of a control, catch a page's error, let go of what a session holds, draw a control without a copy of that,
load the names of icons beforehand, send a page to a browser that has just connected again, or listen on a socket that is there.
"""

import importlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import streamlit as st
from streamlit import cli_util, get_option, net_util, runtime
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import ScriptRunContext, get_script_run_ctx
from streamlit.runtime.session_manager import ActiveSessionInfo
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import SessionState
from streamlit.web import cli
from streamlit.web.server import server_util
from streamlit.web.server.starlette import starlette_server
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

_PATIENCE = 10.0  # seconds that the server's event loop may take to close a session
_SOCKET = "DPVIZ_SOCKET"  # the number of the socket that a process listened on whose place this one takes

_listening: socket.socket | None = None
anew = _SOCKET in os.environ  # whether this process has taken the place of one that served


def start(arguments: Sequence[str]) -> None:
    """Runs Streamlit's command until it is stopped."""
    usual, kept = starlette_server._bind_socket, os.environ.pop(_SOCKET, "")

    def bind(address: str, port: int, backlog: int) -> socket.socket:
        global _listening
        _listening = socket.socket(fileno=int(kept)) if kept else usual(address, port, backlog)
        _listening.setblocking(False)
        return _listening

    starlette_server._bind_socket = bind
    cli.main(list(arguments), standalone_mode=False, prog_name="streamlit")


def listens() -> bool:
    """True where this process serves by `start`."""
    return _listening is not None


def start_anew() -> NoReturn:
    """Runs the command of this process again in its place; connections wait until it listens."""
    assert _listening is not None
    os.environ[_SOCKET] = str(_listening.fileno())  # which Streamlit lets a new program inherit
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    except OSError:
        del os.environ[_SOCKET]
        raise


def stay_inside() -> None:
    """No request leaves the machine: Streamlit asks an outside service for its own address when it refuses an origin."""
    net_util.get_external_ip = lambda: None


def send_to_the_present_client() -> None:
    """Output of a page reaches a browser that has connected again while the server sent messages to others.

    Streamlit 1.67 goes through a list of sessions with the clients that they had when it began, which at a busy server was
    seconds ago, and loses what it sends to one that has left.
    """
    usual = Runtime._send_message

    def send(self: Runtime, info: ActiveSessionInfo, message: ForwardMsg) -> None:
        usual(self, self._session_mgr.get_active_session_info(info.session.id) or info, message)

    Runtime._send_message = send  # type: ignore[assignment,method-assign]


class _State(Mapping[str, Any]):
    """The keys and values of a session's `filtered_state`, looked up key by key."""

    def __init__(self, state: SafeSessionState) -> None:
        self._session = state

    def __contains__(self, key: object) -> bool:
        return self._session.__contains__(str(key))

    def __getitem__(self, key: str) -> Any:
        return self._session[key]

    def _copy(self) -> dict[str, Any]:
        with self._session._lock:
            return self._session._state.filtered_state

    def __iter__(self) -> Iterator[str]:
        return iter(self._copy())

    def __len__(self) -> int:
        return len(self._copy())


def look_keys_up() -> None:
    """Controls look at their own key only: each would copy the whole state of its session, a tenth of a page's time."""
    SafeSessionState.filtered_state = property(_State)  # type: ignore[assignment,method-assign]


def load_icons() -> None:
    """Loads the names of icons, which Streamlit reads when the first one is drawn."""
    for name in ("emojis", "material_icon_names"):
        importlib.import_module(f"streamlit.{name}")


def host_allowed(header: str) -> bool:
    """True where Streamlit's own list of names, `server.allowedHosts`, allows a Host header."""
    return is_host_allowed(header)


def addresses() -> list[str]:
    """Addresses under which a browser reaches this process's server."""
    host = get_option("server.address")
    names = ["localhost", net_util.get_internal_ip()] if host in (None, "0.0.0.0", "::") else [host]
    return [server_util.get_url(f"[{name}]" if ":" in name else name) for name in names if name]


def open_browser(address: str) -> None:
    """Opens a page in this machine's browser."""
    cli_util.open_browser(address)


def running() -> Runtime | None:
    """The runtime of this process's sessions; Streamlit's tests of pages have a stand-in. None where there are none."""
    return runtime.get_instance() if runtime.exists() else None


def _context() -> ScriptRunContext | None:
    return get_script_run_ctx(suppress_warning=True)


def in_session() -> bool:
    """True where this thread draws a page of a session."""
    return _context() is not None


def session_id() -> str | None:
    """The id of the session whose page this thread draws; None where there is no session or no server."""
    context = _context()
    return None if context is None or not runtime.exists() else context.session_id


def main_script() -> Path | None:
    """The script that was started; None where no page is drawn."""
    context = _context()
    return None if context is None else Path(context.main_script_path)


def page() -> str:
    """The hash of the page that is drawn; "" where none is."""
    context = _context()
    return "" if context is None else context.page_script_hash


def through_history() -> bool:
    """True where the page is drawn because the reader went back or forward, and where no page is drawn."""
    context = _context()
    return context is None or context.is_history_navigation


def on_error(handler: Callable[[Exception], bool]) -> None:
    """Has a function called with the error that ends the page, before Streamlit shows it; it says whether that is done."""
    context = _context()
    if context is not None:
        context.on_script_error = handler


def spoken_of(key: str) -> bool:
    """True where the browser has said something of a control, which it still has."""
    state = _state()
    return state is not None and state._get_widget_id(key) in state._new_widget_state.states


def _state() -> SessionState | None:
    context = _context()
    return None if context is None else context.session_state._state


def forget_controls() -> None:
    """Lets go of the options and callbacks of this session's controls but those that the page has drawn so far.

    Streamlit keeps them as long as the session lives, also of controls that are no longer drawn. What is drawn later comes back.
    """
    context, state = _context(), _state()
    if context is not None and state is not None:
        metadata = state._new_widget_state.widget_metadata
        drawn = context.shared.widget_ids_this_run.snapshot()
        for control in [one for one in metadata if one not in drawn]:
            del metadata[control]


def browser() -> bytes | None:
    """A secret that only this browser knows, against forged requests; the cookie hides it anew each time. None without one."""
    token, _ = decode_xsrf_token_string(st.context.cookies.get("_streamlit_xsrf", ""))
    return token or None


def release(file_id: str) -> None:
    """Has the server let go of the bytes of a file that was uploaded."""
    session, found = session_id(), running()
    if session is not None and found is not None:
        manager = found.uploaded_file_mgr
        if isinstance(manager, MemoryUploadedFileManager):  # Streamlit's page tests have another one
            manager.remove_file(session, file_id)


def arrived(manager: object) -> dict[str, dict[str, int]]:
    """Sizes of the files that were uploaded and not let go of, by session and file, the oldest first."""
    if not isinstance(manager, MemoryUploadedFileManager):
        return {}
    sessions = list(manager.file_storage.items())
    return {session: {file: len(record.data) for file, record in list(files.items())} for session, files in sessions}


def bytes_that_arrived() -> int:
    """Memory that files take that were uploaded and not let go of."""
    found = running()
    manager = None if found is None else found.uploaded_file_mgr
    return sum(sum(files.values()) for files in arrived(manager).values())


def keep_newest_files() -> None:
    """Lets go of all files of each session but the newest: its page has one place for a file, so nothing asks for the others."""
    found = running()
    manager = None if found is None else getattr(found, "uploaded_file_mgr", None)
    for session, files in arrived(manager).items():
        assert isinstance(manager, MemoryUploadedFileManager)
        for file in list(files)[:-1]:
            manager.remove_file(session, file)


def watch_no_files(session: str) -> None:
    """Keeps to `fileWatcherType`: Streamlit 1.67 forgets it for a session that connects again, and then reads all modules."""
    found = running()
    if found is None or type(found) is not Runtime:
        return
    info = found._session_mgr.get_active_session_info(session)
    if info is not None and info.session._local_sources_watcher is not None and get_option("server.fileWatcherType") == "none":
        found._get_async_objs().eventloop.call_soon_threadsafe(info.session.disconnect_file_watchers)


def connected(found: Runtime) -> int:
    """Number of sessions whose browser is connected, also of those that have drawn nothing yet."""
    return found._session_mgr.num_active_sessions()


def close(found: Runtime, sessions: Collection[str]) -> list[str]:
    """Closes those sessions that are disconnected, and empties them; returns their ids."""
    closed: list[str] = []
    end = threading.Event()

    def close_all() -> None:
        for session in sessions:
            if not found.is_active_session(session):  # the person may have come back just now
                kept = found._session_mgr.get_session_info(session)
                found.close_session(session)
                if kept is not None:
                    _empty(kept.session)
                closed.append(session)
        end.set()

    if sessions:
        found._get_async_objs().eventloop.call_soon_threadsafe(close_all)
        end.wait(_PATIENCE)
    return list(closed)


def _empty(session: AppSession) -> None:
    """Takes everything out of a session that was closed: Streamlit's loop keeps the last one until another one connects."""
    if session._scriptrunner is not None:  # the page is still being drawn, and is about to hear that it shall stop
        session._event_loop.call_later(0.5, _empty, session)
        return
    session.session_state.clear()
    session.session_state._new_widget_state.widget_metadata.clear()  # options and callbacks of controls, which `clear` leaves
    session._fragment_storage.clear()
    session._browser_queue.clear()
    session._client_state.Clear()
