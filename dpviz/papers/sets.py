"""The papers' datasets on this machine: by their catalogue name, or as a person's own file of that name."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpviz.common.validate import InvalidInput
from dpviz.datasets import canonical_name, load_dataset, rows_of
from dpviz.datasets.sources import folder
from dpviz.mechanisms import Mechanism, get_mechanism

#: beginnings of file names that stand for a set, beside its catalogue name
FILES: dict[str, tuple[str, ...]] = {
    "adult": ("adult",),
    "adult-complete": ("adult",),
    "bank": ("bank-full",),
    "bank-additional": ("bank-additional-full",),
    "breast-cancer-original": ("breast-cancer-wisconsin",),
    "credit-card-balanced": ("creditcard-balanced",),
    "kddcup99": ("kddcup", "kdd99", "kdd"),
    "kddcup99-70000": ("kddcup99", "kddcup", "kdd99", "kdd"),
}


#: splits that verdicts are about: a single one decides too much
SPLITS = 5
#: rows below which they take more noise draws on each
SMALL, SMALL_SEEDS = 2000, 100


def is_small(name: str) -> bool:
    """True where verdicts on a set take `SMALL_SEEDS` draws on each split."""
    return rows_of(name) < SMALL


def choose(names: Sequence[str], uploads: Mapping[str, str], rows: int = 0, features: int = 0) -> tuple[str, str, list[str]]:
    """(dataset, the person's own file that it is or "", why other own files were not taken).

    The first of `names` that is on this machine: as an upload, in the catalogue, or as a table in the data folder whose file has
    its name, whatever the case and the ending (bank.csv, BANK.dat, ipums-br.csv). Of several, the one that fits the paper best.

    Args:
        names: catalogue names, the wanted one first; the last one is always there.
        uploads: names of uploads with the names of their files.
        rows, features: of the paper's set; 0 where it does not say.
    """
    problems: list[str] = []
    own = dict(uploads) | {name: name for name in folder.names()}
    there: list[str] = []
    for wanted in names[:-1]:
        mine = uploaded_names(wanted, own)
        # an upload was brought for this; a public set by its own name is surer than a table of the folder called like it
        for name in (*(n for n in mine if n in uploads), wanted, *(n for n in mine if n not in uploads)):
            try:
                rows_of(canonical_name(name))
            except InvalidInput as problem:
                if name in own:
                    problems.append(f"{own[name]} was not taken: {problem.field}: {problem.cause}.")
                continue
            there.append(name)
    if not there:
        return canonical_name(names[-1]), "", problems
    name = max(there, key=lambda name: _fits(name, rows, features)) if len(there) > 1 else there[0]
    return canonical_name(name), own.get(name, ""), problems


def _fits(name: str, rows: int, features: int) -> int:
    """The number of facts in which a set agrees with the paper's."""
    return (rows_of(name) == rows) + (features > 0 and features_of(name) == features)


def features_of(name: str) -> int:
    """Number of encoded features, without the constant."""
    return load_dataset(name).d - 1


def uploaded_names(wanted: str, files: Mapping[str, str]) -> list[str]:
    """Names among `files` (name to file name) whose file is called like a set."""
    stems = (wanted, *FILES.get(wanted, ()))
    # "BANK_full.csv.gz" is "bank-full"
    named = {name: file.removeprefix(folder.PREFIX).split(".")[0].lower() for name, file in files.items()}
    return [name for name, file in named.items() if re.sub(r"[ _]+", "-", file) in stems]


def build(mechanism: str, knobs: Mapping[str, Any]) -> Mechanism:
    """A mechanism with these knobs in the papers' panels and claims."""
    return get_mechanism(mechanism).from_params(pinned_values(mechanism) | dict(knobs))


def pinned_values(mechanism: str) -> dict[str, float]:
    """Clip norm and sampling rate in the papers' panels and claims, where a method has rules for them.

    At this clip norm no gradient of a linear model is clipped, as in the papers.
    """
    knobs = get_mechanism(mechanism).knobs()
    return {
        name: value for name, value in (("clip_norm", 1.0), ("sampling_rate", 0.1)) if name in knobs and knobs[name].automatic
    }
