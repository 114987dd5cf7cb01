"""The one boundary at which an unforeseen error is stopped, so that a page, a job or a child process survives it.

Errors that are foreseen are named where they are caught, as everywhere else. What reaches a boundary beside them is a mistake
in this program or in a library: it is logged with its traceback and reported in words. Nothing is stopped anywhere else.
"""

from __future__ import annotations

import logging
import re
from types import TracebackType

from dpviz.common.validate import InvalidInput

_HASH = re.compile(r"[0-9a-f]{32,}")  # keys of runs hold one of the rows, which must not be written down


class Boundary:
    """Runs a block of work and keeps what stopped it, instead of raising it.

    Attributes:
        error: what stopped the work, None where nothing did.

    >>> with Boundary("dividing") as work:
    ...     result = 1 / 4
    >>> work.error is None
    True
    """

    def __init__(self, what: str, *, through: tuple[type[Exception], ...] = ()) -> None:
        """
        Args:
            what: the work, for the log.
            through: errors that are raised as they are. Whatever is no `Exception` always is: signals, and Streamlit's own.
        """
        self._what, self._through = _HASH.sub("…", what), through
        self.error: Exception | None = None

    def __enter__(self) -> Boundary:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if not isinstance(error, Exception) or isinstance(error, self._through):
            return False
        self.error = error
        if not isinstance(error, InvalidInput | MemoryError):
            logging.getLogger(__name__).error("%s failed", self._what, exc_info=error)
        return True

    def problem(self, memory: str, fix: str) -> tuple[str, str] | None:
        """(cause, fix) in words; None where nothing stopped the work.

        Args:
            memory: what would need less memory.
            fix: the advice where no better is known.
        """
        if self.error is None:
            return None
        if isinstance(self.error, InvalidInput):
            return f"{self.error.field}: {self.error.cause}", str(self.error.fix)
        if isinstance(self.error, MemoryError):
            return "this needs more memory than there is", memory
        return str(self.error) or type(self.error).__name__, fix
