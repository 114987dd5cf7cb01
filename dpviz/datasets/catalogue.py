"""Names to datasets. Loaded sets stay in memory up to a bound, and are loaded again when their file has changed."""

import importlib
import pkgutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from dpviz.common.memory import Cache
from dpviz.common.persons import choice
from dpviz.common.validate import InvalidInput, check_bool, check_choice, show
from dpviz.datasets import sources
from dpviz.datasets.base import Dataset
from dpviz.datasets.process.reading import Passing
from dpviz.datasets.sources import own, remote
from dpviz.datasets.sources.base import Source
from dpviz.datasets.table.encoding import AUTOMATIC, SCALINGS
from dpviz.datasets.table.names import Header

_CACHE_BYTES = 1 << 30


def _found() -> tuple[Source, ...]:
    modules = [importlib.import_module(f"{sources.__name__}.{module.name}") for module in pkgutil.iter_modules(sources.__path__)]
    return tuple(sorted((m.SOURCE for m in modules if hasattr(m, "SOURCE")), key=lambda source: source.place))


SOURCES = _found()


def _size(loaded: Dataset | InvalidInput) -> int:
    return 1000 if isinstance(loaded, InvalidInput) else int(loaded.X.nbytes + 16 * loaded.frame.size)


_cache: Cache[Dataset | InvalidInput] = Cache("datasets", _CACHE_BYTES, _size)


def list_datasets() -> tuple[str, ...]:
    """Names that `load_dataset` accepts now: bundled, synthetic, in the data folder, downloaded.

    "census-N" takes any N up to a million. Not listed: uploads, which belong to one session, and files of the data folder that
    stand in for a download, such as adult.data.
    """
    return tuple(name for source in SOURCES for name in source.names() if not remote.read_from(name))


def short_list() -> tuple[str, ...]:
    """`list_datasets()` without those that are another one less its rows with gaps, for a short list on a page."""
    names = list_datasets()
    return tuple(name for name in names if not (name in remote.REMOTE and remote.REMOTE[name].complete_of in names))


def has_size(name: str) -> bool:
    """True where a dataset comes in any number of rows, and its name holds that number.

    >>> has_size("census-10000"), has_size("iris")
    (True, False)
    """
    source = next((source for source in SOURCES if source.owns(name)), None)
    return source is not None and source.sized and source.rows(name) is not None


def canonical_name(name: str, n: int | None = None) -> str:
    """The one spelling of a dataset's name.

    Raises:
        InvalidInput: no such dataset, one that is not on this machine or belongs to another session, or a size that it
            does not come in.

    >>> canonical_name("census")
    'census-10000'
    >>> canonical_name("census", 50_000)
    'census-50000'
    """
    if not isinstance(name, str):
        raise InvalidInput("dataset", f"must be a name, got {show(name)}", f"Choose one of: {', '.join(list_datasets())}.")
    source = next((source for source in SOURCES if source.owns(name)), None)
    if source is not None and source.canonical is not None:
        spelling = source.canonical(name, n)
    elif source is not None and name in source.names():  # the other sources would read the disk
        spelling = name
    else:
        spelling = check_choice("dataset", name, list_datasets())
    if n is not None and not (source and source.sized):
        raise InvalidInput("n", f"{spelling!r} has a fixed number of rows", "Leave n out, or choose 'census'.")
    return spelling


