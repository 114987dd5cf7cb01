"""Repeated fits: every one spends the budget, in a search, cross validation, bagging or a loop of one's own.

Fits of an estimator and its clones on rows that overlap are counted in a process, and said with their total at the second,
fourth, eighth ... one. Those in processes of `n_jobs` are not added up, which is said too.
"""

import multiprocessing
import warnings
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dpviz.estimator.guarantee import PrivacyWarning

_SKETCH = 64  # rows with the smallest hashes: sets of rows that overlap much share some


@dataclass(frozen=True, eq=False)
class _Fits:
    """Fits of an estimator and its clones on overlapping rows.

    Attributes:
        count: their number.
        spent: sum of their epsilons.
        sketch: smallest hashes of the rows; it is kept beside the estimator and goes into no pickle.
    """

    count: int
    spent: float
    sketch: NDArray[np.uint64]


_families: WeakKeyDictionary[BaseEstimator, list[_Fits]] = WeakKeyDictionary()


def cloned(original: BaseEstimator, clone: BaseEstimator) -> None:
    """Counts a clone with its original."""
    _families[clone] = _families.setdefault(original, [])


def count(estimator: BaseEstimator, epsilon: float, rows: NDArray[np.float64]) -> None:
    """Counts a fit on (n, d) rows that spends epsilon."""
    known, sketch = _families.setdefault(estimator, []), _sketch(rows)
    met = [one for one in known if np.isin(sketch, one.sketch).any()]
    seen = np.unique(np.concatenate([sketch, *(one.sketch for one in met)]))[:_SKETCH]
    fits = _Fits(1 + sum(one.count for one in met), epsilon + sum(one.spent for one in met), seen)
    known[:] = [*(one for one in known if one not in met), fits]
    message = f"This estimator, with its clones, made {fits.count} fits so far, ε = {fits.spent:.4g} in all by plain addition."
    if multiprocessing.parent_process() is not None:
        message = f"A fit in a process of its own (n_jobs) spends ε = {epsilon:.4g}; such fits are not added up."
    elif fits.count == 1 or fits.count & (fits.count - 1):
        return
    every = "Every fit, of a search too, spends the privacy budget on the same rows."
    warnings.warn(f"{message} {every} Scores on held-out rows are not protected at all.", PrivacyWarning, stacklevel=3)


def _sketch(rows: NDArray[np.float64]) -> NDArray[np.uint64]:
    """The smallest hashes of rows; whole numbers, so that equal rows have equal ones whatever the other rows are."""
    odd = np.random.default_rng(0).integers(0, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (np.ascontiguousarray(rows).view(np.uint64) * odd).sum(axis=1, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return np.unique(mixed)[:_SKETCH]
