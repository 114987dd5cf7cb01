"""The encoding from readable rows to features, as a value: the same for new and training rows, and writable as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common import norms
from dpviz.common.digits import counted
from dpviz.common.validate import InvalidInput, check_bool, check_choice, check_range, number, show
from dpviz.datasets.table.cell_text import MISSING
from dpviz.datasets.table.columns import word
from dpviz.datasets.table.encoding import CENTRED, SCALINGS, centre_numbers, row_factors
from dpviz.datasets.table.gaps import mark_gaps
from dpviz.datasets.table.lost import Lost

NUMBER, CATEGORIES = "number", "categories"
DAMAGED: str = "The file is damaged; take another copy."
MOST = 1e300  # of a number in a file: sums and differences stay within double precision
MOST_FEATURES = 100_000
LONGEST = 10_000  # characters of a name or a category


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
        gaps: words that are gaps, where a person named them; None for those that are by rule.
    """

    name: str
    kind: str
    low: float = 0.0
    high: float = 1.0
    clip: bool = True
    levels: tuple[str, ...] = ()
    default: float | str | None = None
    gaps: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Encoder:
    """All columns in order, and how long a row is afterwards.

    Attributes:
        columns: the features' columns.
        scaling: one of `dpviz.datasets.table.encoding.SCALINGS`.
        largest: the largest norm, with the scaling of that name; new rows that are longer are clipped to it.
    """

    columns: tuple[Column, ...]
    scaling: str = "unit"
    largest: float = 1.0

    def rescale(self, scaling: str, largest: float) -> Self:
        """The same columns with another scaling of the rows."""
        return replace(self, scaling=scaling, largest=largest if scaling == "largest" else 1.0)

    @property
    def names(self) -> tuple[str, ...]:
        """Feature names, in order."""
        return tuple(
            name for c in self.columns for name in ([c.name] if c.kind == NUMBER else [f"{c.name}={v}" for v in c.levels])
        )

    @property
    def numbers(self) -> NDArray[np.bool_]:
        """(d,) which features are numbers whose range is not empty."""
        return np.array(
            [one for c in self.columns for one in ([c.low < c.high] if c.kind == NUMBER else [False] * len(c.levels))]
        )

    def rows(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """(n, d) features in the unit ball, without the constant feature.

        Args:
            frame: as `dpviz.datasets.sources.own.table` makes it; further columns are left alone.

        Raises:
            InvalidInput: a column is missing, holds text in the place of numbers, or has gaps without a default.
        """
        values, gaps = self.read(frame)
        for column, gap in zip(self.columns, gaps, strict=True):
            if gap.any():
                cause = f"has {counted(int(gap.sum()), 'gap')}"
                raise InvalidInput(column.name, cause, "Fill them: the model knows no value for gaps here.")
        return self.dense(values)

    def read(
        self, frame: pd.DataFrame, lost: list[Lost] | None = None, fill: Mapping[str, float | str] | None = None
    ) -> tuple[list[NDArray[Any]], list[NDArray[np.bool_]]]:
        """Each column in narrow form, (n,) numbers or positions of categories, and (n,) where it has a gap and no value for it.

        Args:
            lost: receives what was clipped or unknown.
            fill: values for gaps by column, beside the model's own.

        Raises:
            InvalidInput: a column is missing or holds text in the place of numbers, or `fill` does not fit.
        """
        for name in fill or {}:
            check_choice("fill", name, [column.name for column in self.columns])
        losses: list[Lost] = [] if lost is None else lost
        read = [self._column(replace(c, default=(fill or {}).get(c.name, c.default)), frame, losses) for c in self.columns]
        return [values for values, _ in read], [gaps for _, gaps in read]

    def before_scaling(
        self, frame: pd.DataFrame, lost: list[Lost] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """((n, d) features at unit length, (n,) norms that they had before), of rows without gaps; `lost` as of `read`."""
        losses: list[Lost] = [] if lost is None else lost
        x = self._features([_encoded(column, frame[column.name], losses)[0] for column in self.columns])
        return norms.unit(x), norms.row_norms(x)

    def _features(self, values: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """(n, d) numbers in [0, 1] and 0/1 for categories, of columns in narrow form."""
        return np.hstack(
            [
                one[:, None] if column.kind == NUMBER else (one[:, None] == np.arange(len(column.levels))).astype(np.float64)
                for column, one in zip(self.columns, values, strict=True)
            ]
        )

    def dense(self, values: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """(n, d) features in the unit ball of columns in narrow form, without gaps."""
        x = self._features(values)
        if self.scaling == CENTRED:
            return norms.scale_into_ball(centre_numbers(x, self.numbers) * (2.0 / np.sqrt(len(self.columns))))
        if self.scaling == "largest":
            return norms.scale_into_ball(x, self.largest)
        if self.scaling == "clip":
            return norms.scale_into_ball(x)
        if self.scaling == "unit":
            return norms.unit(x)
        return x * row_factors(norms.row_norms(x), self.scaling, len(self.columns))[:, None]

    def _column(
        self, column: Column, frame: pd.DataFrame, lost: list[Lost]
    ) -> tuple[NDArray[np.float64] | NDArray[np.intp], NDArray[np.bool_]]:
        if column.name not in frame:
            raise InvalidInput(
                column.name, "is missing", f"The rows need the columns: {', '.join(c.name for c in self.columns)}."
            )
        words = MISSING if column.gaps is None else column.gaps
        series = mark_gaps(frame[column.name], [one for one in words if one not in column.levels])
        return _encoded(column, series, lost)

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
            raise InvalidInput("columns", "must be a list of columns", DAMAGED)
        if len(listed) > MOST_FEATURES:  # before they are read one by one
            raise InvalidInput("columns", f"are {len(listed):,}; the limit is {MOST_FEATURES:,}", DAMAGED)
        scaling, largest = (
            check_choice("scaling", values.get("scaling"), SCALINGS),
            check_range("largest", values.get("largest"), 0, MOST),
        )
        if largest <= 0:
            raise InvalidInput("largest", "must be above 0", DAMAGED)
        made = cls(tuple(map(_column, listed)), scaling, largest)
        features = sum(len(c.levels) or 1 for c in made.columns)
        if features > MOST_FEATURES:
            raise InvalidInput("columns", f"make {features:,} features; the limit is {MOST_FEATURES:,}", DAMAGED)
        names = made.names
        for what, texts in (("columns", [c.name for c in made.columns]), ("levels", names)):
            if len(set(texts)) < len(texts):
                raise InvalidInput(what, "holds a name twice", DAMAGED)
        return made


def _encoded(
    column: Column, series: pd.Series, lost: list[Lost]
) -> tuple[NDArray[np.float64] | NDArray[np.intp], NDArray[np.bool_]]:
    """(numbers in units of the range, or positions of categories; where there is a gap and no value for it)."""
    missing = series.isna()
    gaps = missing.to_numpy(bool) if column.default is None else np.zeros(len(series), dtype=bool)
    if column.kind == CATEGORIES:
        text = series.map(word, na_action="ignore").astype(object)
        text = text.where(~missing, None if column.default is None else word(column.default))
        codes = pd.Index(column.levels, dtype=object).get_indexer(text)
        unknown = int(((codes < 0) & ~gaps).sum())
        if unknown:
            sentence: str = (
                f"{counted(unknown, 'value')} of {column.name} {'is' if unknown == 1 else 'are'} in none of its categories."
            )
            lost.append(Lost("values", column.name, unknown, sentence))
        return codes, gaps
    if not pd.api.types.is_numeric_dtype(series) and not missing.all():
        example = series[~missing].iloc[0]
        raise InvalidInput(column.name, f"must hold numbers, got {show(example)}", "Give numbers in this column.")
    values = np.full(len(series), np.nan) if missing.all() else series.to_numpy(np.float64)
    if column.default is not None:
        values = np.where(np.isnan(values), number("fill", column.default), values)
    if column.clip:
        inside = np.clip(values, column.low, column.high)
        outside = int(((inside != values) & ~gaps).sum())
        if outside:
            were: str = "was" if outside == 1 else "were"
            sentence = f"{counted(outside, 'value')} of {column.name} outside [{column.low:g}, {column.high:g}] {were} clipped."
            lost.append(Lost("values", column.name, outside, sentence))
        values = inside
    span = column.high - column.low
    with np.errstate(over="ignore"):
        return (values - column.low) / (span if span > 0 else 1.0), gaps


def _column(values: object) -> Column:
    if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
        raise InvalidInput("columns", f"must have names, got {show(values)}", DAMAGED)
    name, levels, default = values["name"], values.get("levels", ()), values.get("default")
    if not name or len(name) > LONGEST or not name.isprintable():
        raise InvalidInput("columns", f"holds a name that no column can have: {ascii(name)[:60]}", DAMAGED)
    if not isinstance(levels, list | tuple) or not all(isinstance(level, str) and len(level) <= LONGEST for level in levels):
        raise InvalidInput("levels", f"must be a list of texts, got {show(levels)}", DAMAGED)
    kind = check_choice("kind", values.get("kind"), (NUMBER, CATEGORIES))
    if kind == NUMBER and levels:
        raise InvalidInput("levels", f"of {show(name)} do not fit a column of numbers", DAMAGED)
    if default is not None:
        default = check_range("default", default, -MOST, MOST) if kind == NUMBER else str(default)
    low, high = (check_range(end, values.get(end), -MOST, MOST) for end in ("low", "high"))
    if low > high:
        raise InvalidInput("low", f"{low:g} is above high, {high:g}", DAMAGED)
    gaps = values.get("gaps")
    if gaps is not None and not (
        isinstance(gaps, list | tuple) and all(isinstance(one, str) and len(one) <= LONGEST for one in gaps)
    ):
        raise InvalidInput("gaps", f"must be a list of texts, got {show(gaps)}", DAMAGED)
    clip = check_bool("clip", values.get("clip"))
    return Column(name, kind, low, high, clip, tuple(levels), default, None if gaps is None else tuple(gaps))
