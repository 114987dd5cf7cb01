"""The command's entry point: Ctrl-C and SIGTERM end it and its child processes, without a traceback, at any moment.

Until it is loaded the package's first lines listen, and before these, while Python itself starts, Python.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False  # `typing` is slow to load
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, NoReturn


def _stop(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):
        if os.isatty(2):
            os.write(2, b"\n")  # a progress bar has no end of line
    _leave(128 + number)


def main() -> int:
    """`dpviz.cli.main.main` with signals; exit code 130 after Ctrl-C, 143 after SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    from dpviz.cli.main import main as command

    if sys.argv[1:2] in ([], ["app"]) or sys.argv[1].startswith("-"):  # the app is what is meant without a command
        _serve(command)
    return command()


def _serve(command: Callable[[], int]) -> NoReturn:
    # its threads may be at work still: Python aborts now and then where they meet an interpreter that is being taken apart
    try:
        code = command()
    except SystemExit as end:  # Streamlit ends so
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    _leave(code)


def _leave(code: int) -> NoReturn:
    """Ends this process and its children."""
    # not by an exception: one that is raised in a finaliser or a callback is printed and lost, and one that is raised in
    # joblib waits for its workers. Whatever was finished is on the disk
    alive: Callable[[], list[Any]] | None = getattr(sys.modules.get("multiprocessing"), "active_children", None)
    for child in () if alive is None else alive():
        if child.pid is not None:
            with suppress(OSError):  # joblib's processes have no working `kill`
                os.kill(child.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    files = sys.modules.get("dpviz.common.files")
    clean_up: Callable[[], None] | None = getattr(files, "remove_own_parts", None)  # None while it is being loaded
    if clean_up is not None:
        clean_up()
    os._exit(code)
