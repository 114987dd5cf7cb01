"""From a table and its spec to a dataset: label, features, gaps, and what was lost."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.digits import counted
from dpviz.common.limits import Limits
from dpviz.common.persons import bound_rows
from dpviz.common.validate import InvalidInput, check_choice, number, number_from_text, show
from dpviz.datasets.base import Dataset, Label, build
from dpviz.datasets.table.cell_text import is_number
from dpviz.datasets.table.columns import HEX, NUMBER_TEXT, SAME, first_names, odd_texts, positives, word
from dpviz.datasets.table.encoder import CATEGORIES, NUMBER, Column, Encoder
from dpviz.datasets.table.features import features_of
from dpviz.datasets.table.gaps import mark_all_gaps
from dpviz.datasets.table.lost import Lost
from dpviz.datasets.table.names import unused_name
from dpviz.datasets.table.proposals import round_range
from dpviz.datasets.table.remarks import remarks
from dpviz.datasets.table.spec import CHOSEN_COLUMNS, TableSpec


def prepare(
    frame: pd.DataFrame,
    spec: TableSpec,
    *,
    name: str,
    source: str,
    intercept: bool = True,
    limits: Limits | None = None,
    notes: tuple[str, ...] = (),
    every_column: bool = False,
    guessed_label: str = "",
    test_rows: int = 0,
    room: Callable[[int, int], None] = lambda rows, features: None,
    **words: Any,
) -> Dataset:
    """The dataset that a table and a spec make.

    Args:
        frame: as from `read_csv`: floats or categories, NaN for gaps.
        notes: what was done before, put in front of what is done here.
        guessed_label: why the label had to be guessed; empty where it was named.
        every_column: also take columns that look like identifiers or have many gaps, where the spec names no columns.
        test_rows: how many rows at the end of the table are its publisher's test part; 0 where there is none.
        room: receives the numbers of rows and features before the rows are made; raises where there is no room for them.
        words: further attributes of the dataset, such as description or label_names.

    Raises:
        InvalidInput: naming the column, what is wrong, and what to do.
    """
    target = check_choice("target", spec.target, [str(c) for c in frame.columns])
    messages = list[str](notes)
    frame = mark_all_gaps(frame, spec, messages)
    features, left_out = features_of(frame, spec, every_column)
    lost = list[Lost](_columns_lost(frame, spec, left_out))
    used, kept = _without_gaps(frame[[*features, target]], target, spec, messages, lost)
    frame, used, kept, persons = _of_persons(frame, used, kept, spec, lost)
    y, usual = positives(used[target], spec.target, spec.positive, spec.above, messages)
    label_names = words.pop("label_names", usual)
    most = (limits or Limits.from_environment()).features
    encoder = Encoder(tuple(_columns(used, features, spec, most, messages, lost)))
    room(len(used), len(encoder.names) + intercept)
    x, norms = encoder.before_scaling(used, lost)
    return build(
        name=name,
        x=x,
        norms=norms,
        y=y,
        feature_names=list(encoder.names),
        intercept=intercept,
        source=source,
        label_names=label_names,
        notes=(*messages, *([] if spec.person else _repeats(used))),
        looked_at=tuple(c for c in features if c in spec.proposed or c not in {**spec.ranges, **spec.categories}),
        lost=tuple(sorted(lost, key=lambda one: one.kind != "rows")),
        encoder=encoder,
        label=label_of(spec, usual, guessed_label),
        **(_words(frame, used, kept, left_out, spec, y, label_names, test_rows) | {"persons": persons} | words),
    )


def _of_persons(
    frame: pd.DataFrame, used: pd.DataFrame, kept: NDArray[np.bool_], spec: TableSpec, lost: list[Lost]
) -> tuple[pd.DataFrame, pd.DataFrame, NDArray[np.bool_], NDArray[np.intp] | None]:
    """(table, features and label, rows kept, the person of each) after at most `person_rows` rows of a named person are kept."""
    if not spec.person:
        return frame, used, kept, None
    frame = frame[kept].reset_index(drop=True)
    named = np.flatnonzero(frame[spec.person].notna())
    if len(named) < len(frame):
        message: str = f"{len(frame) - len(named):,} rows were dropped because {spec.person} does not name their person."
        lost.append(Lost("rows", "", len(frame) - len(named), message))
    if not len(named):
        raise InvalidInput("person", f"{show(spec.person)} is empty in every row", "Name the column that says whose a row is.")
    chosen, persons = bound_rows(frame[spec.person].iloc[named], spec.person_rows)
    if len(chosen) < len(named):
        message = (
            f"{len(named) - len(chosen):,} of {len(named):,} rows were left out at random, so that none of {persons.max() + 1:,} "
            f"persons ({spec.person}) has more than {spec.person_rows:,}."
        )
        lost.append(Lost("rows", "", len(named) - len(chosen), message))
    rows = named[chosen]
    frame, used = (table.iloc[rows].reset_index(drop=True) for table in (frame, used))
    return frame, used, np.ones(len(rows), bool), persons


def label_of(spec: TableSpec, names: Sequence[str], guessed: str = "") -> Label:
    """The label of a table: its column, words for -1 and +1, and what of it was guessed.

    Args:
        guessed: why the column had to be guessed; empty where it was named.
    """
    guesses = [*(["column"] if guessed else []), *([] if spec.positive or spec.above is not None else ["class"])]
    return Label(spec.target, names[1], names[0], tuple(guesses), guessed)


def look(frame: pd.DataFrame, spec: TableSpec) -> tuple[list[str], tuple[str, ...]]:
    """(words that are gaps, remarks) on a table and a spec without encoding the rows, one sentence each.

    Raises:
        InvalidInput: as `prepare`, for the label, the columns and the gaps.
    """
    notes: list[str] = []
    frame = mark_all_gaps(frame, spec, notes)
    features, _ = features_of(frame, spec, False)
    used, kept = _without_gaps(frame[[*features, spec.target]], spec.target, spec, [], [])
    y, names = positives(used[spec.target], spec.target, spec.positive, spec.above, [])
    return notes, remarks(frame, kept, used, y, names, spec)


def _default(column: str, series: pd.Series, spec: TableSpec) -> Any:
    """What fills the gaps of a column of numbers or of categories; None for nothing."""
    value, field_name = spec.defaults.get(column), f"defaults[{show(column)}]"
    if value is None or not is_number(series) or column in spec.categories:
        return None if value is None else word(value)
    return number_from_text(field_name, value) if isinstance(value, str) else number(field_name, value)


def _repeats(used: pd.DataFrame) -> list[str]:
    repeats = int(used.duplicated().sum())
    if repeats == 0:
        return []
    counted = "1 row repeats" if repeats == 1 else f"{repeats:,} rows repeat"
    return [f"{counted} another one; who stands in several rows is protected in each of them only."]


def _words(
    frame: pd.DataFrame,
    used: pd.DataFrame,
    kept: NDArray[np.bool_],
    left_out: Mapping[str, str],
    spec: TableSpec,
    y: NDArray[np.float64],
    label_names: Sequence[str],
    test_rows: int,
) -> dict[str, Any]:
    """The parts of a table that a dataset keeps: readable rows, columns beside them, the publisher's test part."""
    by_values = spec.columns is None and any(column not in (*spec.drop, spec.person) for column in left_out)
    return {
        "person_rows": spec.person_rows if spec.person else 0,
        "remarks": remarks(frame, kept, used, y, label_names, spec),
        "description": f"{len(used):,} rows: {spec.target} is {label_names[1]} or {label_names[0]}?",
        "taken_as_public": (*spec.taken_as_public, *([CHOSEN_COLUMNS] if by_values else [])),
        "frame": _shown(used.drop(columns=spec.target), spec.target, y, label_names),
        "beside": frame.loc[kept, list(left_out)].reset_index(drop=True) if left_out else None,
        "published_test": np.arange(len(frame))[kept] >= len(frame) - test_rows if test_rows else None,
    }


