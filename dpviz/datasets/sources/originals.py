"""Published files that a person has in the data folder, in the place of a download, such as adult.data with adult.test.

Each is brought into the form that the download has, under names that its publisher or OpenML gives. Their sizes are known, so the
limits on tables from outside do not hold for them.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from dpviz.common import toml
from dpviz.common.limits import Limits
from dpviz.common.memory import Cache
from dpviz.common.validate import InvalidInput, show
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.sources import folder

_CACHE_BYTES = 512 << 20


def _same(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def _adult(frame: pd.DataFrame) -> pd.DataFrame:
    income = frame["income"].astype(str).str.rstrip(".")  # adult.test ends its labels with a point
    return frame.drop(columns="income").assign(**{"class": income.astype("category")})


def _bank(frame: pd.DataFrame) -> pd.DataFrame:
    answer = frame["y"].astype(str).map({"no": "1", "yes": "2"}).astype("category")
    return frame.drop(columns="y").assign(Class=answer)


def _tumours(frame: pd.DataFrame) -> pd.DataFrame:
    kind = frame["Class"].map({2.0: "benign", 4.0: "malignant"}).astype("category")
    return frame.drop(columns=["id", "Class"]).assign(Class=kind)


@dataclass(frozen=True)
class Original:
    """The published files of one download.

    Attributes:
        files: names in the data folder, each also with ".gz"; all are needed, and their rows stand in this order.
        columns: names, for files without a header, and what a header must have.
        finish: from the joined table to the form of the download; keeps rows and their order.
        test: whether the last file is the publisher's test part.
    """

    files: tuple[str, ...]
    columns: tuple[str, ...]
    finish: Callable[[pd.DataFrame], pd.DataFrame] = _same
    test: bool = False


#: the rows of all files, one file after the other, and how many at their end are the publisher's test part
Published = tuple[pd.DataFrame, int]

_FINISH = {"adult": _adult, "bank": _bank, "tumours": _tumours}
ORIGINALS = {
    name: Original(
        tuple(words["files"]), tuple(words["columns"].split()), _FINISH.get(words.get("finish", ""), _same), "test" in words
    )
    for name, words in toml.declarations(__file__).items()
}
BANK_NAMES = ORIGINALS["openml-1461"].columns[:-1]

_tables: Cache[Published] = Cache("published files", _CACHE_BYTES, lambda t: int(t[0].memory_usage(deep=True).sum()) + 1)


def paths(file: str, listing: Mapping[str, folder.Entry] | None = None) -> tuple[Path, ...]:
    """The published files of a download in the data folder; none where one is missing.

    Args:
        file: name of the download.
        listing: of the data folder, where it was read already.
    """
    if file not in ORIGINALS:
        return ()
    tables = folder.listing() if listing is None else listing
    by_name = {name.removeprefix(folder.PREFIX).lower(): entry.path for name, entry in tables.items()}
    published = [by_name.get(name) or by_name.get(f"{name}.gz") for name in ORIGINALS[file].files]
    return tuple(path for path in published if path is not None) if None not in published else ()


def stamp(file: str) -> Hashable:
    """Changes when one of the files changes; None where they are not there."""
    return tuple(folder.file_stamp(path) for path in paths(file)) or None


def read(file: str) -> Published:
    """The published files as one table in the form of the download, and the number of rows of its test part, 0 without one.

    Raises:
        InvalidInput: they are not there, cannot be read, or hold something else.
    """
    return _tables.compute(file, lambda _: _read(file), owner=file, version=stamp(file))


def _read(file: str) -> Published:
    original = ORIGINALS[file]
    parts = [_part(path, original.columns) for path in paths(file)]
    test_rows = len(parts[-1]) if original.test else 0
    if len(parts) > 1:
        parts = [part.astype({c: object for c in part if isinstance(part[c].dtype, pd.CategoricalDtype)}) for part in parts]
    joined = pd.concat(parts, ignore_index=True)
    texts = {c: "category" for c in joined if not pd.api.types.is_numeric_dtype(joined[c])}
    return original.finish(joined.astype(texts)), test_rows


def _part(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    limits = Limits.from_environment()
    wide = Limits().widen()  # half a million rows take half a minute, and more on a busy machine
    limits = replace(
        limits, **{name: max(getattr(limits, name), getattr(wide, name)) for name in ("megabytes", "rows", "seconds")}
    )
    content = folder.file_bytes(path, limits)
    if content.startswith(b"|"):  # the first line of UCI's adult.test is a remark
        content = content.partition(b"\n")[2]
    try:
        frame = read_table(content, limits=limits).frame
    except InvalidInput as error:
        if error.field != "header":
            raise
        frame = read_table(content, header=False, limits=limits).frame
    if len(frame.columns) == len(columns) and str(frame.columns[0]) == "column 1":
        frame.columns = pd.Index(columns)
    frame.columns = pd.Index([_spelled(str(name), columns) for name in frame.columns])
    missing = [name for name in columns if name not in frame]
    if missing:
        raise InvalidInput(
            path.name,
            f"has no column {show(missing[0])}, so it is not the published file of that name",
            "Give the file another name to use it as a table of your own.",
        )
    return frame[list(columns)]


def _spelled(name: str, columns: tuple[str, ...]) -> str:
    """A column's name as it is published, whatever its case and signs."""
    alike = {c.lower().replace("-", "_"): c for c in columns}
    return alike.get(name.lower().replace("-", "_").replace(".", "_").replace(" ", "_"), name)
