"""Output of commands: cells of CSV, and the file of --out."""

from __future__ import annotations

import argparse
import os
import re
import stat
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpviz.common import files
from dpviz.common.validate import InvalidInput, escape_controls

if TYPE_CHECKING:
    import pandas as pd

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
