"""Back from the model's scale to the data's own units, for single rows: what noise did to "age", not to "0.31".

Rows were encoded, shortened to unit length and given a constant feature, each by a factor of its own. The factor and
the columns' ranges are found again from the readable rows; where that fails, a feature stays on the model's scale.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.datasets.base import Dataset

_EXACT = 1e-6  # of a column's range


@dataclass(frozen=True, eq=False)
class Units:
    """A dataset's features in their original units.

    Attributes:
        dataset: the rows.
    """

    dataset: Dataset

    @cached_property
    def numbers(self) -> dict[int, str]:
        """Feature position to the name of the numeric column that it shows."""
        frame = self.dataset.frame.iloc[:, :-1]
        return {j: name for j, name in enumerate(self.dataset.feature_names) if name in frame and _numeric(frame[name])}

    @cached_property
    def levels(self) -> dict[int, tuple[str, str]]:
        """Feature position to (column, level) of a one-hot feature."""
        columns = [str(c) for c in self.dataset.frame.columns[:-1]]
        levels = {}
        for j, name in enumerate(self.dataset.feature_names):
            for column in columns:
                if name.startswith(f"{column}=") and j not in self.numbers:
                    levels[j] = (column, name[len(column) + 1 :])
        return levels

    @cached_property
    def _fit(self) -> tuple[Floats, dict[int, tuple[float, float]]] | None:
        """(n,) factor of each row, and (offset, slope) with value = offset + slope x / factor for each number."""
        for factor in self._factors():
            lines = {}
            for j, name in self.numbers.items():
                line = _line(self.dataset.X[:, j] / factor, self.dataset.frame[name].to_numpy(float))
                if line is None:
                    break
                lines[j] = line
            else:
                return factor, lines
        return None

    def _factors(self) -> list[Floats]:
        X, n = self.dataset.X, self.dataset.n
        half = np.sqrt(0.5) if self.dataset.intercept else 1.0
        factors = []
        if self.dataset.norms is not None:
            factors.append(half * self.dataset.row_factors(self.dataset.scaling))
        if self.levels:  # exactly one level of each column is 1
            first = next(iter(self.levels.values()))[0]
            of_first = [j for j, (column, _) in self.levels.items() if column == first]
            factors.append(X[:, of_first].max(axis=1))
        if len(self.numbers) + int(self.dataset.intercept) == self.dataset.d:  # all numbers: unit length after min-max
            values = self.dataset.frame[list(self.numbers.values())].to_numpy(float)
            low, high = values.min(axis=0), values.max(axis=0)
            length = np.linalg.norm((values - low) / np.where(high > low, high - low, 1.0), axis=1)
            factors.append(half / np.where(length > 0, length, 1.0))
        factors.append(np.full(n, half))
        return [f for f in factors if (f > 0).all()]

    def read(self, row: int, x: Floats) -> list[str]:
        """(d,) feature values of a vector (d,) in the data's own units, as row `row` (by row id) would read them."""
        return [self._text(row, j, float(v)) for j, v in enumerate(x)]

    def _text(self, row: int, j: int, value: float) -> str:
        if self._fit is None:
            return f"{value:.3g} on the model's scale"
        factor, lines = self._fit
        inside = value / float(factor[row])
        if j in lines:
            offset, slope = lines[j]
            return f"{offset + slope * inside:.4g}"
        if j in self.levels:
            return f"{round(inside, 2) + 0.0:g}"
        return f"{value:.3g} on the model's scale"

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


def _numeric(series: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series)


def _line(x: Floats, y: Floats) -> tuple[float, float] | None:
    """(offset, slope) of the line through all points, None where they do not lie on one."""
    first, last = int(x.argmin()), int(x.argmax())
    if x[last] - x[first] <= 1e-12:
        return float(y[0]), 0.0
    slope = (y[last] - y[first]) / (x[last] - x[first])
    offset = y[first] - slope * x[first]
    span = max(float(np.ptp(y)), 1e-300)
    return (float(offset), float(slope)) if np.abs(offset + slope * x - y).max() <= _EXACT * span else None
