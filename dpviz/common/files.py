"""Where files are kept, and how they are written: whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path

#: begins the names of files and folders that are still being written
PART = ".part-"


def cache_folder() -> Path:
    """The person's own cache folder: DPVIZ_CACHE, or dpviz in XDG_CACHE_HOME, or ~/.cache/dpviz."""
    folder = os.environ.get("DPVIZ_CACHE")
    if folder:
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpviz"


_CHECKOUT = Path(__file__).resolve().parents[2]


def data_folder() -> Path:
    """The person's own tables: DPVIZ_DATA, or data/ of the checkout, or data/ of the current directory."""
    folder = os.environ.get("DPVIZ_DATA")
    if folder:
        return Path(folder)
    return (_CHECKOUT if (_CHECKOUT / "pyproject.toml").is_file() else Path.cwd()) / "data"


_writing: set[Path] = set()


def write(path: Path, content: bytes) -> None:
    """Writes a file beside its place and renames it, so that a reader never sees half of it; makes its folder.

    Raises:
        OSError: it cannot be written; nothing is left behind, and a file that was there stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{PART}{uuid.uuid4().hex}")
    _writing.add(part)
    try:
        with part.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    finally:
        _writing.discard(part)


def remove_own_parts() -> None:
    """Removes files that this process is writing at the moment; for a process that ends at once."""
    for part in list(_writing):
        with suppress(OSError):
            part.unlink()


def part_folder(parent: Path) -> Path:
    """A new folder for work in progress, which `remove_stale_parts` knows.

    Raises:
        OSError: it cannot be made.
    """
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=parent, prefix=PART))


def found(folder: Path, pattern: str) -> list[Path]:
    """Files of a folder by pattern; none where the folder is not there or cannot be read."""
    with suppress(OSError):
        return sorted(folder.glob(pattern))
    return []


def remove_stale_parts(folder: Path, seconds: float) -> None:
    """Removes what a process that was killed left half written, once it is older than `seconds`."""
    for part in found(folder, f"{PART}*"):
        with suppress(OSError):  # another process may remove it too, and a folder may be read-only
            if time.time() - part.stat().st_mtime > seconds:
                shutil.rmtree(part) if part.is_dir() else part.unlink()
