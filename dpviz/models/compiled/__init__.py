"""Compiled loops, where numba is installed (`pip install 'dpviz[fast]'`): products with rows without their zeros."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from types import ModuleType


@cache
def loops() -> ModuleType | None:
    """The compiled loops; None without numba, and where DPVIZ_COMPILED=0 asks for results as they are without it."""
    if os.environ.get("DPVIZ_COMPILED") == "0" or find_spec("numba") is None:
        return None
    from dpviz.models.compiled import lanes

    return lanes
