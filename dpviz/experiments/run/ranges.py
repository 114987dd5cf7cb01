"""Rows of a run whose ranges of number columns are found privately in its training rows, for a share of its budget.

The noise on the ranges comes from the run's seed, so that a link repeats it; a model to publish draws it from the operating
system (`dpviz.releasing`). Ranges depend on epsilon, so runs at several epsilons have rows of their own. All noise draws of a run
share its ranges: their spread does not show what other noise on the ranges would change.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpviz.common.memory import Cache
from dpviz.common.validate import InvalidInput, show
from dpviz.datasets import Dataset
from dpviz.datasets.table.encoder import NUMBER, Encoder
from dpviz.datasets.table.encoding import AUTOMATIC, add_intercept
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms.persons import of_row
from dpviz.privacy.budget import row_budget
from dpviz.privacy.private_ranges import EDGES, SHARE, private_ranges, shares

#: of a range that a column has of which nothing was seen, an eighth of all public bins: its values look all alike
_WIDE = (EDGES[-1] - EDGES[0]) / 8

_kept: Cache[Dataset] = Cache("rows in private ranges", 1 << 29, lambda made: made.X.nbytes + 1)


def ranges_matter(dataset: Dataset) -> bool:
    """True where columns of numbers become features by their range."""
    encoder = dataset.encoder
    return dataset.norms is not None and encoder is not None and any(c.kind == NUMBER for c in encoder.columns)


def numbers_of(dataset: Dataset) -> tuple[Encoder, dict[str, NDArray[np.float64]]]:
    """(encoder, (n,) values of its columns of numbers by name).

    Raises:
        InvalidInput: no column becomes a feature by its range.
    """
    encoder = dataset.encoder
    if encoder is None or not ranges_matter(dataset):
        cause = f"no column of {show(dataset.name)} becomes a feature by its range"
        raise InvalidInput("ranges", cause, "Choose a table with columns of numbers, such as census-10000.")
    return encoder, {c.name: dataset.frame[c.name].to_numpy(float) for c in encoder.columns if c.kind == NUMBER}


def with_ranges(
    encoder: Encoder, ranges: Mapping[str, tuple[float, float]], categories: Mapping[str, tuple[str, ...]] | None = None
) -> Encoder:
    """The encoder with other ranges and categories; columns that are in neither stay."""
    columns = [
        replace(c, low=ranges[c.name][0], high=ranges[c.name][1], clip=True)
        if c.name in ranges
        else replace(c, levels=(categories or {}).get(c.name, c.levels))
        for c in encoder.columns
    ]
    return replace(encoder, columns=tuple(columns))


def privately_ranged(spec: RunSpec, dataset: Dataset) -> Dataset:
    """The rows of a run in ranges that its training rows gave with noise.

    A column of which nothing is seen at this budget gets the range of all public bins, in which its values are all alike.

    Args:
        spec: the run, whose budget and seed matter.
        dataset: its rows at unit length, in the ranges that they have.

    Raises:
        InvalidInput: no column becomes a feature by its range.
    """
    key = (dataset.name, dataset.sha256, dataset.numbers_sha256, *(getattr(spec, name) for name in _DECIDE))
    return _kept.compute(key, lambda _: _ranged(spec, dataset), owner=dataset.name)


_DECIDE = ("epsilon", "delta", "seed", "split_seed", "folds", "published_split", "intercept", "row_scaling")


def _others(names: list[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _ranged(spec: RunSpec, dataset: Dataset) -> Dataset:
    encoder, numbers = numbers_of(dataset)
    train = dataset.split(spec.split_seed, spec.folds, spec.published_split).train
    of_ranges, _ = shares(row_budget(spec.epsilon, spec.delta, len(train)))
    for_row = of_row(of_ranges, dataset.person_rows)
    source = random.Random(f"ranges {spec.seed}")  # standard draws are the same at every epsilon
    columns = {name: values[train] for name, values in numbers.items()}
    found = private_ranges(columns, for_row, source, unseen=(EDGES[0], EDGES[-1])).ranges
    lost = [name for name, (low, high) in found.items() if high - low >= _WIDE]
    changed = with_ranges(encoder, found)
    x, norms_before = changed.before_scaling(dataset.frame)
    many = "s" if len(found) > 1 else ""
    message = f"Ranges of {len(found)} number column{many} were found privately, for {100 * SHARE:g} % of ε and δ."
    if lost:
        message += (
            f" At this ε the rows are too few to see the values of {show(lost[0])}{_others(lost)}: they tell the model nothing."
        )
    unit = replace(
        dataset,
        X=add_intercept(x) if dataset.intercept else x,
        norms=norms_before,
        encoder=changed,
        looked_at=tuple(name for name in dataset.looked_at if name not in found),
        lost=tuple(one for one in dataset.lost if not (one.kind == "values" and one.what in found)),  # in the ranges from before
        remarks=(*dataset.remarks, message),
        private_ranges=True,
    )._with_scaling_loss()
    return unit.scaled(unit.automatic_scaling if spec.row_scaling == AUTOMATIC else spec.row_scaling)
