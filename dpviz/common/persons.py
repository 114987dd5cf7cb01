"""Persons with several rows: at most k of them are kept, chosen at random, and stand in a random order.

A guarantee for a person compares two tables that differ in the rows of one person. After `bounded` they differ in at most k rows,
for every fixed outcome of what is random about the others: which of their rows are kept does not depend on that person, and the
positions of all rows are a uniform draw. So both tables can be bounded with the same choices and positions for all others, and
what k replaced rows cost bounds the cost of the person, by joint convexity of the hockey-stick divergence. In the order
of the file, a person with more rows would move the rows of all others to other places, and so into other parts and batches.
How many rows are kept is taken as public, as the number of rows is everywhere.
"""

from __future__ import annotations

import secrets

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MOST_ROWS = 1000
#: what the rows decide beside that and guarantees for persons take as public
KEPT_ROWS: str = "how many rows are kept of all persons together"
_SECRET = secrets.randbits(128)  # of this process: nobody learns which rows were kept, and it is the same at each reading


def secret_of(name: str) -> np.random.SeedSequence:
    """The secret randomness of a table in this process."""
    return np.random.SeedSequence([_SECRET, *name.encode()])


def bounded(persons: pd.Series, most: int, secret: np.random.SeedSequence) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(positions of the rows that are kept, in random order; the person of each of them, numbered in that order).

    Args:
        persons: (n,) names, without gaps.
        most: rows of one person that are kept at most.

    >>> kept, who = bounded(pd.Series(["a", "a", "a", "b"]), 2, np.random.SeedSequence(1))
    >>> len(kept), np.bincount(who).tolist() in ([2, 1], [1, 2])
    (3, True)
    """
    rng = np.random.Generator(np.random.PCG64(secret))
    order = rng.permutation(len(persons))
    shuffled = pd.Series(pd.factorize(persons.iloc[order])[0])
    kept = order[(shuffled.groupby(shuffled).cumcount() < most).to_numpy()]
    kept = rng.permutation(kept)  # anew: rows of persons with many came early in the first order
    return kept, pd.factorize(persons.iloc[kept])[0].astype(np.intp)
