"""How readable rows become features, as a value: the same for new rows as for the training rows, and writable as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common import norms
from dpviz.common.validate import InvalidInput, number, one_of, positive, show, truth
from dpviz.datasets.table.columns import word
from dpviz.datasets.table.encoding import SCALINGS, row_factors

NUMBER, CATEGORIES = "number", "categories"


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: of the column.
        kind: `NUMBER` or `CATEGORIES`.
        low, high: a number becomes (value - low)/(high - low).
        clip: whether values outside [low, high] are moved to its ends.
        levels: a category becomes 0/1 for each of these; one that is not among them is none of them.
        default: value of gaps, None where gaps are refused.
    """

    name: str
    kind: str
    low: float = 0.0
    high: float = 1.0
    clip: bool = True
    levels: tuple[str, ...] = ()
    default: float | str | None = None


@dataclass(frozen=True)
class Encoder:
    """All columns in order, and how long a row is afterwards.

    Attributes:
        columns: the features' columns.
        scaling: one of `dpviz.datasets.table.encoding.SCALINGS`.
        largest: the largest norm, with the scaling of that name; new rows that are longer are shortened to it.
    """

    columns: tuple[Column, ...]
    scaling: str = "unit"
    largest: float = 1.0

    def scaled(self, scaling: str, largest: float) -> Self:
        """The same columns with another scaling of the rows."""
        return replace(self, scaling=scaling, largest=largest if scaling == "largest" else 1.0)

    @property
    def names(self) -> tuple[str, ...]:
        """Feature names, in order."""
        return tuple(
            name for c in self.columns for name in ([c.name] if c.kind == NUMBER else [f"{c.name}={v}" for v in c.levels])
        )

    def rows(self, frame: pd.DataFrame, said: list[str] | None = None) -> NDArray[np.float64]:
        """(n, d) features in the unit ball, without the constant feature.

        Args:
            frame: as `dpviz.datasets.sources.own.table` makes it; further columns are left alone.
            said: is told what was clipped or unknown.

        Raises:
            InvalidInput: a column is missing, holds text in the place of numbers, or has gaps without a default.
        """
        notes: list[str] = [] if said is None else said
        blocks = [self._block(column, frame, notes) for column in self.columns]
        x = np.hstack(blocks)
        if self.scaling == "largest":
            return norms.into_ball(x, self.largest)
        if self.scaling == "clip":
            return norms.into_ball(x)
        if self.scaling == "unit":
            return norms.unit(x)
        return x * row_factors(norms.lengths(x), self.scaling, len(self.columns))[:, None]

    def _block(self, column: Column, frame: pd.DataFrame, said: list[str]) -> NDArray[np.float64]:
        if column.name not in frame:
            raise InvalidInput(
                column.name, "is missing", f"The rows need the columns: {', '.join(c.name for c in self.columns)}."
            )
        series = frame[column.name]
        gaps = series.isna()
        if gaps.any() and column.default is None:
            raise InvalidInput(column.name, f"has {int(gaps.sum()):,} gaps", "Fill them: the model knows no value for gaps here.")
        if column.kind == CATEGORIES:
            text = series.map(word, na_action="ignore").astype(object)
            text = text.where(~gaps, None if column.default is None else word(column.default))
            codes = pd.Index(column.levels, dtype=object).get_indexer(text)
            unknown = int((codes < 0).sum())
            if unknown:
                said.append(f"{unknown:,} values of {column.name} are none of the model's categories and count as none of them.")
            return (codes[:, None] == np.arange(len(column.levels))).astype(np.float64)
        if not pd.api.types.is_numeric_dtype(series):
            example = series[~gaps].iloc[0]
            raise InvalidInput(column.name, f"must hold numbers, got {show(example)}", "Give numbers in this column.")
        values = series.to_numpy(np.float64)
        values = np.where(np.isnan(values), np.nan if column.default is None else column.default, values).astype(np.float64)
        if column.clip:
            inside = np.clip(values, column.low, column.high)
            outside = int((inside != values).sum())
            if outside:
                said.append(f"{outside:,} values of {column.name} outside [{column.low:g}, {column.high:g}] were clipped.")
            values = inside
        span = column.high - column.low
        return ((values - column.low) / (span if span > 0 else 1.0))[:, None]

    def to_dict(self) -> dict[str, Any]:
        """As plain values, which `from_dict` takes back."""
        return {"scaling": self.scaling, "largest": self.largest, "columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Encoder:
        """An encoder from plain values, as in a JSON file.

        Raises:
            InvalidInput: something is missing or of the wrong kind.
        """
        listed = values.get("columns")
        if not isinstance(listed, list) or not listed:
            raise InvalidInput("columns", "must be a list of columns", "The file is damaged; take another copy.")
        scaling, largest = one_of("scaling", values.get("scaling"), SCALINGS), positive("largest", values.get("largest"))
        return cls(tuple(map(_column, listed)), scaling, largest)


def _column(values: object) -> Column:
    if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
        raise InvalidInput("columns", f"must have names, got {show(values)}", "The file is damaged; take another copy.")
    levels, default = values.get("levels", ()), values.get("default")
    if not isinstance(levels, Sequence) or not all(isinstance(level, str) for level in levels):
        raise InvalidInput("levels", f"must be a list of texts, got {show(levels)}", "The file is damaged; take another copy.")
    kind = one_of("kind", values.get("kind"), (NUMBER, CATEGORIES))
    if default is not None:
        default = number("default", default) if kind == NUMBER else str(default)
    low, high = (number(end, values.get(end)) for end in ("low", "high"))
    return Column(values["name"], kind, low, high, truth("clip", values.get("clip")), tuple(levels), default)


def of_numbers(names: Sequence[str], low: NDArray[np.float64], high: NDArray[np.float64]) -> Encoder:
    """An encoder of number columns with their ranges."""
    ends = zip(names, low, high, strict=True)
    return Encoder(tuple(Column(name, NUMBER, float(a), float(b)) for name, a, b in ends))
