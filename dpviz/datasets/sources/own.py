"""A person's own rows in Python, `dpviz.dataset(...)`: a dataset with a random name.

The name stands in links, reports and JSON, so it must tell nothing about the rows: one who knows all rows but one could try
values for the last one against a hash of the content. The same rows, read in the same way, have the same name within one
process; what is stored on the disk is found by a hash that stays there (`experiments.sweeps.cell`). The rows are held in memory
of this process only; the last ones used stay, up to 2 GiB.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpviz.common import norms
from dpviz.common.limits import Limits
from dpviz.common.memory import Cache
from dpviz.common.validate import InvalidInput, check_choice, number, positive, show
from dpviz.datasets.base import Dataset, build
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.sources import folder
from dpviz.datasets.sources.base import Source
from dpviz.datasets.table import cell_text
from dpviz.datasets.table.columns import positives, word
from dpviz.datasets.table.csv import Table
from dpviz.datasets.table.encoder import NUMBER, Column, Encoder
from dpviz.datasets.table.gaps import mark_all_gaps
from dpviz.datasets.table.names import check_names, unused_name
from dpviz.datasets.table.prepare import label_of, prepare
from dpviz.datasets.table.spec import COMPLETE_ROWS, TableSpec, last_column, settle_settings

PREFIX = "rows-"
_DIGITS = 16
_BYTES = 2 << 30


@dataclass(frozen=True, eq=False)
class Content:
    """Rows as they were given, and how they become a dataset.

    Attributes:
        frame: columns are float64 or categories of str; NaN where missing.
        spec: label, features, declared ranges and categories.
        data_norm: where given, all features are numbers, and rows are divided by it instead of scaled column by column.
        source: where the rows come from.
        notes: what was done when they were read.
        file: where they were read from, None for standard input and memory.
        reading: options for the file: header, delimiter, encoding and sheet, where they were not left to be found.
        found: the same options as the file was read.
        guessed_label: why the label had to be guessed; empty where it was named.
    """

    frame: pd.DataFrame
    spec: TableSpec
    data_norm: float | None
    source: str
    notes: tuple[str, ...] = ()
    file: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    guessed_label: str = ""
    found: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> tuple[Hashable, ...]:
        """Descriptions of the rows that change none of them: the same rows may come from another file."""
        return (self.source, self.notes, self.file, tuple(self.reading.items()), self.guessed_label)

    @property
    def digest(self) -> str:
        """Hash of the rows and of how they are read; it must not leave this process."""
        digest = hashlib.sha256()
        listed = {f.name: getattr(self.spec, f.name) for f in fields(self.spec)}
        listed = {k: sorted(v.items()) if isinstance(v, Mapping) else v for k, v in listed.items()}
        digest.update(repr((listed, self.data_norm, len(self.frame))).encode())
        for column in self.frame:
            series = self.frame[column]
            levels = list(series.cat.categories) if isinstance(series.dtype, pd.CategoricalDtype) else None
            values = series.to_numpy() if levels is None else series.cat.codes.to_numpy(np.int64)
            kind = (column, levels, "declared") if cell_text.is_declared(series) else (column, levels)
            digest.update(repr(kind).encode() + np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()

    def dataset(self, name: str, intercept: bool) -> Dataset:
        """The rows ready for training."""
        if self.data_norm is not None:
            return self._divided(name, intercept, self.data_norm)
        return prepare(
            self.frame,
            self.spec,
            name=name,
            source=self.source,
            intercept=intercept,
            limits=Limits.from_environment(),
            notes=self.notes,
            guessed_label=self.guessed_label,
        )

    def _divided(self, name: str, intercept: bool, data_norm: float) -> Dataset:
        messages = list(self.notes)
        target = self.spec.target
        features = self.frame.drop(columns=target)
        x = features.to_numpy(float)
        longer = int((norms.row_norms(x, data_norm) > 1 + 1e-9).sum())
        if longer:
            messages.append(f"{longer:,} rows with a norm above data_norm = {data_norm:g} were clipped to it.")
        y, label_names = positives(self.frame[target], target, self.spec.positive, self.spec.above, messages)
        return build(
            name=name,
            x=norms.scale_into_ball(x, data_norm),
            y=y,
            feature_names=[str(c) for c in features],
            frame=features.assign(**{target: pd.Categorical.from_codes((y > 0).astype(np.int8), categories=list(label_names))}),
            intercept=intercept,
            source=self.source,
            taken_as_public=tuple(one for one in self.spec.taken_as_public if one != COMPLETE_ROWS),  # gaps are refused
            label_names=label_names,
            notes=tuple(messages),
            encoder=Encoder(tuple(Column(str(c), NUMBER, 0.0, data_norm, clip=False) for c in features), "clip"),
            description=f"{len(y):,} rows: {target} is {label_names[1]} or {label_names[0]}?",
            label=label_of(self.spec, label_names),
        )


def _size(content: Content) -> int:
    return int(content.frame.memory_usage(deep=True).sum())


_held: Cache[Content] = Cache("own rows", _BYTES, _size)


_names: dict[str, str] = {}  # by `Content.digest`: names outlive rows that were let go of, so that they come back under them


def hold(content: Content) -> str:
    """Keeps rows and gives their name, which is random and the same for the same content.

    Raises:
        InvalidInput: they make no dataset, or take more memory than all own rows may.
    """
    name = _names.setdefault(content.digest, PREFIX + secrets.token_hex(_DIGITS // 2))
    held = _held.get(name)
    if held is None or held.about != content.about:
        content.dataset(name, True)  # what is wrong is said now
        _held.put(name, content, owner=name)
        if name not in _held:
            cause = f"take {_size(content) / 1e6:,.0f} MB"
            raise InvalidInput(
                "dataset", f"these rows {cause}", f"The limit is {_BYTES / 1e6:,.0f} MB. Take a sample of the rows."
            )
    return name


def is_own(name: str) -> bool:
    """True where a name is that of a person's own rows, held or not."""
    digits = name.removeprefix(PREFIX)
    return name.startswith(PREFIX) and len(digits) == _DIGITS and set(digits) <= set("0123456789abcdef")


