"""Repeated fits: every one spends the budget, and scikit-learn makes many of them inside one call.

`count` is called at every fit. Fits inside one call of scikit-learn (a search, cross validation, bagging, stacking, selection of
features ...) are added up, and said once when that call returns, with their total. A grid or random search, whose total is known
beforehand, is said before its first fit. Fits in a loop of one's own are counted for an estimator and its clones on rows that
overlap, and said at the second, fourth, eighth ... one. Only fits of this process and thread are counted; cross validation with
n_jobs says so.
"""

import sys
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV

from dpviz.estimator.guarantee import PrivacyWarning

_SKETCH = 64  # rows with the smallest hashes: sets of rows that overlap much share some


@dataclass
class _Fits:
    """Fits of an estimator and its clones on overlapping rows.

    Attributes:
        count: their number.
        spent: sum of their epsilons.
        sketch: smallest hashes of the rows; it is kept beside the estimator and goes into no pickle.
    """

    count: int = 0
    spent: float = 0.0
    sketch: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))


_families: WeakKeyDictionary[BaseEstimator, _Fits] = WeakKeyDictionary()
_calls = threading.local()  # .open: the call of scikit-learn under way in this thread; .fits and .spent in it


def cloned(original: BaseEstimator, clone: BaseEstimator) -> None:
    """Counts a clone with its original, and says beforehand what a search that begins will spend."""
    _families[clone] = _families.setdefault(original, _Fits())
    outer = _outermost()
    if outer is None or getattr(_calls, "open", None) is outer:
        return
    for frame in _stack():
        search = frame.f_locals.get("self")
        if (
            frame.f_code.co_name == "fit"
            and isinstance(search, GridSearchCV | RandomizedSearchCV)
            and _is_outermost(search, outer)
        ):
            fits = _planned(search, frame, getattr(original, "epsilon", None))
            if fits is not None:
                _watch(outer, reported=True)
                _say(type(search).__name__, *fits, "will make")
                return
    aside = any(_jobs(frame) not in (None, 1) for frame in _stack())
    if aside and not _name(outer).startswith("_") and _watch(outer, reported=True):
        message = (
            f"{_name(outer)} fits side by side (n_jobs), and such fits are not added up here: each spends ε on the same rows."
        )
        warnings.warn(message, PrivacyWarning, stacklevel=3)


def _jobs(frame: FrameType) -> object:
    """n_jobs of a call of scikit-learn, or of the estimator whose method it is; None where it has none."""
    return frame.f_locals.get("n_jobs", getattr(frame.f_locals.get("self"), "n_jobs", None))


def count(estimator: BaseEstimator, epsilon: float, rows: NDArray[np.float64]) -> None:
    """Counts a fit on (n, d) rows that spends epsilon."""
    outer = _outermost()
    if outer is not None and (getattr(_calls, "open", None) is outer or _watch(outer)):
        _calls.fits += 1
        _calls.spent += epsilon
        return
    fits = _families.setdefault(estimator, _Fits())
    sketch = _sketch(rows)
    if not np.isin(sketch, fits.sketch).any():  # other rows
        fits.count, fits.spent, fits.sketch = 0, 0.0, sketch
    fits.count, fits.spent = fits.count + 1, fits.spent + epsilon
    fits.sketch = np.union1d(fits.sketch, sketch)[:_SKETCH]
    if fits.count > 1 and fits.count & (fits.count - 1) == 0:
        _say("This estimator, with its clones,", fits.count, fits.spent, "made", stacklevel=4)


