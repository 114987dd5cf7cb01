"""A progress bar on standard error, only where that is a terminal."""

import io
import sys
import time
from typing import Any, Self


class Bar:
    """A monitor that draws a progress bar; it writes nothing where standard error is no terminal.

    Attributes:
        shown: whether bars are drawn at all (`--quiet`).
    """

    WIDTH = 32
    shown = True

    def __init__(self, stream: io.TextIOBase | Any = None) -> None:
        self._stream = stream or sys.stderr
        self._on = self.shown and bool(getattr(self._stream, "isatty", lambda: False)())
        self._start, self._last, self._first = time.monotonic(), 0.0, -1.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Ends the line."""
        if self._on and self._last:
            self._last = 0.0
            self._stream.write("\n")

    def __call__(self, share: float) -> None:
        if not self._on:
            return
        now = time.monotonic()
        if self._first < 0:
            self._first, self._start = share, now  # what was stored took no time
        left = (now - self._start) * (1 - share) / (share - self._first) if share > self._first else None
        text = f"{share:4.0%}" + (f", about {left:.0f} s left" if left is not None and share < 1 else "")
        if now - self._last > 0.1 or share >= 1:
            self._last = now
            full = round(self.WIDTH * min(share, 1.0))
            self._stream.write(f"\r[{'#' * full}{'.' * (self.WIDTH - full)}] {text:<30}")
            self._stream.flush()
