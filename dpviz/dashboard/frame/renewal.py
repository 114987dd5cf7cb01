"""A server whose memory has grown starts anew once all sessions ended: what Python has freed goes back to the system only so.

It takes its own place, with the same process number and a socket that stays open: people who come meanwhile wait for seconds.
By then their sessions have ended and caches are empty; cells of sweeps lie on the disk. Done where /proc tells the memory.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from dpviz.dashboard.frame import private

GROWN = 32 << 20  # bytes above the start from which on it is worth a new start
QUIET = 60.0  # seconds without a session, a job or a request

_start = sys.maxsize  # bytes when all libraries were loaded
_asked = 0.0  # when a session was last active, in seconds of the monotonic clock


def started() -> None:
    """Remembers the memory of a server that has loaded everything."""
    global _start
    with suppress(OSError):
        _start = _resident()


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def asked() -> None:
    """Notes that a session is active."""
    global _asked
    _asked = time.monotonic()


def due() -> bool:
    """True where the memory has grown and the server could start anew."""
    return private.listens() and _start < sys.maxsize and _resident() - _start > GROWN


def renew() -> None:
    """Starts anew in the place of this process, where no session was active for a while."""
    if time.monotonic() - _asked > QUIET:
        print("dpviz: all sessions have ended; starts anew to give memory back", flush=True)
        sys.stderr.flush()
        with suppress(OSError):  # Python has gone: this process serves on
            private.start_anew()
        asked()