def _shown(features: pd.DataFrame, target: str, y: NDArray[np.float64], label_names: Sequence[str]) -> pd.DataFrame:
    """The features as they were before encoding, with the two labels beside them."""
    labels = pd.Categorical.from_codes((y > 0).astype(np.int8), categories=list(label_names))
    last = unused_name("label" if "label" not in features else f"label ({target})", features.columns)
    return features.assign(**{last: labels})


def _columns_lost(frame: pd.DataFrame, spec: TableSpec, left_out: Mapping[str, str]) -> list[Lost]:
    """The information that the table loses with unused columns."""
    lost = []
    constants = [column for column, reason in left_out.items() if reason == SAME]
    for column, reason in left_out.items():
        sentence: str = f"{column} is not used: {reason}."
        if column in constants and len(constants) > 1:
            if column != constants[0]:
                continue
            sentence = f"{len(constants):,} columns have the same value in every row and are not used: {first_names(constants)}."
        lost.append(Lost("column", column, int(frame[column].notna().sum()), sentence))
    return lost


def _columns(
    used: pd.DataFrame, features: list[str], spec: TableSpec, most: int, messages: list[str], lost: list[Lost]
) -> list[Column]:
    """The features' columns with their ranges and categories, declared or read."""
    columns: list[Column] = []
    names: list[str] = []
    widths: dict[str, int] = {}
    for column in features:
        series, default = used[column], _default(column, used[column], spec)
        gaps = spec.missing_in.get(column, spec.missing)
        if is_number(series) and column not in spec.categories:
            ends = _ends(column, series.to_numpy(dtype=np.float64), spec, lost)
            made = Column(column, NUMBER, *ends, default=default, gaps=gaps)
        elif column in spec.ranges:
            raise InvalidInput(f"ranges[{show(column)}]", "this column holds text", "Declare its categories instead.")
        else:
            levels = _levels(column, series, spec.categories.get(column), default, messages, lost)
            if len(levels) > most:
                fix: str = f"Leave it out or declare fewer; the limit is {most} features (DPVIZ_MAX_FEATURES)."
                raise InvalidInput(column, f"has {len(levels):,} categories", fix)
            made = Column(column, CATEGORIES, levels=tuple(levels), default=default, gaps=gaps)
        labels = Encoder((made,)).names
        duplicate = next((label for label in labels if label in names), None)
        if duplicate is not None:
            cause = f"two features would be called {show(duplicate)}, one of them from {show(column)}"
            raise InvalidInput("columns", cause, "Rename or leave out one.")
        columns.append(made)
        names.extend(labels)
        widths[column] = len(labels)
        if len(names) > most:
            raise _too_many(widths, len(features), most)
    return columns