def dataset(
    data: pd.DataFrame | ArrayLike | str | Path,
    y: ArrayLike | None = None,
    *,
    target: str | None = None,
    positive: object = None,
    above: float | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    ranges: Mapping[str, Sequence[float]] | Sequence[float] | None = None,
    categories: Mapping[str, Sequence[object]] | None = None,
    missing: object = None,
    defaults: Mapping[str, float | str] | None = None,
    proposed: Sequence[str] | None = None,
    person: str | ArrayLike | None = None,
    person_rows: int | None = None,
    data_norm: float | None = None,
    header: Header = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Dataset:
    """Your own rows as a dataset that `RunSpec`, `run`, `sweep`, `influence_of` and `audit` take like a named one.

    Its name is random; the rows stay in this process. Features are one-hot or numbers scaled to [0, 1] by their range. Ranges and
    categories that are not declared are read from the rows, listed in `Dataset.looked_at`, and no epsilon covers them.

    Args:
        data: (n, d) numbers, a frame, or the path of a table as `dpviz run` takes it.
        y: (n,) labels; or None, and `target` names the column of the frame that holds them.
        positive: the label, or list of labels, that counts as +1; of two labels the second in order by default.
        above: for labels that are numbers: values above this count as +1.
        columns: features; every column that can be used by default.
        drop: columns that are not features, where `columns` is left out.
        ranges: declared (low, high) by column, or one pair for all columns; values outside are clipped.
        categories: declared values by column; other values count as none of them.
        missing: words or numbers that are gaps, such as ["?", -9], for all columns, or {"glucose": [0]} for some, where
            "" stands for all others. Without it a file's words are gaps by rule (`dpviz.datasets.table.gaps`), a frame's not.
        defaults: value for gaps by column, instead of leaving their rows out.
        proposed: columns whose range, where none is given, is a round one of the rows; they stay in `Dataset.looked_at`.
        person: the column that names the person of a row, or (n,) names; epsilon is then for a person instead of a row.
        person_rows: rows of one person that are kept at most, drawn at random; public, 1 by default. Noise grows with it.
        data_norm: declared largest norm of a row of numbers, which is divided by it and clipped; nothing is read from the rows.
        header, delimiter, encoding, sheet: of a file, found by default; header is False without names, 2 if they are on line 2.

    Raises:
        InvalidInput: naming the column, what is wrong, and what to do.
    """
    positive = [positive] if positive is not None and not isinstance(positive, list | tuple) else positive
    how = _given(target=target, positive=positive, above=above, columns=columns, drop=drop, ranges=ranges, categories=categories)
    how |= _given(missing=missing, defaults=defaults, proposed=proposed, person=person, person_rows=person_rows)
    reading = _given(header=header, delimiter=delimiter, encoding=encoding, sheet=sheet)
    if not isinstance(data, str | Path):
        for name in reading:
            raise InvalidInput(name, "says how a file is read, and rows were given", "Leave it out, or give a path.")
        return _with_warning(own.from_values(data, y, data_norm=data_norm, **how))
    if y is not None or data_norm is not None:
        raise InvalidInput("y" if y is not None else "data_norm", "cannot go with a file", "Read the file into a frame first.")
    return _with_warning(own.from_file(Path(data), reading=reading, **how))


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _with_warning(content: own.Content) -> Dataset:
    """The dataset of own rows; a rare class is said."""
    made = load_dataset(own.hold(content))
    for message in made.rare_class:
        warnings.warn(message, stacklevel=3)
    return made


def name_of(value: object) -> object:
    """The name of a dataset that was given in the place of its name; other values as they are.

    Raises:
        InvalidInput: the catalogue loads other rows under that name.
    """
    if not isinstance(value, Dataset):
        return value
    kept = load_dataset(value.name, intercept=value.intercept, scaling=value.scaling)
    if kept is not value and kept.sha256 != value.sha256:
        raise InvalidInput("dataset", f"{value.name!r} stands for other rows", "Make it with dpviz.dataset(...).")
    return value.name


def is_in_memory(name: str) -> bool:
    """True where the rows behind a name are in the memory of this process only."""
    return any(source.owns(name) for source in SOURCES if source.only_here)


def rows_of(name: str) -> int:
    """Number of rows, without loading where it is known.

    >>> rows_of("iris")
    150
    """
    name = canonical_name(name)
    rows = _source(name).rows(name)
    return rows if rows is not None else load_dataset(name).n


def load_dataset(name: str, *, intercept: bool = True, scaling: str = "unit", n: int | None = None) -> Dataset:
    """A dataset by name.

    Args:
        name: one of `list_datasets()`, or "census-N" for N people.
        intercept: add the constant feature, (x, c)/sqrt(1 + c²) with c = ½ beside centred rows and 1 beside others.
        scaling: how rows are brought into the unit ball: "unit", "centred", "clip", "bound", "largest" (`Dataset.rescale`) or
            "automatic", which is `Dataset.automatic_scaling`.
        n: number of rows, for "census" only (100 to 1,000,000).

    Raises:
        InvalidInput: unknown name or impossible size; or the file behind the name is no table that can be used.

    >>> load_dataset("iris").X.shape
    (150, 5)
    """
    name = canonical_name(name, n)
    check_bool("intercept", intercept)
    if check_choice("scaling", scaling, (AUTOMATIC, *SCALINGS)) != "unit":
        plain = load_dataset(name, intercept=intercept)
        scaling = plain.automatic_scaling if scaling == AUTOMATIC else scaling
        if scaling == plain.scaling:
            return plain
        version = (plain.sha256, _source(name).stamp(name))
        key = (name, intercept, scaling, choice())
        dataset = _cache.compute(key, lambda _: plain.rescale(scaling), owner=name, version=version)
        assert isinstance(dataset, Dataset)
        return dataset
    source = _source(name)
    if not source.cached:
        return source.load(name, intercept)
    loaded = _cache.compute(
        (name, intercept, choice()), lambda _: _load(source, name, intercept), owner=name, version=source.stamp(name)
    )
    if isinstance(loaded, InvalidInput):
        raise InvalidInput(loaded.field, loaded.cause, loaded.fix)
    return loaded


def peek(name: str, *, intercept: bool = True) -> Dataset | None:
    """A dataset if it is in memory or quick to make; None where a file would have to be read first."""
    if any(source.owns(name) for source in SOURCES if source.quick):
        return load_dataset(name, intercept=intercept)
    loaded = _cache.get((name, intercept, choice()))
    return loaded if isinstance(loaded, Dataset) else None


def cautions(name: str) -> tuple[str, ...]:
    """`Dataset.cautions` of a set by name; none for sets that the program makes, and for a download that was not used yet.

    Raises:
        InvalidInput: as `load_dataset`.
    """
    name = canonical_name(name)
    source = _source(name)
    if source.quick:
        return ()
    loaded = peek(name) if source.cached and source.rows(name) is not None else load_dataset(name)
    return loaded.cautions if loaded is not None else ()


def _load(source: Source, name: str, intercept: bool) -> Dataset | InvalidInput:
    # what is wrong with a file is kept too, so that it is not read again before it changes
    try:
        return source.load(name, intercept)
    except Passing:
        raise
    except InvalidInput as error:
        sets = remote.read_from(name)
        if not sets:
            return error.bare()
        fix: str = f"As it was published, this file is the dataset {' or '.join(sets)}: choose that one. {error.fix}"
        return InvalidInput(error.field, error.cause, fix)


def _source(name: str) -> Source:
    return next(source for source in SOURCES if source.owns(name))
