"""Compiled loops, where numba is installed (`pip install 'dpviz[fast]'`): products with rows without their zeros."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from types import ModuleType


@cache
def loops() -> ModuleType | None:
    """The compiled loops; None without numba, and where DPVIZ_COMPILED=0 asks for results as they are without it.

    Once they are loaded, numbers are drawn and scores sorted by compiled loops too (`draw_by` and `rank_by` in `common`).
    """
    if os.environ.get("DPVIZ_COMPILED") == "0" or find_spec("numba") is None:
        return None
    from dpviz.common import random
    from dpviz.common.ranks import rank_by

    try:
        from dpviz.models.compiled import draws, lanes, ranks
    except ImportError:  # a numba that is too old for this numpy says so when it is loaded
        return None
    random.draw_by(draws.poisson, draws.normals())
    rank_by(ranks.ranked)
    return lanes
