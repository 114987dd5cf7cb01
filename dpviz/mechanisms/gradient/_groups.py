"""Seeds in a few fixed groups, one matrix computation each, for methods whose steps read all rows.

One group would leave processors idle, one group per seed would read the rows from memory once for each seed. The
number of groups does not depend on the machine, so the bits of a result do not either.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from dpviz.common.words import Words
from dpviz.models import Setting

#: told the share of one group's work that is done
Tick = Callable[[float], None]

GROUPS = 4
PARALLEL_FROM = 200_000  # rows x parameters from which threads gain more than they lose
_SINGLE_FROM = 1 << 20  # entries of a table from which on its gradients are summed in single precision
ROUNDING: Words = (
    "Tables of this size are summed in single precision, in which every contribution is shortened by 1e-6 of it so that "
    "rounding lets no row add more than the clip norm; the rounding of the sum is outside the proof, as it is in double."
)


def precision(setting: Setting) -> type[np.floating]:
    """In which precision gradients over all rows are summed, from public facts."""
    return np.float32 if setting.n * setting.d > _SINGLE_FROM else np.float64


def rounding(setting: Setting) -> tuple[str, ...]:
    """What is to be said about it."""
    return (ROUNDING,) if precision(setting) is np.float32 else ()


def seed_groups(seeds: int) -> list[slice]:
    """At most `GROUPS` slices of nearly equal length."""
    count = min(GROUPS, seeds)
    edges = [seeds * g // count for g in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]
