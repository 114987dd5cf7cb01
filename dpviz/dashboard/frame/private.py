"""Undocumented functions of Streamlit that the app uses. `tests/dashboard/test_private.py` tries each.

A script's context is documented in Streamlit's guide to multithreading; sessions have no documented name and cannot be closed
(https://github.com/streamlit/streamlit/issues/8545). No issue upstream asks for the others: whether a page was reached by
"Back", which controls the browser knows, the main script's path, letting go of an upload's bytes and of options
of controls, and files that are watched after all.
"""

from pathlib import Path

from streamlit import get_option, runtime
from streamlit.runtime.scriptrunner import ScriptRunContext, get_script_run_ctx


def _context() -> ScriptRunContext | None:
    return get_script_run_ctx(suppress_warning=True)


def is_session() -> bool:
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


def came_by_history() -> bool:
    """True where the page is drawn because the reader went back or forward, and where no page is drawn."""
    context = _context()
    return context is None or context.is_history_navigation


def browser_knows(key: str) -> bool:
    """True where the browser has sent a value of a control, which it still has."""
    context = _context()
    if context is None:
        return False
    state = context.session_state._state
    return state._get_widget_id(key) in state._new_widget_state.states


def forget_controls() -> None:
    """Lets go of the options of this session's controls but those that the page has drawn so far.

    Streamlit keeps them as long as the session lives, also of controls that are no longer drawn. What is drawn later comes back.
    """
    context = _context()
    if context is not None:
        metadata, drawn = (
            context.session_state._state._new_widget_state.widget_metadata,
            context.shared.widget_ids_this_run.snapshot(),
        )
        for control in set(metadata) - set(drawn):
            del metadata[control]


def release_files() -> None:
    """Has the server let go of the bytes of all files that were uploaded in this session."""
    session = session_id()
    if session is not None:
        runtime.get_instance().uploaded_file_mgr.remove_session_files(session)


def watch_no_files() -> None:
    """Keeps to `fileWatcherType`: Streamlit forgets it for a session that connects again, and then reads all modules at each run.

    That holds all pages up for seconds (`WebsocketSessionManager.connect_session` of 1.67 calls `register_file_watchers`).
    """
    session = session_id()
    if session is None or get_option("server.fileWatcherType") != "none":
        return
    server = runtime.get_instance()
    if type(server) is not runtime.Runtime:  # of a test
        return
    known = server._session_mgr.get_active_session_info(session)
    if known is not None and known.session._local_sources_watcher is not None:
        server._get_async_objs().eventloop.call_soon_threadsafe(known.session.disconnect_file_watchers)


def close(session: str) -> None:
    """Ends a session with its files; call on the server's event loop."""
    if runtime.exists():
        runtime.get_instance().close_session(session)
