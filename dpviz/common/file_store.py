"""Finished work as files in a folder, each with a digest that is checked when it is read."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Self

from dpviz.common import files


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
