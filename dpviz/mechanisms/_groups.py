"""Seeds in a few fixed groups, one matrix computation each, for methods whose steps read all rows.

One group would leave processors idle, one group per seed would read the rows from memory once for each seed. The
number of groups does not depend on the machine, so the bits of a result do not either.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

#: told the share of one group's work that is done
Tick = Callable[[float], None]

GROUPS = 4
PARALLEL_FROM = 200_000  # rows x parameters from which threads gain more than they lose


def seed_groups(seeds: int) -> list[slice]:
    """At most `GROUPS` slices of nearly equal length."""
    count = min(GROUPS, seeds)
    edges = [seeds * g // count for g in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]
