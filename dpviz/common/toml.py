"""Reads TOML files from outside: at most 1 MB, and every reason why one cannot be read is said in words."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from dpviz.common.validate import InvalidInput, show

MOST_BYTES = 1_000_000


def read(path: str | os.PathLike[str], field: str, fix: str = "Correct the file.") -> dict[str, Any]:
    """The values in a TOML file.

    Args:
        field: names the file in errors.
        fix: what to do where it is not TOML.

    Raises:
        InvalidInput: the file cannot be read, is larger than `MOST_BYTES`, is not UTF-8, is not TOML, or is nested too deeply.
    """
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)  # no more: a device has no end
    except OSError as error:
        raise InvalidInput(field, f"cannot be read ({error.strerror})", f"Check the path {show(os.fspath(path))}.") from error
    except ValueError as error:  # a zero byte
        raise InvalidInput(field, f"{show(os.fspath(path))} is no path", "Give the path of a TOML file.") from error
    if len(content) > MOST_BYTES:
        raise InvalidInput(field, "is larger than 1 MB", "Keep only the settings in it.")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(field, f"is not TOML: {error}", fix) from error
    except RecursionError as error:
        raise InvalidInput(field, "is nested too deeply", fix) from error