def get(name: str) -> Content:
    """The rows of that name.

    Raises:
        InvalidInput: this process does not hold them.
    """
    content = _held.get(name)
    if content is None:
        cause = f"{show(name)} are rows that this process does not hold"
        raise InvalidInput("dataset", cause, "Make them again with dpviz.dataset(...), or name the file on the command line.")
    return content


def load(name: str, intercept: bool) -> Dataset:
    """The dataset of own rows by name."""
    return get(name).dataset(name, intercept)


def rows(name: str) -> int | None:
    """Number of rows where no gaps and no persons can take some away."""
    content = get(name)
    if content.spec.person:
        return None
    return None if mark_all_gaps(content.frame, content.spec, []).isna().to_numpy().any() else len(content.frame)


def from_values(
    data: pd.DataFrame | ArrayLike,
    y: ArrayLike | None = None,
    *,
    target: str | None = None,
    data_norm: float | None = None,
    source: str = "your own rows, held in this process",
    notes: tuple[str, ...] = (),
    **how: Any,
) -> Content:
    """Rows and labels as `dpviz.dataset` takes them; see there."""
    frame = table(data)
    if (y is None) == (target is None):
        raise InvalidInput("target", "give either y or the name of the column with the label", "Give one of them.")
    if y is not None:
        target = unused_name("label", frame.columns)
        labels = np.asarray(y)
        if labels.shape != (len(frame),):
            raise InvalidInput("y", f"must be {len(frame):,} labels, got shape {labels.shape}", "Give one label for each row.")
        frame = frame.assign(**{target: _column(target, pd.Series(labels))})
    assert target is not None
    person = how.get("person")
    if person is not None and not isinstance(person, str):
        persons, how["person"] = np.asarray(person), unused_name("person", frame.columns)
        if persons.shape != (len(frame),):
            raise InvalidInput(
                "person", f"must name the person of {len(frame):,} rows, got shape {persons.shape}", "Give one each."
            )
        frame = frame.assign(**{how["person"]: _column("person", pd.Series(persons))})
    features = [str(c) for c in frame if c not in (target, how.get("person"))]
    how["ranges"] = pairs("ranges", how.get("ranges"), features)
    spec = TableSpec.from_dict({"target": target} | {key: value for key, value in how.items() if value is not None})
    if data_norm is not None:
        data_norm = positive("data_norm", data_norm)
        _only_numbers(frame.drop(columns=check_choice("target", target, list(frame))), spec)
    return Content(frame, spec, data_norm, source, notes)


