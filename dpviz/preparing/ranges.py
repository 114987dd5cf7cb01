"""Private ranges of number columns, found in the training rows for a part of the budget (`dpviz.privacy.private_ranges`)."""

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpviz.common.norms import add_intercept
from dpviz.common.paid import Paid
from dpviz.common.validate import InvalidInput, show
from dpviz.datasets import Dataset
from dpviz.datasets.table.encoder import NUMBER, Encoder
from dpviz.preparing.base import Facts, Preparation
from dpviz.privacy.accounting.gaussian import gaussian_budget, gaussian_mu
from dpviz.privacy.budget import Budget
from dpviz.privacy.private_ranges import EDGES, SHARE, private_ranges, shares

#: what a proof supposes where ranges are found privately
PUBLIC_KINDS = "public: which columns hold numbers and which hold categories"

#: of a range that a column has of which nothing was seen, an eighth of all public bins: its values look all alike
_WIDE = (EDGES[-1] - EDGES[0]) / 8


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


def replace_ranges(
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


class RangesFound(Preparation):
    """A range of every column of numbers, from two noisy histograms.

    A column of which nothing is seen at this budget keeps its declared range. One whose range was read from the rows gets that of
    all public bins, in which its values are all alike.
    """

    id = "ranges"
    what = "the ranges of number columns"

    def cost(self, facts: Facts) -> Paid:
        """A tenth of epsilon and delta."""
        return Paid(self.id, self.what, gaussian_mu(shares(facts.total)[0]), condition=PUBLIC_KINDS)

    def prepare(self, dataset: Dataset, train: NDArray[np.intp], total: Budget, source: random.Random) -> Dataset:
        """The rows in the ranges that were found, which clip.

        Raises:
            InvalidInput: no column becomes a feature by its range.
        """
        encoder, numbers = numbers_of(dataset)
        paid = self.cost(Facts.collect(dataset, len(train), total))
        for_row = gaussian_budget(paid.mu / max(1, dataset.person_rows), shares(total)[0])
        columns = {name: values[train] for name, values in numbers.items()}
        found = private_ranges(columns, for_row, source, unseen=(EDGES[0], EDGES[-1])).ranges
        unseen = {name for name, (low, high) in found.items() if high - low >= _WIDE}
        lost = [name for name in found if name in unseen and name in dataset.looked_at]
        kept = unseen - set(lost)
        changed = replace_ranges(encoder, {name: ends for name, ends in found.items() if name not in kept})
        x, norms_before = changed.before_scaling(dataset.frame)
        many = "s" if len(found) > 1 else ""
        message = f"Ranges of {len(found)} number column{many} were found privately, for {100 * SHARE:g} % of ε and δ."
        if kept:
            message += f" At this ε the rows are too few to see the values of {len(kept)}: they keep declared ranges."
        if lost:
            others = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
            message += (
                f" At this ε the rows are too few to see the values of {show(lost[0])}{others}: they tell the model nothing."
            )
        return replace(
            dataset,
            X=add_intercept(x, dataset.constant),
            norms=norms_before,
            encoder=changed,
            looked_at=tuple(name for name in dataset.looked_at if name not in found),
            lost=tuple(one for one in dataset.lost if not (one.kind == "values" and one.what in found)),  # in the old ranges
            remarks=(*dataset.remarks, message),
            preparations=(*dataset.preparations, paid),
        )._with_scaling_loss()
