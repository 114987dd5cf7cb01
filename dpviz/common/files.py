"""Folders for files, and atomic writes.

Finished work as files in a folder, each with a digest that is checked when it is read.
"""

import glob
import hashlib
import os
import shutil
import stat
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, ClassVar, Self

import platformdirs

from dpviz.common import files

#: begins the names of files and folders that are still being written
PART = ".part-"


def cache_folder() -> Path:
    """The person's own cache folder: DPVIZ_CACHE, or where the system keeps caches (~/.cache/dpviz on Linux)."""
    folder = os.environ.get("DPVIZ_CACHE")
    return Path(folder) if folder else platformdirs.user_cache_path("dpviz", appauthor=False)


_CHECKOUT = Path(__file__).resolve().parents[2]


def data_folder() -> Path:
    """The person's own tables: DPVIZ_DATA, or data/ of the checkout, or data/ of the current directory."""
    folder = os.environ.get("DPVIZ_DATA")
    if folder:
        return Path(folder)
    return (_CHECKOUT if (_CHECKOUT / "pyproject.toml").is_file() else Path.cwd()) / "data"


_writing: set[Path] = set()
#: flags that follow no link, do not wait for a pipe and read bytes, where there are any
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def write(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Writes a file beside its place and renames it, so that a reader never sees half of it; makes its folder.

    Args:
        mode: permissions, before those that the process's umask takes away.

    Raises:
        OSError: it cannot be written; nothing is left behind, and a file that was there stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{PART}{uuid.uuid4().hex}")
    _writing.add(part)
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
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


class Untrusted(Exception):
    """A file is no plain one, too large, or can be written by others."""


def open_own(path: Path, most: int) -> BinaryIO:
    """Opens a plain file that only its owner, who runs this process, can write.

    Args:
        most: bytes that it may have.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it cannot be read.
        Untrusted: it is a link, a device or a pipe (which are not opened), too large, or others can write it.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise Untrusted
    descriptor = os.open(path, os.O_RDONLY | _PLAIN)
    status = os.fstat(descriptor)  # of what was opened, whatever has its name now
    own = os.name != "posix" or (status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    if stat.S_ISREG(status.st_mode) and status.st_size <= most and own:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise Untrusted


def read_own(path: Path, most: int) -> bytes:
    """Content of such a file; see `open_own`."""
    with open_own(path, most) as stream:
        return stream.read(most)


def write_folder(folder: Path, contents: dict[str, bytes]) -> None:
    """Writes a new folder of files for their owner only, as a whole or not at all; what a killed process left of it goes.

    Raises:
        OSError: it cannot be written, or is there already; nothing is left behind.
    """
    name = f".{folder.name[:50]}"  # short enough for every file system
    for part in find_files(folder.parent, f"{PART}????????{glob.escape(name)}"):
        shutil.rmtree(part, ignore_errors=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=PART, suffix=name))
    _writing.add(part)
    try:
        for file, content in contents.items():
            write(part / file, content, mode=0o600)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        _writing.discard(part)


def remove_own_parts() -> None:
    """Removes what this process is writing at the moment; for a process that ends at once."""
    for part in list(_writing):
        with suppress(OSError):
            shutil.rmtree(part) if part.is_dir() else part.unlink()


def part_folder(parent: Path) -> Path:
    """A new folder for work in progress, which `remove_stale_parts` knows.

    Raises:
        OSError: it cannot be made.
    """
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=parent, prefix=PART))


def find_files(folder: Path, pattern: str) -> list[Path]:
    """Files of a folder by pattern; none where the folder is not there or cannot be read."""
    with suppress(OSError):
        return sorted(folder.glob(pattern))
    return []


def remove_stale_parts(folder: Path, seconds: float) -> None:
    """Removes what a process that was killed left half written, once it is older than `seconds`."""
    for part in find_files(folder, f"{PART}*"):
        with suppress(OSError):  # another process may remove it too, and a folder may be read-only
            if time.time() - part.stat().st_mtime > seconds:
                shutil.rmtree(part) if part.is_dir() else part.unlink()


class FileStore:
    """Contents by key. Files are written at once or not at all.

    A folder that cannot be read or written is no error: the work is done anyway, and one notice says so.

    Attributes:
        room: name of the folder in `cache_folder()`.
        suffix: of the files.
        what: plural noun of what is kept, such as "Models"; the notice begins with it.
        then: clause on what happens where it cannot be kept, such as "called again, they are trained anew"; the notice
            ends with it.
        most: bytes of one file.
        most_of_all: bytes of all files that `prune` leaves.
        folder: where the files are; made when first written to.
        notices: what a person should know.
    """

    room: ClassVar[str]
    suffix: ClassVar[str]
    what: ClassVar[str]
    then: ClassVar[str]
    most: ClassVar[int]
    most_of_all: ClassVar[int]

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.notices: list[str] = []
        self._refused = False

    @classmethod
    def personal(cls) -> Self:
        """The one in `cache_folder()`, which the app and the shell share; the oldest files beyond `most_of_all` are deleted."""
        kept = cls(files.cache_folder() / cls.room)
        kept.prune()
        return kept

    def path(self, key: str) -> Path:
        """The file of a key."""
        return self.folder / f"{key}{self.suffix}"

    def read(self, key: str) -> bytes | None:
        """The content under a key; None where there is none or it cannot be read, empty where it is damaged or untrusted."""
        try:
            digest, _, content = files.read_own(self.path(key), self.most).partition(b"\n")
        except FileNotFoundError:
            return None
        except files.Untrusted:
            return b""
        except OSError as error:
            self._cannot(error)
            return None
        return content if digest == _digest(key, content) else b""

    def write(self, key: str, content: bytes) -> None:
        """Keeps a content behind the SHA-256 of the key and itself; where that is impossible the work goes on, with a notice."""
        try:
            files.write(self.path(key), _digest(key, content) + b"\n" + content, mode=0o600)
        except OSError as error:
            self._cannot(error)

    def _cannot(self, error: OSError) -> None:
        if not self._refused:
            self._refused = True
            self.notices.append(f"{self.what} cannot be kept in {self.folder} ({error.strerror}); {self.then}.")

    def prune(self, most: int | None = None, *, stale: float = 86_400.0) -> None:
        """Deletes the oldest files until at most `most` bytes are left, and half-written ones older than `stale` seconds."""
        files.remove_stale_parts(self.folder, stale)
        there: list[tuple[float, int, Path]] = []
        for path in [*files.find_files(self.folder, f"*{self.suffix}"), *files.find_files(self.folder, "*.damaged")]:
            with suppress(OSError):
                status = path.stat()
                there.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in there)
        for _, size, path in sorted(there):
            if total <= (self.most_of_all if most is None else most):
                break
            with suppress(OSError):
                path.unlink(missing_ok=True)
                total -= size


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + content).hexdigest().encode()