def _read(
    path: Path | None, content: bytes | None, given: Mapping[str, Any] | None, verbatim: Sequence[str] | None = None
) -> tuple[Table, dict[str, Any], Path | None]:
    """(table, what the file beside it says about its columns, that file); what is `given` of its text wins over that file."""
    limits = Limits.from_environment().widen()
    beside: dict[str, Any] = {}
    sidecar: Path | None = None
    if content is None:
        if path is None:
            raise InvalidInput("file", "is not named", "Give its path.")
        content = folder.file_bytes(path, limits)
        sidecar = next((side for name in folder.sides(path.name) if os.path.lexists(side := path.with_name(name))), None)
        beside = folder.sidecar_of(sidecar)
    beside |= given or {}
    name = "" if path is None else path.name
    return read_table(content, name=name, limits=limits, verbatim=verbatim, **folder.reading(beside)), beside, sidecar


def rows_in(
    path: Path | None, content: bytes | None = None, *, reading: Mapping[str, Any] | None = None, verbatim: Sequence[str] = ()
) -> pd.DataFrame:
    """New rows of a model in a file, or of its bytes, as they are.

    Args:
        verbatim: columns that stay text as they are written.
        reading: header, delimiter, encoding and sheet where they are said; wins over the file beside it.

    Raises:
        InvalidInput: the file cannot be read or is no table.
    """
    return _read(path, content, reading, list(verbatim))[0].frame


def from_file(
    path: Path | None,
    content: bytes | None = None,
    *,
    reading: Mapping[str, Any] | None = None,
    by_frame: Callable[[pd.DataFrame], Mapping[str, Any]] = lambda frame: {},
    **how: Any,
) -> Content:
    """A table in a file, or its bytes, read as one of the data folder is: a TOML file beside it may say how.

    Args:
        path: the file; None where only its bytes are there.
        reading: header, delimiter, encoding and sheet where they are said; wins over the file beside it.
        by_frame: more of `how`, given the rows as read.
        how: as for `dpviz.dataset`; wins over the file beside it, column by column.

    Raises:
        InvalidInput: the file cannot be read or is no table that can be used.
    """
    read, beside, sidecar = _read(path, content, reading)
    how |= by_frame(read.frame)
    how = settle_settings({key: value for key, value in how.items() if value is not None and value != {}})
    values = settle_settings(beside)
    values |= {
        key: values[key] | dict(value) if isinstance(value, Mapping) and isinstance(values.get(key), Mapping) else value
        for key, value in how.items()
    }
    for one, other in (("above", "positive"), ("positive", "above"), ("columns", "drop"), ("drop", "columns")):
        if one in how and other not in how:
            values.pop(other, None)
    declared = {*how.get("ranges", {}), *how.get("categories", {})}  # an option is a declaration
    if "proposed" in values and "proposed" not in how:
        values["proposed"] = [column for column in values["proposed"] if column not in declared]
    guessed = ""
    if "target" not in values:
        values["target"] = last_column(read.frame, chosen="positive" in values or "above" in values)
        guessed = "nothing says more" if sidecar is None else f"{sidecar.name} names no target"
    source = "standard input" if path is None else f"the file {path.name}"
    file = None if path is None else str(path)
    return Content(read.frame, TableSpec.from_dict(values), None, source, read.notes, file, read.reading, guessed, read.found)


def _only_numbers(features: pd.DataFrame, spec: TableSpec) -> None:
    for name in ("ranges", "categories", "columns", "defaults", "missing", "missing_in", "proposed", "person"):
        if getattr(spec, name):
            raise InvalidInput(name, "cannot go with data_norm", "Give one of them: data_norm divides whole rows.")
    for column in features:
        if not pd.api.types.is_float_dtype(features[column]):
            raise InvalidInput(
                str(column), "holds text, which data_norm cannot divide", "Declare categories instead of data_norm."
            )
        if features[column].isna().any():
            raise InvalidInput(str(column), "has gaps", "Fill or drop them first.")


