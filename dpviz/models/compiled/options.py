"""How functions are compiled (numba): kept on disk where there is a place for it, and without holding up other threads."""

from __future__ import annotations

from typing import Any

from numba import njit


def _kept() -> bool:
    """Whether compiled functions can be kept; numba refuses to define one where neither its folder nor home can be written."""
    try:
        njit(cache=True)(_kept)
    except RuntimeError:
        return False
    return True


OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "cache": _kept()}