def _ends(column: str, values: NDArray[np.float64], spec: TableSpec, lost: list[Lost]) -> tuple[float, float]:
    """The range of a column of numbers: declared, a round one where it is proposed, else read."""
    declared = spec.ranges.get(column) or (round_range(values) if column in spec.proposed else None)
    low, high = (number(f"ranges[{show(column)}]", end) for end in declared or (values.min(), values.max()))
    if declared is not None and low >= high:
        raise InvalidInput(f"ranges[{show(column)}]", f"low {low:g} is not below high {high:g}", "Give low < high.")
    if not np.isfinite(high - low):
        raise InvalidInput(column, f"spans {low:g} to {high:g}, too far to scale", "Declare a range.")
    if low == high:
        lost.append(_constant(column, len(values)))
    return low, high


def _levels(
    column: str, series: pd.Series, declared: Sequence[str] | None, default: str | None, notes: list[str], lost: list[Lost]
) -> list[str]:
    """The categories of a column, declared or read."""
    if declared is not None:
        levels = [str(v) for v in declared]
        levels += [default] if default is not None and default not in levels else []  # declared as well, as the value of gaps
        if len(set(levels)) < len(levels):
            raise InvalidInput(f"categories[{show(column)}]", "a category is given twice", "Give each once.")
        return levels
    levels = sorted(map(str, pd.unique(series.map(word))))
    if texts := odd_texts(levels, NUMBER_TEXT):
        notes.append(f"{column} holds numbers, but also {show(texts[0])}: each of its values became a feature of its own.")
    if levels and all(map(HEX.fullmatch, levels)):
        notes.append(f"{column} holds hexadecimal numbers such as {show(levels[0])}, which are read as texts.")
    if len({level.casefold() for level in levels}) < len(levels):
        notes.append(f"Values of {column} that differ only in upper and lower case count as different.")
    if len(levels) == 1:
        lost.append(_constant(column, len(series)))
    return levels