def _watch(outer: FrameType, reported: bool = False) -> bool:
    """Adds up fits until a call returns, and says their total then; False where that is not possible.

    Nothing in Python tells of a frame's end but a profile function, which is taken away again at once. Where another function has
    one, as while code is profiled, fits are counted as those in a loop of one's own.
    """
    if sys.getprofile() is not None:
        return False
    _calls.open, _calls.fits, _calls.spent = outer, 0, 0.0

    def ended(frame: FrameType, event: str, _: object) -> None:
        if event == "return" and frame is outer:
            sys.setprofile(None)
            fits, spent, _calls.open = _calls.fits, _calls.spent, None
            if fits > 1 and not reported:
                _say(_name(frame), fits, spent, "made", stacklevel=4)

    sys.setprofile(ended)
    return True


def _say(who: str, fits: int, spent: float, verb: str, *, stacklevel: int = 4) -> None:
    message = (
        f"{who} {verb} {fits} fits, ε = {spent:.4g} in all by plain addition. Every fit, of a search too, spends the privacy "
    )
    message += "budget on the same rows. Scores on held-out rows are not protected at all."
    warnings.warn(message, PrivacyWarning, stacklevel=stacklevel)


def _stack() -> list[FrameType]:
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return frames


def _outermost() -> FrameType | None:
    """The frame of scikit-learn that was called first in this thread; None where there is none."""
    inside = [frame for frame in _stack() if frame.f_globals.get("__name__", "").startswith("sklearn.")]
    inside = [frame for frame in inside if frame.f_code.co_name not in ("clone", "_clone_parametrized")]
    return inside[-1] if inside else None


def _is_outermost(search: BaseEstimator, outer: FrameType) -> bool:
    """True where that call is the search's own `fit`, perhaps in the wrapper that scikit-learn puts around it."""
    return outer.f_locals.get("self", outer.f_locals.get("estimator")) is search


def _name(frame: FrameType) -> str:
    """The name of the caller: a class for its methods, else the function."""
    of = frame.f_locals.get("self")
    if not isinstance(of, BaseEstimator):
        of = frame.f_locals.get("estimator") if frame.f_code.co_name in ("wrapper", "inner") else None
    return type(of).__name__ if isinstance(of, BaseEstimator) else _function(frame)


def _function(frame: FrameType) -> str:
    named = frame.f_locals.get("func")
    return str(getattr(named, "__name__", frame.f_code.co_name))


def _sketch(rows: NDArray[np.float64]) -> NDArray[np.uint64]:
    """The smallest hashes of rows; whole numbers, so that equal rows have equal ones whatever the other rows are."""
    odd = np.random.default_rng(0).integers(0, 2**63, rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (np.ascontiguousarray(rows).view(np.uint64) * odd).sum(axis=1, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return np.unique(mixed)[:_SKETCH]


def _planned(search: Any, frame: FrameType, epsilon: object) -> tuple[int, float] | None:
    """(fits, epsilon in all) of a search; None where that is not known beforehand."""
    splits = getattr(search, "n_splits_", frame.f_locals.get("n_splits"))  # as the version of scikit-learn has it
    spent = _spent(search, epsilon)
    if not isinstance(splits, Integral) or spent is None:
        return None
    last = max(spent) if search.refit else 0.0
    return int(splits) * len(spent) + bool(search.refit), int(splits) * sum(spent) + last


def _spent(search: Any, epsilon: object) -> list[float] | None:
    """Epsilon of each setting that is tried; None where that is not known beforehand."""
    if isinstance(search, GridSearchCV):
        each = [_epsilon(setting, epsilon) for setting in ParameterGrid(search.param_grid)]
    else:
        given = search.param_distributions
        names = [name for one in ([given] if isinstance(given, Mapping) else given) for name in one]
        if any(name.split("__")[-1] == "epsilon" for name in names):
            return None
        each = [_epsilon({}, epsilon)] * search.n_iter
    epsilons = [e for e in each if e is not None]
    return epsilons if epsilons and len(epsilons) == len(each) else None


def _epsilon(setting: Mapping[str, Any], otherwise: object) -> float | None:
    value = next((v for k, v in setting.items() if k.split("__")[-1] == "epsilon"), otherwise)
    return float(value) if isinstance(value, int | float) else None
