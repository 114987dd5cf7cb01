"""Tables in a folder: a CSV put there is a dataset, and a file that changes is read again."""

import errno
import os
import stat
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dpviz.common import toml
from dpviz.common.files import data_folder
from dpviz.common.limits import Limits, demo
from dpviz.common.memory import Cache
from dpviz.common.validate import InvalidInput, check_bool, check_choice, show
from dpviz.datasets.base import Dataset
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.sources.base import Source
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.decode import ENCODINGS
from dpviz.datasets.table.delimiters import DELIMITERS
from dpviz.datasets.table.formats import READING, SUFFIXES
from dpviz.datasets.table.names import SECOND
from dpviz.datasets.table.prepare import prepare
from dpviz.datasets.table.spec import TableSpec, last_column

PREFIX = "data/"
_tables: Cache[Table] = Cache("tables of the data folder", 512 << 20, lambda t: int(t.frame.memory_usage(deep=True).sum()) + 1)


@dataclass(frozen=True)
class Entry:
    """A table in the folder and, where there is one, the file that says how to read it."""

    path: Path
    sidecar: Path | None


def listing() -> dict[str, Entry]:
    """Tables by dataset name. Names come from here only; text from a person is looked up and never joined to a path."""
    if demo():
        return {}
    try:
        with os.scandir(data_folder()) as entries:
            paths = {entry.name: Path(entry.path) for entry in entries if _usable(entry)}
    except OSError:
        return {}
    tables = {}
    for name in sorted(paths):
        if name.lower().endswith(SUFFIXES):
            sidecar = next((paths[side] for side in sides(name) if side in paths), None)
            tables[PREFIX + name] = Entry(paths[name], sidecar)
    return tables


def _usable(entry: os.DirEntry[str]) -> bool:
    # a pipe or a device would hang its reader
    try:
        return entry.name.isprintable() and not entry.name.startswith(".") and stat.S_ISREG(entry.stat().st_mode)
    except OSError:
        return False


def names() -> tuple[str, ...]:
    """Names of the tables, in order."""
    return tuple(listing())


def stamp(name: str) -> Hashable:
    """A value that changes when the table or its sidecar changes."""
    entry = _entry(name)
    return (str(entry.path), file_stamp(entry.path), entry.sidecar and file_stamp(entry.sidecar), Limits.from_environment())


def load(name: str, intercept: bool) -> Dataset:
    """The dataset of a table in the folder.

    Raises:
        InvalidInput: the file is gone, changes while it is read, or is no table that can be used.
    """
    entry = _entry(name)
    limits = Limits.from_environment().widen()
    options = sidecar_of(entry.sidecar)
    how = reading(options)
    table = _tables.compute(
        name,
        lambda _: read_table(file_bytes(entry.path, limits), name=entry.path.name, limits=limits, **how),
        owner=name,
        version=(file_stamp(entry.path), tuple(how.values()), limits),
    )
    guessed = ""
    if "target" not in options:
        options["target"] = last_column(table.frame, chosen="positive" in options or "above" in options)
        guessed = (
            f"no file {entry.path.stem}.toml says more" if entry.sidecar is None else f"{entry.sidecar.name} names no target"
        )
    spec = TableSpec.from_dict(options)
    source = f"the file {entry.path.name} in the data folder"
    return prepare(
        table.frame, spec, name=name, source=source, intercept=intercept, limits=limits, notes=table.notes, guessed_label=guessed
    )


def reading(options: dict[str, Any]) -> dict[str, Any]:
    """header, delimiter, encoding and sheet for `read_table`, taken out of a sidecar's values; None where it says nothing.

    Raises:
        InvalidInput: one of them is not what it can be.
    """
    how = {key: options.pop(key, None) for key in READING}
    if how["header"] is not None and (isinstance(how["header"], bool) or how["header"] != SECOND):
        check_bool("header", how["header"])
    if how["sheet"] is not None and not isinstance(how["sheet"], str):
        raise InvalidInput("sheet", f"must be the name of a sheet, got {show(how['sheet'])}", 'Write sheet = "its name".')
    if how["delimiter"] is not None:
        signs, delimiter = {word: sign for sign, word in DELIMITERS.items()}, how["delimiter"]
        is_sign = isinstance(delimiter, str) and delimiter in DELIMITERS
        how["delimiter"] = delimiter if is_sign else signs[check_choice("delimiter", delimiter, signs)]
    if how["encoding"] is not None:
        how["encoding"] = check_choice("encoding", how["encoding"], ENCODINGS)
    return how


def sides(name: str) -> tuple[str, str, str]:
    """Names that the file beside a table may have, the most special first."""
    return f"{name}.toml", f"{name.split('.')[0]}.toml", f"{os.path.splitext(name)[0]}.toml"


def _entry(name: str) -> Entry:
    entry = listing().get(name)
    if entry is None:
        raise InvalidInput("dataset", f"{show(name)} is not in the data folder any more", "Put the file back, or choose another.")
    return entry


def file_stamp(path: Path) -> Hashable:
    """A value that changes with a file.

    Raises:
        InvalidInput: it cannot be looked at.
    """
    try:
        info = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino


def file_bytes(path: Path, limits: Limits) -> bytes:
    """The file, if it stays the same while it is read.

    Raises:
        InvalidInput: it cannot be read, changes meanwhile, or is too large.
    """
    try:
        for _ in range(3):
            before = path.stat()
            if not stat.S_ISREG(before.st_mode):
                kind = "a folder" if stat.S_ISDIR(before.st_mode) else "a pipe or a device"
                raise InvalidInput("file", f"{show(str(path))} is {kind}, not a file", "Name a file, or - for standard input.")
            limits.check_bytes(before.st_size)
            if before.st_size == 0:  # the kernel's own files say so too, and some make their reader wait for ever
                return b""
            with path.open("rb") as file:
                content = read_bounded(file, limits)
            after = path.stat()
            if (before.st_mtime_ns, before.st_size, before.st_ino) == (after.st_mtime_ns, after.st_size, after.st_ino):
                return content
    except ValueError as error:  # a zero byte
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("file", f"{show(str(path))} is no path", "Give the path of a file.") from error
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise InvalidInput("file", f"{show(str(path))} is not there", "Check the path.") from error
        raise _unreadable(path, error) from error
    raise InvalidInput(path.name, "changes while it is read", "Wait until it is written, then choose it again.")


def read_bounded(stream: IO[bytes], limits: Limits) -> bytes:
    """All that a stream has, as far as a table may be large: a device or a pipe may have no end.

    Raises:
        InvalidInput: it has more.
    """
    content = stream.read(limits.megabytes * 1_000_000 + 1)
    limits.check_bytes(len(content), more=True)
    return content


def _unreadable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(path.name, f"cannot be read ({error.strerror})", "Check that the file is there and may be read.")


def sidecar_of(path: Path | None) -> dict[str, Any]:
    """The settings beside a table, none where there is no such file.

    Raises:
        InvalidInput: the file cannot be read or is not TOML.
    """
    if path is None or (os.path.isfile(path) and not os.path.getsize(path)):  # an empty one is not opened: see `file_bytes`
        return {}
    return toml.read(path, path.name, "Correct the file; data/README.md has an example.")


SOURCE = Source(place=2, owns=lambda name: name.startswith(PREFIX), load=load, names=names, stamp=stamp)
