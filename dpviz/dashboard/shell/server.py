"""Starts Streamlit on the app."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from pathlib import Path

from streamlit.web import cli

from dpviz.common.validate import InvalidInput
from dpviz.datasets.process.limits import Limits

#: seconds that a computing thread may hold the interpreter while a page waits for it; Python's own 0.005 makes a page that
#: is drawn beside two sweeps several times slower
SWITCH = 0.0005


def serve(script: Path, port: int | None = None, *, browser: bool = True) -> None:
    """Serves the app until it is stopped.

    Streamlit reads .streamlit/config.toml beside the script after those of the working and the home folder, so the
    configuration that ships with the app holds wherever it is started; flags and STREAMLIT_* variables still win.

    Raises:
        InvalidInput: a DPVIZ_MAX_* variable is no whole number of at least 1.
    """
    limits = Limits.from_environment()
    # what Streamlit takes is what the reader takes, so that one variable sets both
    os.environ.setdefault("STREAMLIT_SERVER_MAX_UPLOAD_SIZE", str(limits.megabytes))
    sys.setswitchinterval(SWITCH)
    threading.Thread(target=_warm, name="dpviz-warm", daemon=True).start()
    arguments = ["run", str(script)]
    if port is not None:
        arguments += ["--server.port", str(port)]
    if not browser:
        arguments += ["--server.headless", "true"]
    cli.main(arguments, standalone_mode=False, prog_name="streamlit")


def _warm() -> None:
    """Loads the libraries and trains the first page's model while the server and the browser start."""
    from dpviz.dashboard.work import cached_runs
    from dpviz.experiments.spec import RunSpec

    # the page meets the same problem and tells the person
    with contextlib.suppress(InvalidInput, OSError, RuntimeError, MemoryError):
        cached_runs.outcome(RunSpec())
    # Streamlit collects garbage after every run of a page and of each part that watches a job, 0.1 s in which nothing
    # else in the server moves; nearly all of it is spent on libraries, which live as long as the server
    gc.collect()
    gc.freeze()
