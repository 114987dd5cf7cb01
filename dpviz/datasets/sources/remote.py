"""The papers' public sets (remote.toml): downloaded once, or read from the published files in the data folder.

Each says which variant it is; two variants can share a download.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpviz.common import toml
from dpviz.common.limits import Limits, refuse_in_demo
from dpviz.common.validate import InvalidInput
from dpviz.datasets.base import Dataset
from dpviz.datasets.process import fetch
from dpviz.datasets.sources import folder, originals
from dpviz.datasets.sources.base import Source
from dpviz.datasets.table.prepare import prepare
from dpviz.datasets.table.spec import TableSpec

SAMPLE_SEED = 20240101


@dataclass(frozen=True)
class Remote:
    """A set that is downloaded.

    Attributes:
        file: the download, shared by variants.
        file_rows: rows of the download.
        rows: rows of this variant.
        megabytes: size of the download, roughly.
        spec: how it becomes a dataset.
        label_names: words for -1 and +1.
        derive: what is done to the table before; keeps its rows where the publisher has a test part.
        note: one sentence on what `derive` does.
        complete_of: the set that this is without its rows with gaps, "" for most.
    """

    title: str
    variant: str
    file: str
    file_rows: int
    rows: int
    megabytes: int
    spec: TableSpec
    label_names: tuple[str, str]
    description: str
    licence: str
    derive: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame
    note: str = ""
    complete_of: str = ""

    @property
    def source(self) -> str:
        """The source, with licence."""
        where = "scikit-learn's fetch_kddcup99" if self.file == "kddcup99" else f"OpenML {self.file.removeprefix('openml-')}"
        return f"{self.title}, {self.variant}; {where}; {self.licence}"


def _attack(frame: pd.DataFrame) -> pd.DataFrame:
    kind = np.where(frame["labels"].astype(str).str.rstrip(".") == "normal", "normal", "attack")
    return frame.drop(columns="labels").assign(kind=pd.Categorical(kind))


def _attack_sample(frame: pd.DataFrame) -> pd.DataFrame:
    chosen = np.random.default_rng(SAMPLE_SEED).choice(len(frame), min(70_000, len(frame)), replace=False)
    return _attack(frame.iloc[np.sort(chosen)].reset_index(drop=True))


def _balanced(frame: pd.DataFrame) -> pd.DataFrame:
    fraud = frame["Class"].astype(str).isin(["1", "1.0"]).to_numpy()
    normal = np.flatnonzero(~fraud)
    some = np.random.default_rng(SAMPLE_SEED).choice(normal, min(int(fraud.sum()), len(normal)), replace=False)
    return frame.iloc[np.sort(np.r_[np.flatnonzero(fraud), some])].reset_index(drop=True)


def _bank(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.rename(columns={f"V{k + 1}": name for k, name in enumerate(originals.BANK_NAMES)})


_DERIVED = {"attack": _attack, "attack_sample": _attack_sample, "balanced": _balanced, "bank": _bank}


def _sets() -> dict[str, Remote]:
    """The sets of remote.toml."""
    known = toml.declarations(__file__)
    made = {}
    for name, entry in known.items():
        words = known.get(entry.pop("variant_of", ""), {}) | entry
        spec, labels = TableSpec.from_dict(words["spec"]), tuple(words["label_names"])
        derive = _DERIVED.get(words.get("derive", ""), lambda frame: frame)
        made[name] = Remote(**words | {"spec": spec, "label_names": labels, "derive": derive})
    return made


REMOTE = _sets()


def is_downloaded(name: str, listing: Mapping[str, folder.Entry] | None = None) -> bool:
    """True where a set is on this machine, as a download or as its published files in the data folder.

    Args:
        name: of the set.
        listing: of the data folder, where it was read already.
    """
    return bool(originals.paths(REMOTE[name].file, listing)) or fetch.facts(REMOTE[name].file) is not None


def source_of(name: str) -> str:
    """The origin of the copy on this machine; empty where there is none."""
    own, header = originals.paths(REMOTE[name].file), fetch.facts(REMOTE[name].file)
    if own:
        return f"from {' and '.join(path.name for path in own)} in the data folder"
    return f"{header['source']}, {header['fetched']}" if header else ""


def names() -> tuple[str, ...]:
    """Sets that are on this machine."""
    listing = folder.listing()
    return tuple(name for name in REMOTE if is_downloaded(name, listing))


def require(name: str) -> None:
    """
    Raises:
        InvalidInput: the set is not on this machine.
    """
    if not is_downloaded(name):
        remote = REMOTE[name]
        files = originals.ORIGINALS[remote.file].files if remote.file in originals.ORIGINALS else ()
        own = f"; or put {' and '.join(files)} into the data folder" if files else ""
        raise InvalidInput(
            "dataset",
            f"{name!r} is not on this machine yet (about {remote.megabytes} MB)",
            f"Run dpviz show {name} --download in a shell, or download it on the page Data{own}.",
        )


def rows(name: str) -> int | None:
    """Rows of a set on this machine where they follow from its first line; None where it must be loaded."""
    header = fetch.facts(REMOTE[name].file)
    own = originals.paths(REMOTE[name].file)
    return REMOTE[name].rows if header and not own and header["rows"] == REMOTE[name].file_rows else None


def stamp(name: str) -> Hashable:
    """Changes when the download, or the file in its place, changes."""
    return (originals.stamp(REMOTE[name].file), fetch.stamp(REMOTE[name].file))


def load(name: str, intercept: bool) -> Dataset:
    """The dataset of a download, or of the published files in its place.

    Raises:
        InvalidInput: it is not there, was damaged, or is not what it should be.
    """
    remote = REMOTE[name]
    require(name)
    own = bool(originals.paths(remote.file))
    frame, test_rows = originals.read(remote.file) if own else (fetch.read(remote.file)[0], 0)
    messages = [remote.note] if remote.note else []
    if len(frame) != remote.file_rows:
        messages.append(f"This copy has {len(frame):,} rows, not {remote.file_rows:,}; it came {source_of(name)}.")
    described = f"{remote.title}, {remote.variant}; {remote.licence}" if own else remote.source
    frame = frame.rename(columns=str.strip)
    # OpenML has changed the spelling of names before (native-country, native_country)
    by_name = {c.lower().replace("-", "_"): c for c in map(str, frame.columns)}
    defaults = {by_name.get(c.lower().replace("-", "_"), ""): v for c, v in remote.spec.defaults.items()}
    spec = replace(remote.spec, defaults={c: v for c, v in defaults.items() if c})
    return prepare(
        remote.derive(frame),
        spec,
        name=name,
        source=f"{described}; {source_of(name)}",
        intercept=intercept,
        limits=Limits(features=5_000),
        every_column=True,
        test_rows=test_rows,
        notes=tuple(messages),
        label_names=remote.label_names,
        description=remote.description,
        taken_as_public=(),  # the table itself is public
    )


def download(name: str, progress: Callable[[int], None] = lambda size: None) -> None:
    """Downloads a set; see `fetch.fetch`.

    Raises:
        InvalidInput: this server is a demonstration, or the set cannot be had.
    """
    refuse_in_demo("dataset", "it downloads nothing")
    file = REMOTE[name].file
    names = originals.ORIGINALS[file].columns if file == "kddcup99" else ()  # the others name their columns
    fetch.fetch(file, REMOTE[name].file_rows, names, progress)


def _canonical(name: str, n: int | None) -> str:
    require(name)
    return name


def read_from(table: str) -> tuple[str, ...]:
    """Names of the sets that are read from a table of the data folder, as a published file whose name it has."""
    file = table.removeprefix(folder.PREFIX).lower().removesuffix(".gz")
    downloads = [name for name, original in originals.ORIGINALS.items() if file in original.files and originals.paths(name)]
    return tuple(name for name, remote in REMOTE.items() if remote.file in downloads)


SOURCE = Source(place=3, owns=REMOTE.__contains__, load=load, names=names, canonical=_canonical, stamp=stamp, rows=rows)
