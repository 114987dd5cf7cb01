"""Output of commands: characters that a terminal cannot show are transliterated; failed output ends a command with a message."""

from __future__ import annotations

import argparse
import codecs
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dpviz.common import files
from dpviz.common.validate import InvalidInput, escape_controls

if TYPE_CHECKING:
    import pandas as pd

#: exit code after the reader of the output has gone, as in `dpviz list datasets | head -1`: that of a program ended by SIGPIPE
READER_GONE = 141
FAILED = 1
_ERRORS = "dpviz-transliterate"
_SIGNS = {
    "−": "-",
    "–": "-",
    "—": "-",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "·": "*",
    "×": "x",
    "√": "sqrt ",
    "²": "^2",
    "…": "...",
    "→": "->",
}
_SIGNS |= {"’": "'", "‘": "'", "“": '"', "”": '"', "∞": "infinity", "Θ": "Theta", "∇": "grad ", "∈": "in", "½": "1/2"}


#: what a spreadsheet takes for the start of a formula; numbers may begin with a sign
_FORMULA, _SIGNED_NUMBER = ("=", "@", "+", "-"), re.compile(r"[-+]?[0-9.][0-9.eE+-]*|[-+]")


def cell(text: str) -> str:
    """A text as a cell of CSV: visible, and with an apostrophe where a spreadsheet would take it for a formula.

    >>> cell("=1+1"), cell("-1"), cell("+"), cell("yes")
    ("'=1+1", '-1', '+', 'yes')
    """
    shown = escape_controls(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) and not _SIGNED_NUMBER.fullmatch(shown) else shown


def csv_of(table: pd.DataFrame) -> str:
    """A table as CSV with its header; texts by `cell`, nothing for what is missing."""
    shown = table.map(lambda v: cell(v) if isinstance(v, str) else v)
    return shown.set_axis([cell(str(name)) for name in table.columns], axis=1).to_csv(index=False, lineterminator="\n")


def add_place(command: Any, kind: str, *, required: bool = False) -> None:
    """Adds --out and --overwrite to a command that writes one file.

    Args:
        kind: the file in words, for its help.
    """
    command.add_argument("-o", "--out", metavar="FILE", required=required, help=f"{kind}; a new one without --overwrite")
    command.add_argument("--overwrite", action="store_true", help="let --out replace a file that is there")


def place(options: argparse.Namespace, endings: Collection[str] = ()) -> Path | None:
    """The file of --out, checked before anything is computed; None where it was left out.

    Args:
        endings: those that its name may have; any where there are none.

    Raises:
        InvalidInput: it is there already, its folder is not there or cannot be written, or no file can have that name.
    """
    if options.out is None:
        if options.overwrite:
            raise InvalidInput("--overwrite", "belongs to --out, which is left out", "Name a file with --out.")
        return None
    path, text = Path(options.out), repr(options.out)
    try:
        if not options.out.strip() or path.name in ("", "."):
            raise InvalidInput("--out", f"names no file: {text}", "Name a file.")
        if os.path.isdir(path):
            raise InvalidInput("--out", f"{text} is a folder", "Name a file in it.")
        if endings and path.suffix.lower() not in endings:
            raise InvalidInput("--out", f"must end in {' or '.join(endings)}, got {path.name!r}", "Name a file with that ending.")
        if not os.path.isdir(path.absolute().parent):
            cause = f"cannot be written: the folder {os.fspath(path.parent)!r} is not there"
            raise InvalidInput("--out", cause, "Make it first, or name one that is there.")
        if not os.access(path.absolute().parent, os.W_OK):
            raise InvalidInput("--out", f"cannot be written: {text}", "Name a file in a folder that can be written.")
        if not stat.S_ISREG(path.lstat().st_mode):  # a rename would put a file in the place of a device
            raise InvalidInput("--out", f"{text} is there already and no plain file", "Name a new file.")
        if not options.overwrite:
            raise InvalidInput("--out", f"{text} is there already", "Name a new file, or add --overwrite.")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InvalidInput("--out", f"cannot be written: {text} ({error.strerror})", "Give it a shorter name.") from error
    except ValueError as error:  # a zero byte
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("--out", f"names no file: {text}", "Name a file.") from error
    return path


def save(path: Path, content: bytes, otherwise: str = "Name a file in a folder that can be written.") -> None:
    """Writes the file of --out, whole or not at all.

    Raises:
        InvalidInput: it cannot be written; `otherwise` is the advice.
    """
    try:
        files.write(path, content)
    except OSError as error:
        raise InvalidInput("--out", f"cannot be written: {error.strerror}", otherwise) from error


class OutputFailed(Exception):
    """Standard output cannot be written; `__cause__` is the `OSError`."""


class _Stream:
    """A text stream whose failure differs from any other `OSError`.

    Args:
        stream: where it writes; None where it was closed before the start.
        needed: whether a failure ends the command. What is not its answer, such as progress, is left out instead.
    """

    def __init__(self, stream: TextIO | None, needed: bool) -> None:
        self._stream, self._needed = stream, needed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes text."""
        self._do("write", text)
        return len(text)

    def flush(self) -> None:
        """Hands over what was written."""
        if self._stream is not None:
            self._do("flush")

    def _do(self, name: str, *arguments: str) -> None:
        try:
            if self._stream is None:
                raise OSError(9, "it is closed")
            getattr(self._stream, name)(*arguments)
        except OSError as error:
            if self._needed:
                raise OutputFailed from error


@contextmanager
def guard_streams() -> Iterator[None]:
    """Inside, standard output and standard error are such streams.

    Raises:
        OutputFailed: standard output cannot be written.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ERRORS)
    sys.stdout, sys.stderr = _Stream(before[0], True), _Stream(before[1], False)
    try:
        yield
        sys.stdout.flush()
    except OutputFailed:
        _silence(before[0])
        raise
    finally:
        sys.stdout, sys.stderr = before


def _silence(stream: TextIO | None) -> None:
    """Sends what is left in a stream to nowhere: Python would write it again at its end, fail again, and say so."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        if stream is not None:
            os.dup2(null, stream.fileno())
        os.close(null)


def _transliterated(error: UnicodeError) -> tuple[str, int]:
    """Characters that an encoding lacks, in characters that every encoding has: "epsilon" for ε."""
    assert isinstance(error, UnicodeEncodeError)
    return "".join(map(_transliterate, error.object[error.start : error.end])), error.end


def _transliterate(sign: str) -> str:
    name = unicodedata.name(sign, "")
    if name.startswith(("GREEK SMALL LETTER ", "GREEK CAPITAL LETTER ")):
        return name.split()[3].lower()
    plain = _SIGNS.get(sign) or unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode()
    return plain or sign.encode("ascii", "backslashreplace").decode()


codecs.register_error(_ERRORS, _transliterated)
