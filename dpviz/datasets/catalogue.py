"""Names to datasets. Loaded sets stay in memory up to a bound."""

from __future__ import annotations

import re
import threading
from collections.abc import Hashable

from cachetools import LRUCache

from dpviz.datasets.base import Dataset
from dpviz.datasets.bundled import BUNDLED
from dpviz.datasets.synthetic import CENSUS_DEFAULT, CENSUS_MAX, CENSUS_MIN, census, teaching
from dpviz.validate import InvalidInput, one_of, show, truth, whole

_CACHE_BYTES = 1 << 30
_cache: LRUCache[Hashable, Dataset] = LRUCache(_CACHE_BYTES, getsizeof=lambda ds: ds.X.nbytes + 16 * ds.frame.size)
_lock = threading.RLock()


def dataset_names() -> tuple[str, ...]:
    """Names that `load_dataset` accepts; "census-N" takes any N up to a million."""
    return (*BUNDLED, "teaching", f"census-{CENSUS_DEFAULT}")


def canonical_name(name: str, n: int | None = None) -> str:
    """The one spelling of a dataset's name.

    Raises:
        InvalidInput: no such dataset, or a size that it does not come in.
    """
    if not isinstance(name, str):
        raise InvalidInput("dataset", f"must be a name, got {show(name)}", f"Choose one of: {', '.join(dataset_names())}.")
    census_name = re.fullmatch(r"census(?:-(\d{1,9}))?", name)
    if census_name:
        size = n if n is not None else int(census_name[1] or CENSUS_DEFAULT)
        return f"census-{whole('n', size, CENSUS_MIN, CENSUS_MAX)}"
    known = one_of("dataset", name, dataset_names())
    if n is not None:
        raise InvalidInput("n", f"{known!r} has a fixed number of rows", "Leave n out, or choose 'census'.")
    return known


def rows_of(name: str) -> int:
    """Number of rows, without loading where it is known from the name."""
    name = canonical_name(name)
    if name.startswith("census-"):
        return int(name.removeprefix("census-"))
    return BUNDLED[name].rows if name in BUNDLED else load_dataset(name).n


def load_dataset(name: str, *, intercept: bool = True, n: int | None = None) -> Dataset:
    """A dataset by name.

    Args:
        name: one of `dataset_names()`, or "census-N" for N people.
        intercept: add the constant feature, (x, 1)/sqrt 2.
        n: number of rows, for "census" only (100 to 1,000,000).

    Raises:
        InvalidInput: unknown name or impossible size.
    """
    name = canonical_name(name, n)
    key = (name, truth("intercept", intercept))
    with _lock:
        if key not in _cache:
            dataset = _load(name, intercept)
            if _cache.getsizeof(dataset) > _cache.maxsize:
                return dataset
            _cache[key] = dataset
        return _cache[key]


def _load(name: str, intercept: bool) -> Dataset:
    if name in BUNDLED:
        return BUNDLED[name].load(name, intercept)
    if name == "teaching":
        return teaching(name, intercept)
    return census(name, int(name.removeprefix("census-")), intercept)
