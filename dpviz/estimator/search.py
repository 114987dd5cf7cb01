"""What a search over settings costs: every fit spends the budget, and scikit-learn's searches make many."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from numbers import Integral
from types import FrameType
from typing import Any

from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV
from sklearn.model_selection._search import BaseSearchCV

from dpviz.estimator.guarantee import PrivacyWarning


def warn_of_searches(epsilon: object) -> None:
    """Warns where the estimator is being cloned at the start of a search, with the search's total.

    A search tells its estimators nothing of itself. It clones them before the first fit, in the process that it was started in,
    so the calling frames are looked at there.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "fit" and "base_estimator" not in frame.f_locals:
            search = frame.f_locals.get("self")
            if isinstance(search, BaseSearchCV):
                splits = getattr(search, "n_splits_", frame.f_locals.get("n_splits"))  # as the version of scikit-learn has it
                warnings.warn(_text(search, splits, epsilon), PrivacyWarning, stacklevel=2)
                return
        frame = frame.f_back


def _text(search: Any, splits: object, epsilon: object) -> str:
    said = "Every fit of a search spends the privacy budget on the same rows."
    spent = _spent(search, epsilon)
    if isinstance(splits, Integral) and spent is not None:
        last = max(spent) if search.refit else 0.0
        fits, total = int(splits) * len(spent) + bool(search.refit), int(splits) * sum(spent) + last
        said += f" This one makes {fits} fits, ε = {total:.4g} in all by plain addition."
    return f"{said} Scores on held-out rows are not protected at all."


def _spent(search: Any, epsilon: object) -> list[float] | None:
    """Epsilon of each setting that is tried; None where that is not known beforehand."""
    if isinstance(search, GridSearchCV):
        each = [_epsilon(setting, epsilon) for setting in ParameterGrid(search.param_grid)]
    elif isinstance(search, RandomizedSearchCV) and _epsilon(search.param_distributions, None) is None:
        each = [_epsilon({}, epsilon)] * search.n_iter
    else:
        return None
    epsilons = [e for e in each if e is not None]
    return epsilons if epsilons and len(epsilons) == len(each) else None


def _epsilon(setting: Mapping[str, Any], otherwise: object) -> float | None:
    value = next((v for k, v in setting.items() if k.split("__")[-1] == "epsilon"), otherwise)
    return float(value) if isinstance(value, int | float) else None
