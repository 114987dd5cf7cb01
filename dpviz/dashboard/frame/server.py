"""Starts Streamlit on the app, and sets up the process that serves it, whichever command started it."""

import contextlib
import gc
import importlib.util
import logging
import os
import pkgutil
import re
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from starlette.middleware import Middleware

from dpviz.common import memory
from dpviz.common.limits import DEMO, Limits
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.frame import guard, private, renewal

LATER = 5.0  # seconds after the start in which the first page comes, beside which nothing is loaded

_lock = threading.Lock()
_guard: Middleware | None = None
_code: str | None = None  # the address of `--qr`
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
    arguments = ["run", str(script)]
    if base_path.strip("/"):
        arguments += ["--server.baseUrlPath", base_path.strip("/")]
    if port is not None:
        arguments += ["--server.port", str(port)]
    if host is not None:
        arguments += ["--server.address", host]
    if not browser:
        arguments += ["--server.headless", "true"]
    if guard.left_to_streamlit():
        names = None
    else:
        names = guard.names_of(host, allowed)
        arguments += ["--server.allowedHosts", "*"]  # the guard knows the names
    prepare(guard.made(names, addresses=host is not None and host not in guard.LOCAL, ancestors=ancestors))
    private.start(arguments)


def _check_code(address: str, host: str | None) -> None:
    """Keeps the address that is to be printed as a QR code, if that can be done."""
    global _code
    if not address and (host is None or host in guard.LOCAL):
        raise InvalidInput("--qr", "others cannot reach this machine's own address", "Add --host 0.0.0.0, or name an address.")
    if address and not re.fullmatch(r"https?://[!-~]+", address):
        raise InvalidInput("--qr", f"{address[:60]!r} is no address", "Give one like https://class.example.org/dpviz/.")
    if importlib.util.find_spec("segno") is None:
        raise InvalidInput("--qr", "needs segno, which is not installed", "pip install segno.")
    _code = address


def _print_code(address: str) -> None:
    import segno

    print(address)
    segno.make(address).terminal(compact=True)
    sys.stdout.flush()


def middleware() -> list[Middleware]:
    """The guard in front of the app: the one that `serve` has made, or under `streamlit run` one by Streamlit's options."""
    prepare(guard.made())
    return [] if _guard is None else [_guard]


@contextlib.asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    """Prints where the app is, and opens it in a browser where a person sits at this machine; called when the server listens."""
    if private.anew:
        yield
        return
    found = private.addresses()
    print(f"dpviz: {' or '.join(found)}", flush=True)
    if _code is not None:
        _print_code(_code or found[-1])
    if not private.get_option("server.headless"):
        private.open_browser(found[0])
    yield


def prepare(guarded: Middleware) -> None:
    """Sets this process up for serving behind a guard; only the first call does anything."""
    global _guard
    with _lock:
        if _guard is not None:
            return
        _guard = guarded
    # M_ARENA_MAX: of many heaps, one for a few threads each, all are left full of holes
    memory.c_library("mallopt", -8, 1)
    private.stay_inside()
    private.look_keys_up()
    private.send_to_the_present_client()
    logging.getLogger("streamlit.error_util").addFilter(_in_a_line)
    threading.Thread(target=_start, name="dpviz-warm", daemon=True).start()


def _in_a_line(record: logging.LogRecord) -> bool:
    """Writes what is wrong with a value from outside without a traceback; the reader has the message."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, InvalidInput | FloatingPointError):
        record.msg, record.args, record.exc_info = "A page ended early: %s", (error,), None
    return True


def _start() -> None:
    _warm()
    time.sleep(LATER)
    _load()
    renewal.started()


def _warm() -> None:
    """Loads the libraries and trains the first page's model while the server and the browser start."""
    from dpviz.common.threads import thread_settings
    from dpviz.dashboard.jobs import cached_runs
    from dpviz.experiments.run.spec import RunSpec

    # threads of a matrix product wait for each other busily: on a busy machine up to half of the server's processor time
    _forever.enter_context(thread_settings())
    # the page meets the same problem and tells the person
    with contextlib.suppress(InvalidInput, OSError, RuntimeError, MemoryError):
        cached_runs.outcome(RunSpec())
    # nothing else in the server moves while garbage is collected, and nearly all of that time is spent on libraries, which
    # live as long as the server
    gc.collect()
    gc.freeze()


def _load() -> None:
    """Loads what the first page does not need and a class does, while no session waits for a page."""
    from dpviz import dashboard, papers
    from dpviz.dashboard.jobs import page_priority

    def give_way() -> None:
        while page_priority.page_waits():
            time.sleep(page_priority.TOGETHER)

    give_way()
    importlib.import_module("sklearn.datasets")  # and scipy.stats with it
    private.load_icons()
    for package in (dashboard, papers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
