"""Starts Streamlit on the app, and sets up the process that serves it, whichever command started it."""

import contextlib
import gc
import importlib.util
import logging
import os
import pkgutil
import re
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware

from dpviz.common.limits import DEMO, Limits
from dpviz.common.validate import InvalidInput, show
from dpviz.dashboard.frame import guard
from dpviz.dashboard.jobs.pool import pool

LATER = 5.0  # seconds after the start in which the first page comes, beside which nothing is loaded

_forever = contextlib.ExitStack()  # held for as long as the process serves


def serve(
    script: Path,
    port: int | None = None,
    host: str | None = None,
    *,
    browser: bool = True,
    allowed: Sequence[str] = (),
    ancestors: Sequence[str] = (),
    base_path: str = "",
    demo: bool = False,
    qr: str | None = None,
) -> None:
    """Serves the app until it is stopped.

    Streamlit reads .streamlit/config.toml beside the script after those of the working and the home folder, so the
    configuration that ships with the app holds wherever it is started; flags and STREAMLIT_* variables still win.

    Args:
        port: 8501, or the next free one, where it is left out.
        host: address to listen on; that of the configuration, this machine only, where it is left out.
        allowed: further names under which the server answers, as behind a proxy.
        ancestors: origins of the sites that may show the app in a frame, such as https://example.org.
        base_path: path below which the app lies behind a proxy, such as "dpviz".
        demo: whether it is a public server: no uploads, no downloads, no data folder.
        qr: address that is printed as a QR code; "" for the app's own on the network, None for none.

    Raises:
        InvalidInput: a DPVIZ_MAX_* variable is no whole number of at least 1, or the host, a name, an origin or the path is none.
    """
    if demo:
        os.environ[DEMO] = "1"
    Limits.from_environment()
    for option, name in [("--host", host), *(("--allow-host", name) for name in allowed)]:
        if name is not None and (not name or not name.isprintable() or any(sign.isspace() or sign == "/" for sign in name)):
            raise InvalidInput(option, f"{name[:60]!r} is no address", "Give one like 127.0.0.1, 0.0.0.0 or a host name.")
    for origin in ancestors:
        if not re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+", origin):
            raise InvalidInput("--frame-ancestors", f"{origin[:60]!r} is no origin", "Give one like https://example.org.")
    if not re.fullmatch(r"/*([A-Za-z0-9_~-][A-Za-z0-9._~-]*(/|$))*", base_path):  # ".." is no part of a path below a host
        raise InvalidInput("--base-path", f"{base_path[:60]!r} is no path", "Give one like dpviz.")
    if qr is not None:
        _check_code(qr, host)
    listed = guard.HOSTS_VARIABLE in os.environ  # by an operator, whose list then holds
    options: dict[str, Any] = {"server.baseUrlPath": base_path.strip("/")} | ({} if listed else {"server.allowedHosts": ["*"]})
    options |= {} if browser else {"server.headless": True}
    options |= {f"server.{name}": value for name, value in (("port", port), ("address", host)) if value is not None}
    sys.argv = [str(script)]  # beside which Streamlit looks for its configuration
    names = None if listed else guard.names_of(host, allowed)
    try:
        st.App(script, **settings(names, ancestors, qr)).run(config=options)
    except OSError as error:  # of a port, Streamlit says it itself
        cause = f"{show(host)} cannot be listened on ({error.strerror})"
        raise InvalidInput("--host", cause, "Give an address of this machine, 127.0.0.1 or 0.0.0.0.") from error


def settings(names: list[str] | None = None, ancestors: Sequence[str] | None = None, code: str | None = None) -> dict[str, Any]:
    """Arguments of `st.App`: its guard, and what it does at its start; without further arguments those of `streamlit run`.

    Args:
        names: see `Guard`.
        ancestors: see `Guard`.
        code: address of the QR code, see `serve`.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        """Prints where the app is, and opens it in a browser where a person sits at this machine."""
        found = addresses()
        print(f"dpviz: {' or '.join(found)}", flush=True)
        if code is not None:
            _print_code(code or found[-1])
        if not st.get_option("server.headless"):
            webbrowser.open(found[0])
        yield
        pool().clear()

    logging.getLogger("streamlit.error_util").addFilter(_in_a_line)
    threading.Thread(target=_load, name="dpviz-warm", daemon=True).start()
    guarded = Middleware(guard.Guard, names=names, ancestors=ancestors)
    return {"middleware": [guarded], "lifespan": lifespan, "on_script_error": _stopped}


def _stopped(error: Exception) -> bool:
    from dpviz.dashboard.frame import page  # with all that a page needs, which is loaded while the server starts

    return page.report_stop(error)


def addresses() -> list[str]:
    """Addresses under which a browser reaches this process's server."""
    host, port, path = (st.get_option(f"server.{name}") for name in ("address", "port", "baseUrlPath"))
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    names = ["localhost", _network_address()] if host in (None, *guard.EVERYWHERE) else [f"[{host}]" if ":" in host else host]
    return [f"{scheme}://{name}:{port}/{path.strip('/')}".rstrip("/") for name in names if name]


def _network_address() -> str:
    """This machine's address for others; "" without a network. Nothing is sent."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # an address of no machine (RFC 5737)
        return str(probe.getsockname()[0])
    return ""


def _check_code(address: str, host: str | None) -> None:
    """
    Raises:
        InvalidInput: the address cannot be printed as a QR code.
    """
    if not address and (host is None or host in guard.LOCAL):
        raise InvalidInput("--qr", "others cannot reach this machine's own address", "Add --host 0.0.0.0, or name an address.")
    if address and not re.fullmatch(r"https?://[!-~]+", address):
        raise InvalidInput("--qr", f"{address[:60]!r} is no address", "Give one like https://class.example.org/dpviz/.")
    if importlib.util.find_spec("segno") is None:
        raise InvalidInput("--qr", "needs segno, which is not installed", "pip install segno.")


def _print_code(address: str) -> None:
    import segno

    print(address)
    segno.make(address).terminal(compact=True)
    sys.stdout.flush()


def _in_a_line(record: logging.LogRecord) -> bool:
    """Writes what is wrong with a value from outside without a traceback; the reader has the message."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, InvalidInput | FloatingPointError):
        record.msg, record.args, record.exc_info = "A page ended early: %s", (error,), None
    return True


def _load() -> None:
    """Loads the libraries and trains the first page's model while the server and the browser start; the other pages then."""
    from dpviz.common.threads import thread_settings
    from dpviz.dashboard.jobs import cached_runs
    from dpviz.experiments.run.spec import RunSpec

    # threads of a matrix product wait for each other busily: on a busy machine up to half of the server's processor time
    _forever.enter_context(thread_settings())
    # the page meets the same problem and tells the person
    with contextlib.suppress(InvalidInput, OSError, RuntimeError, MemoryError):
        cached_runs.outcome(RunSpec())
    gc.collect()
    gc.freeze()  # libraries live as long as the server: most of the time for garbage would be spent on them
    time.sleep(LATER)
    _load_other_pages()


def _load_other_pages() -> None:
    from dpviz import dashboard, papers

    for package in (dashboard, papers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
