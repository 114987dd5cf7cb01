"""Models of random halves as files in the person's own cache folder, checked when read, so that attacks are resumed."""

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.common.file_store import FileStore
from dpviz.datasets.catalogue import is_in_memory


class KeptModels(FileStore):
    """Blocks of parameters by key. Nothing of rows that are in memory only (uploads, tables from Python) goes to the disk."""

    room, suffix, what, then = "halves", ".models", "Models", "called again, they are trained anew"
    most = most_of_all = 1 << 28

    def get(self, key: str, dataset: str, shape: tuple[int, int]) -> Floats | None:
        """Parameters (models, m) that are kept under a key, or None; a damaged file counts as not there and is written anew.

        Args:
            dataset: what they were trained on.
        """
        content = None if is_in_memory(dataset) else self.read(key)
        if content is None or len(content) != 8 * shape[0] * shape[1]:
            return None
        models = np.frombuffer(content, "<f8").reshape(shape).astype(float)
        return models if np.isfinite(models).all() else None

    def put(self, key: str, dataset: str, models: Floats) -> None:
        """Keeps parameters."""
        if not is_in_memory(dataset):
            self.write(key, models.astype("<f8").tobytes())