def table(data: pd.DataFrame | ArrayLike) -> pd.DataFrame:
    """A frame as the reader of files makes it: float64 or categories of str, NaN for gaps, index 0..n-1.

    Args:
        data: a frame of pandas, polars, pyarrow or another library that narwhals knows, or (n, d) numbers, whose columns are
            called x0, x1, ...

    Raises:
        InvalidInput: no table, no rows, a name that is taken twice or cannot be shown, or an infinite number.
    """
    try:
        known = nw.from_native(data, pass_through=True)
        if isinstance(known, nw.LazyFrame):
            known = known.collect()
        if isinstance(known, nw.DataFrame):
            frame = known.to_pandas().reset_index(drop=True)
            frame.columns = pd.Index([str(c) for c in frame.columns])
        else:
            values = np.asarray(data)
            if values.ndim != 2:
                raise InvalidInput("X", f"must have rows and columns, got shape {values.shape}", "Give an array of shape (n, d).")
            frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
        if frame.empty:
            raise InvalidInput("X", "has no rows or no columns", "Give at least 10 rows.")
        check_names(list(frame.columns), True)
        return pd.DataFrame({name: _column(name, frame[name]) for name in frame})
    except (UnicodeEncodeError, OverflowError, nw.exceptions.DuplicateError) as error:
        fix = "Give each column a name of its own, texts in UTF-8 and numbers within double precision."
        raise InvalidInput("X", f"is no table: {str(error).splitlines()[0]}", fix) from error


def _column(name: str, series: pd.Series) -> pd.Series:
    if pd.api.types.is_object_dtype(series) and _all_numbers(series):
        series = pd.Series([np.nan if pd.isna(value) else value for value in series], dtype=np.float64)
    if pd.api.types.is_bool_dtype(series) or not pd.api.types.is_numeric_dtype(series):
        texts = series.map(word, na_action="ignore").astype(object)
        texts = texts.where(series.notna(), None)
        return cell_text.declared_column(texts, sorted(set(texts.dropna())))
    if pd.api.types.is_complex_dtype(series):
        raise InvalidInput(name, "holds complex numbers", "Give real numbers.")
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_integer_dtype(series) and (np.abs(values) >= 2.0**53).any():
        return _column(name, series.astype("string"))  # identifiers of many digits, which floats would not keep apart
    if np.isinf(values).any():
        raise InvalidInput(name, f"row {int(np.isinf(values).argmax()):,} is infinite", "Correct or remove that value.")
    return pd.Series(values)


def _all_numbers(series: pd.Series) -> bool:
    """True where a column of objects holds numbers, exact ones among them, beside its gaps."""
    present = series.dropna()
    return len(present) > 0 and all(isinstance(value, Real | Decimal) and not isinstance(value, bool) for value in present)


def pairs(field: str, ranges: Mapping[str, Sequence[float]] | Sequence[float] | None, columns: Sequence[str]) -> dict[str, Any]:
    """Ranges by column: as given, or one (low, high) for all columns.

    Raises:
        InvalidInput: neither of both.
    """
    if ranges is None:
        return {}
    if isinstance(ranges, Mapping):
        return {str(k): v for k, v in ranges.items()}
    if isinstance(ranges, str) or not isinstance(ranges, Sequence):
        raise InvalidInput(field, f"must be (low, high), got {show(ranges)}", "Give two numbers, or one pair for each column.")
    ends = [number(field, v) for v in ranges]
    if len(ends) != 2:
        raise InvalidInput(field, f"must be (low, high), got {show(ranges)}", "Give two numbers, or one pair for each column.")
    return dict.fromkeys(columns, tuple(ends))


def _canonical(name: str, n: int | None) -> str:
    get(name)
    return name


SOURCE = Source(
    place=4, owns=is_own, load=load, canonical=_canonical, rows=rows, only_here=True, stamp=lambda name: get(name).about
)
