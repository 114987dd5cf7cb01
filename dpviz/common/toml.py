"""Reads TOML files: declarations of this package, and files from outside.

Those are bounded in size and depth, and every reason why one cannot be read is said in words.
"""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from dpviz.common.validate import InvalidInput, show

MOST_BYTES = 1 << 16


def declarations(module: str) -> dict[str, Any]:
    """The values in the TOML file of this package that stands beside a module and has its name."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))


def read(path: str | os.PathLike[str], field: str, fix: str = "Correct the file.", most: int = MOST_BYTES) -> dict[str, Any]:
    """The values in a TOML file.

    Args:
        field: names the file in errors.
        fix: what to do where it is not TOML.
        most: bytes that it may have.

    Raises:
        InvalidInput: the file cannot be read, is larger than `most`, is not UTF-8, is not TOML, or is nested too deeply.
    """
    return parse(read_bytes(path, field, most), field, fix, most)


def read_bytes(path: str | os.PathLike[str], field: str, most: int, absent: str = "") -> bytes:
    """The content of a plain file, at most one byte more than `most`.

    Args:
        absent: what to do where it is not there; to check the path by default.

    Raises:
        InvalidInput: the file cannot be read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would make its reader wait for ever
            raise InvalidInput(field, f"{show(os.fspath(path))} is a folder, a pipe or a device, not a file", "Give a TOML file.")
        with Path(path).open("rb") as stream:
            return stream.read(most + 1)
    except OSError as error:
        fix = absent if absent and isinstance(error, FileNotFoundError) else f"Check the path {show(os.fspath(path))}."
        raise InvalidInput(field, f"cannot be read ({error.strerror})", fix) from error
    except ValueError as error:  # a zero byte
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(field, f"{show(os.fspath(path))} is no path", "Give the path of a TOML file.") from error


def parse(content: bytes, field: str, fix: str = "Correct the file.", most: int = MOST_BYTES) -> dict[str, Any]:
    """The values of a TOML file's content; see `read`.

    Raises:
        InvalidInput: it is larger than `most`, is not UTF-8, is not TOML, or is nested too deeply.
    """
    if len(content) > most:
        raise InvalidInput(field, f"is larger than {most // 1024:,} KiB", "Keep only the settings in it.")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, OverflowError, RecursionError) as error:  # TOML, UTF-8, too many digits, a date that is none, depth
        raise InvalidInput(field, f"is not TOML: {str(error)[:200]}", fix) from error