def _constant(column: str, rows: int) -> Lost:
    return Lost("column", column, rows, f"{column} has the same value in every row that is left, so it tells nothing apart.")


def _too_many(widths: Mapping[str, int], usable: int, most: int) -> InvalidInput:
    """The error for more than `most` features; `widths` counts those made so far, by column."""
    widest = max(widths, key=lambda c: widths[c])
    if widths[widest] == 1:
        return InvalidInput(
            "columns",
            f"{usable:,} of them can be used, one feature each; the limit is {most}",
            "Choose fewer, or raise DPVIZ_MAX_FEATURES.",
        )
    return InvalidInput(
        "columns",
        f"need more than {most} features; {show(widest)} alone needs {widths[widest]}",
        "Leave out that column, declare fewer categories, or raise DPVIZ_MAX_FEATURES.",
    )


def rows_left(frame: pd.DataFrame, columns: Sequence[str], target: str, person: str, most: int) -> int:
    """Rows without a gap in the label or in any of these columns, at most so many of one person."""
    complete = frame[frame[[*columns, target]].notna().all(axis=1)]
    return int(complete[person].value_counts().clip(upper=most).sum()) if person else len(complete)


def _without_gaps(
    used: pd.DataFrame, target: str, spec: TableSpec, notes: list[str], lost: list[Lost]
) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """The rows without a gap, numbered anew, and (rows of the table,) which they are."""
    gaps = used.isna()
    used = used.copy()
    for column in spec.defaults:
        if column not in used:
            continue
        filling, count = _default(column, used[column], spec), int(gaps[column].sum())
        if not count:
            continue
        if isinstance(filling, str):
            texts = used[column].astype(object).map(word, na_action="ignore") if is_number(used[column]) else used[column]
            used[column] = texts.astype("category") if is_number(used[column]) else texts
            if filling not in used[column].cat.categories:
                used[column] = used[column].cat.add_categories([filling])
        used[column] = used[column].fillna(filling)
        notes.append(f"{counted(count, 'gap')} in {column} {'was' if count == 1 else 'were'} filled with {word(filling)}.")
    gaps = used.isna()
    complete = ~gaps.any(axis=1)
    dropped = int((~complete).sum())
    if dropped == len(used):
        worst = str(gaps.sum().idxmax())
        raise InvalidInput(
            "missing",
            f"every row has a gap in the columns used, most of them in {show(worst)}",
            "Leave out the columns with gaps, or declare defaults.",
        )
    if dropped:
        counts = gaps.sum().sort_values(ascending=False, kind="stable")
        columns = ", ".join(f"{column} ({int(count):,})" for column, count in counts.items() if count)
        classes = used.loc[~complete, target].map(word, na_action="ignore").unique()
        one = f" All of them have {target} = {classes[0]}." if len(classes) == 1 and dropped > 1 and pd.notna(classes[0]) else ""
        message: str = f"{dropped:,} of {len(used):,} rows were dropped because of gaps in: {columns}.{one}"
        lost.append(Lost("rows", "", dropped, message))
        used = used[complete].reset_index(drop=True)
    return used, complete.to_numpy()
