"""Persons with several rows: at most k of them are kept, chosen at random, and stand in a random order.

A guarantee for a person compares two tables that differ in the rows of one person. After `bound_rows` they differ in at most k
rows, for every fixed outcome of what is random about the others: which of their rows are kept does not depend on that person,
and the positions of all rows are a uniform draw. So both tables can be bounded with the same choices and positions for all
others, and what k replaced rows cost bounds the cost of the person, by joint convexity of the hockey-stick divergence. In the
order of the file, a person with more rows would move the rows of all others to other places, and so into other parts and
batches. How many rows are kept is taken as public, as the number of rows is everywhere.

The choice must be as secret as the noise. A run of the explorer has both from its seeds, so that every process keeps the same
rows; a model that leaves the program is trained on a choice by the operating system (`releasing.training.choose_secretly`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MOST_ROWS = 1000
_STREAM = (46,)  # apart from the streams of splits and noise, which come from the same seeds
#: what the rows decide beside that and guarantees for persons take as public
KEPT_ROWS: str = "how many rows are kept of all persons together"
_seeds: ContextVar[tuple[int, ...]] = ContextVar("seeds of the choice of rows", default=())


@contextmanager
def choose_rows_by(seed: int) -> Iterator[None]:
    """Tables of persons that are read inside keep rows that this seed decides, beside the seeds around it."""
    before = _seeds.set((*_seeds.get(), seed))
    try:
        yield
    finally:
        _seeds.reset(before)


def choice() -> tuple[int, ...]:
    """The seeds that decide which rows are kept: what is made of a table is kept under them."""
    return _seeds.get()


def bound_rows(
    persons: pd.Series, most: int, secret: np.random.SeedSequence | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(positions of the rows that are kept, in random order; the person of each of them, numbered in that order).

    Args:
        persons: (n,) names, without gaps.
        most: rows of one person that are kept at most.
        secret: the randomness; that of `choice` by default.

    >>> kept, who = bound_rows(pd.Series(["a", "a", "a", "b"]), 2, np.random.SeedSequence(1))
    >>> len(kept), np.bincount(who).tolist() in ([2, 1], [1, 2])
    (3, True)
    """
    if secret is None:
        secret = np.random.SeedSequence(choice() or 0, spawn_key=_STREAM)
    rng = np.random.Generator(np.random.PCG64(secret))
    order = rng.permutation(len(persons))
    shuffled = pd.Series(pd.factorize(persons.iloc[order])[0])
    kept = order[(shuffled.groupby(shuffled).cumcount() < most).to_numpy()]
    kept = rng.permutation(kept)  # anew: rows of persons with many came early in the first order
    return kept, pd.factorize(persons.iloc[kept])[0].astype(np.intp)
