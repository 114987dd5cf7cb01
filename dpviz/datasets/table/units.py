"""Back from the model's scale to the data's own units, for single rows: what noise did to "age", not to "0.31".

A row was encoded by the dataset's encoder, scaled by a factor of its own and given a constant feature. Where the encoder is not
known, and for the constant feature, a value stays on the model's scale.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.datasets.base import Dataset
from dpviz.datasets.table.encoder import NUMBER, Column
from dpviz.datasets.table.encoding import CENTRED


def _scaled(value: float) -> str:
    return f"{value if abs(value) > 1e-9 else 0.0:.3g} on the model's scale"


@dataclass(frozen=True, eq=False)
class Units:
    """A dataset's features in their original units.

    Attributes:
        dataset: the rows.
    """

    dataset: Dataset

    @cached_property
    def _features(self) -> list[tuple[Column, str | None]]:
        """The column of each feature, and the category that it stands for."""
        columns = self.dataset.encoder.columns if self.dataset.encoder else ()
        return [(c, level) for c in columns for level in ((None,) if c.kind == NUMBER else c.levels)]

    @property
    def numbers(self) -> dict[int, str]:
        """Feature position to the name of the numeric column that it shows."""
        return {j: column.name for j, (column, level) in enumerate(self._features) if level is None}

    @property
    def levels(self) -> dict[int, tuple[str, str]]:
        """Feature position to (column, level) of a one-hot feature."""
        return {j: (column.name, level) for j, (column, level) in enumerate(self._features) if level is not None}

    def read(self, row: int, x: Floats) -> list[str]:
        """(d,) feature values of a vector (d,) in the data's own units, as row `row` (by row id) would read them."""
        factor = self.dataset.row_factors(self.dataset.scaling)[row] / np.hypot(1.0, self.dataset.constant)
        known = zip(self._features, self._lost, x, strict=False)
        texts = [_scaled(v) if lost else self._text(*feature, float(v / factor)) for feature, lost, v in known]
        return texts + [_scaled(v) for v in x[len(texts) :]]

    @cached_property
    def _lost(self) -> list[bool]:
        """True for each feature whose range is so much wider than its values that rounding leaves nothing of them."""
        frame = self.dataset.frame

        def spread(name: str) -> float:
            values = pd.to_numeric(frame[name], errors="coerce").astype(float)
            return float(values.max() - values.min())

        return [level is None and column.high - column.low > 1e9 * spread(column.name) > 0 for column, level in self._features]

    def _text(self, column: Column, level: str | None, value: float) -> str:
        """A value of the encoded row before its scaling."""
        if level is not None:
            return f"{round(value, 2) + 0.0:g}"
        if self.dataset.scaling == CENTRED and column.low < column.high:
            value = (value + 1.0) / 2.0
        span = column.high - column.low
        own = column.low + span * value
        return f"{0.0 if abs(own) < 1e-12 * span else own + 0.0:.4g}"  # a zero leaves a residue of rounding

    @cached_property
    def image(self) -> tuple[int, int] | None:
        """(height, width) where the features are the pixels of a picture, by their names; else None."""
        names = self.dataset.feature_names[: -1 if self.dataset.intercept else None]
        places = [re.fullmatch(r"pixel_(\d+)_(\d+)", name) for name in names]
        if not places or not all(places):
            return None
        at = [(int(p[1]), int(p[2])) for p in places if p]
        height, width = max(i for i, _ in at) + 1, max(j for _, j in at) + 1
        return (height, width) if at == [(i, j) for i in range(height) for j in range(width)] else None
