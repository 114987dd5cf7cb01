"""Models of random halves as files in the person's own cache folder, checked when read, so that attacks are resumed."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from dpviz.common import files
from dpviz.common.arrays import Floats
from dpviz.datasets.catalogue import only_here

STORE_BYTES = 1 << 28
_MOST = 1 << 28  # of one file


class KeptModels:
    """Blocks of parameters by key. Nothing of rows that are in memory only (uploads, tables from Python) goes to the disk.

    A folder that cannot be read or written is no error: everything is trained, and one notice says so.

    Attributes:
        folder: where the files are; made when first written to.
        notices: what a person should know.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.notices: list[str] = []

    @classmethod
    def personal(cls) -> KeptModels:
        """The one in `cache_folder()`, which the app and the shell share; the oldest files beyond `STORE_BYTES` are deleted."""
        kept = cls(files.cache_folder() / "halves")
        files.remove_stale_parts(kept.folder, 86_400.0)
        there = []
        for path in files.found(kept.folder, "*.models"):
            with suppress(OSError):
                there.append((path.stat().st_mtime, path.stat().st_size, path))
        total = sum(size for _, size, _ in there)
        for _, size, path in sorted(there):
            if total <= STORE_BYTES:
                break
            with suppress(OSError):
                path.unlink(missing_ok=True)
                total -= size
        return kept

    def get(self, key: str, dataset: str, shape: tuple[int, int]) -> Floats | None:
        """Parameters (models, m) that are kept under a key, or None; a damaged file counts as not there and is written anew.

        Args:
            dataset: what they were trained on.
        """
        if only_here(dataset):
            return None
        try:
            digest, _, content = files.read_own(self._path(key), _MOST).partition(b"\n")
        except (FileNotFoundError, files.Untrusted):
            return None
        except OSError as error:
            self._cannot(error)
            return None
        if digest != _digest(key, content) or len(content) != 8 * shape[0] * shape[1]:
            return None
        models = np.frombuffer(content, "<f8").reshape(shape).astype(float)
        return models if np.isfinite(models).all() else None

    def put(self, key: str, dataset: str, models: Floats) -> None:
        """Keeps parameters; where that is impossible the work goes on, with a notice."""
        if only_here(dataset):
            return
        content = models.astype("<f8").tobytes()
        try:
            files.write(self._path(key), _digest(key, content) + b"\n" + content, mode=0o600)
        except OSError as error:
            self._cannot(error)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.models"

    def _cannot(self, error: OSError) -> None:
        if not self.notices:
            self.notices.append(
                f"Models cannot be kept in {self.folder} ({error.strerror}); called again, they are trained anew."
            )


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + content).hexdigest().encode()
