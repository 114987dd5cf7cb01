"""From a person's table to a dataset: what is the label, what are the features, what happens to gaps.

Every choice is a value (`TableSpec`), so that a dataset can be made again exactly. Declared ranges and categories are
public knowledge; those read off the data are outside every epsilon and are listed in `Prepared.looked_at`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.datasets.base import Dataset, build
from dpviz.datasets.limits import Limits
from dpviz.preprocessing import unit_rows
from dpviz.validate import InvalidInput, number, one_of, show

_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([ T].*)?")
MANY_LEVELS = 100


@dataclass(frozen=True)
class TableSpec:
    """How a table becomes a dataset.

    Attributes:
        target: the column with the label.
        positive: target values that count as +1; all other values are -1.
        columns: features in this order; None takes every column that can be used.
        ranges: declared (low, high) of number columns; values outside are clipped.
        categories: declared values of text columns; other values become all zeros.
        missing: "drop" removes rows with gaps in the columns used; "default" fills them from `defaults`.
        defaults: value per column for gaps, used with missing="default".
    """

    target: str
    positive: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: str = "drop"
    defaults: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """A dataset and the story of how it was made.

    Attributes:
        notes: what was done, one sentence each.
        looked_at: columns whose range or categories were read off the data.
        left_out: columns that were not used, with the reason.
        dropped: number of rows left out because of gaps.
    """

    dataset: Dataset
    notes: tuple[str, ...]
    looked_at: tuple[str, ...]
    left_out: Mapping[str, str]
    dropped: int


def is_number(series: pd.Series) -> bool:
    """Whether a column as read holds numbers."""
    return bool(pd.api.types.is_numeric_dtype(series))


def why_not(series: pd.Series) -> str | None:
    """Why a column cannot be a feature as it is, or None."""
    known = series.dropna()
    if known.empty:
        return "has no values"
    if known.nunique() == 1 and not series.isna().any():
        return "has the same value in every row"
    if not is_number(series):
        if known.iloc[:200].map(lambda v: bool(_DATE.fullmatch(str(v)))).all():
            return "holds dates; turn them into numbers, such as an age in years"
        if known.nunique() > max(MANY_LEVELS, 0.5 * len(known)):
            return f"has {known.nunique():,} different texts, like a name or an identifier"
    return None


def classes(series: pd.Series) -> dict[str, int]:
    """Label values as text, with their counts, most frequent first."""
    return {_word(v): int(c) for v, c in series.value_counts(dropna=True).items()}


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def prepare(
    frame: pd.DataFrame, spec: TableSpec, *, name: str, source: str, intercept: bool = True, limits: Limits | None = None
) -> Prepared:
    """The dataset that a table and a spec make.

    Args:
        frame: as from `read_csv`: float columns with NaN, text columns with None for gaps.
        name: the dataset's name.

    Raises:
        InvalidInput: naming the column, what is wrong, and what to do.
    """
    limits = limits or Limits.from_environment()
    notes: list[str] = []
    target = one_of("target", spec.target, [str(c) for c in frame.columns])
    features, left_out = _features(frame, spec)
    used = frame[[*features, target]]
    used, dropped = _without_gaps(used, target, spec, notes)
    y, words = _labels(used[target], spec, notes)

    blocks: list[NDArray[np.float64]] = []
    names: list[str] = []
    looked_at: list[str] = []
    widths: dict[str, int] = {}
    for column in features:
        block, labels = _encode(column, used[column], spec, notes, looked_at, limits.features)
        blocks.append(block)
        names.extend(labels)
        widths[column] = len(labels)
        if len(names) > limits.features:
            widest = max(widths, key=lambda c: widths[c])
            raise InvalidInput(
                "columns", f"need more than {limits.features} features; {widest!r} alone needs {widths[widest]}",
                "Leave out that column, declare fewer categories, or raise DPVIZ_MAX_FEATURES.",
            )  # fmt: skip
    shown = used[features].assign(label=np.where(y > 0, words[1], words[0]))
    dataset = build(
        name=name, x=unit_rows(np.hstack(blocks)), y=y, feature_names=names, frame=shown, intercept=intercept,
        source=source, label_names=words, description=f"{len(used):,} rows: {target} is {words[1]} or {words[0]}?",
    )  # fmt: skip
    return Prepared(dataset, tuple(notes), tuple(looked_at), left_out, dropped)


def _features(frame: pd.DataFrame, spec: TableSpec) -> tuple[list[str], dict[str, str]]:
    known = [str(c) for c in frame.columns]
    for field_name, given in (("ranges", spec.ranges), ("categories", spec.categories), ("defaults", spec.defaults)):
        for column in given:
            one_of(f"{field_name}[{show(column)}]", column, known)
    left_out: dict[str, str] = {}
    if spec.columns is None:
        features = []
        for column in known:
            reason = why_not(frame[column]) if column != spec.target else "is the label"
            if reason is None:
                features.append(column)
            elif column != spec.target:
                left_out[column] = reason
    else:
        features = list(spec.columns)
        for column in features:
            one_of("columns", column, known)
            if column == spec.target:
                raise InvalidInput("columns", f"the label {column!r} is among the features", "Leave it out.")
            reason = why_not(frame[column])
            if reason is not None:
                raise InvalidInput(column, reason, "Leave this column out.")
        if len(set(features)) < len(features):
            raise InvalidInput("columns", "a column is given twice", "Give each column once.")
    if not features:
        raise InvalidInput("columns", "none can be used as a feature", "Choose columns with numbers or a few categories.")
    return features, left_out


def _without_gaps(used: pd.DataFrame, target: str, spec: TableSpec, notes: list[str]) -> tuple[pd.DataFrame, int]:
    one_of("missing", spec.missing, ("drop", "default"))
    used = used.copy()
    if spec.missing == "default":
        for column in used.columns:
            gaps = used[column].isna()
            if column == target or not gaps.any():
                continue
            if column not in spec.defaults:
                raise InvalidInput(
                    column, f"has {int(gaps.sum()):,} gaps and no default value", "Declare a default, or drop rows with gaps."
                )
            value = spec.defaults[column]
            if is_number(used[column]):
                value = number(f"defaults[{show(column)}]", value)
            used.loc[gaps, column] = value
            notes.append(f"{int(gaps.sum()):,} gaps in {column} were filled with {_word(value)}.")
    complete = ~used.isna().any(axis=1)
    dropped = int((~complete).sum())
    if dropped == len(used):
        raise InvalidInput(
            "missing", "every row has a gap in the columns used", "Leave out the columns with gaps, or declare defaults."
        )
    if dropped:
        notes.append(f"{dropped:,} of {len(used):,} rows were dropped because of gaps.")
    return used[complete].reset_index(drop=True), dropped


def _labels(series: pd.Series, spec: TableSpec, notes: list[str]) -> tuple[NDArray[np.float64], tuple[str, str]]:
    counts = classes(series)
    if len(counts) < 2:
        raise InvalidInput(spec.target, f"takes one value only ({next(iter(counts), 'none')})", "Choose a label with two values.")
    some = ", ".join(list(counts)[:8]) + (", ..." if len(counts) > 8 else "")
    positive = spec.positive
    if not positive:
        if len(counts) > 2:
            raise InvalidInput(
                "positive", f"{spec.target!r} takes {len(counts):,} values ({some})", "Say which of them count as +1."
            )
        positive = (sorted(counts)[1],)
        notes.append(f"{positive[0]} counts as +1, because no positive value was chosen.")
    for value in positive:
        if value not in counts:
            raise InvalidInput("positive", f"{spec.target!r} never takes the value {show(value)}", f"Choose among: {some}.")
    words = series.map(_word)
    hit = words.isin(positive).to_numpy()
    if hit.all():
        raise InvalidInput("positive", "every row would count as +1", "Leave at least one value for -1.")
    rest = [v for v in counts if v not in positive]
    names = (rest[0] if len(rest) == 1 else "other", positive[0] if len(positive) == 1 else " or ".join(positive)[:60])
    if len(counts) > 2:
        notes.append(f"{names[1]} counts as +1; the other {len(rest)} values count as -1.")
    return np.where(hit, 1.0, -1.0), names


def _encode(
    column: str, series: pd.Series, spec: TableSpec, notes: list[str], looked_at: list[str], most: int
) -> tuple[NDArray[np.float64], list[str]]:
    if is_number(series) and column not in spec.categories:
        values = series.to_numpy(dtype=np.float64)
        if column in spec.ranges:
            low, high = (number(f"ranges[{show(column)}]", v) for v in spec.ranges[column])
            if low >= high:
                raise InvalidInput(f"ranges[{show(column)}]", f"low {low:g} is not below high {high:g}", "Give low < high.")
            outside = int(((values < low) | (values > high)).sum())
            if outside:
                notes.append(f"{outside:,} values of {column} outside [{low:g}, {high:g}] were clipped.")
            values = np.clip(values, low, high)
        else:
            low, high = values.min(), values.max()
            looked_at.append(column)
        with np.errstate(over="raise", invalid="raise"):
            try:
                span = high - low
                scaled = (values - low) / (span if span > 0 else 1.0)
            except FloatingPointError as error:
                raise InvalidInput(column, f"spans {low:g} to {high:g}, too far to scale", "Declare a range.") from error
        return scaled[:, None], [column]
    if column in spec.ranges:
        raise InvalidInput(f"ranges[{show(column)}]", "this column holds text", "Declare its categories instead.")
    text = series.map(_word)
    if column in spec.categories:
        levels = [str(v) for v in spec.categories[column]]
        unknown = int((~text.isin(levels)).sum())
        if unknown:
            notes.append(f"{unknown:,} values of {column} are not among the declared categories and count as none of them.")
    else:
        levels = sorted(text.unique())
        looked_at.append(column)
    if len(levels) > most:
        raise InvalidInput(
            column,
            f"has {len(levels):,} categories",
            f"Leave it out or declare fewer; the limit is {most} features (DPVIZ_MAX_FEATURES).",
        )
    codes = pd.Categorical(text, categories=levels).codes
    return (codes[:, None] == np.arange(len(levels))).astype(np.float64), [f"{column}={level}" for level in levels]
