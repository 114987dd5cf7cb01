"""Weights of rows with a public bound, brought into [0, 1].

The objective is the mean of w_i times the loss of row i, divided by the largest weight W that is declared, + lam/2 |theta|^2.
So a row's slope and curvature are at most those of a row without weights, and every sensitivity and noise scale is that of
the unweighted method: beside a row of weight 1, the noise grows by W. That is used of a loss by minimiser and objective
perturbation (|phi'| <= G, 0 <= phi'' <= beta, gradients on the line of x, phi(0)), and for sums of clipped gradients, where
the weight multiplies the clipped gradient. D(r), the diameter of all gradients, stays too: |w g - w' g'| is convex in (w,
w'), so largest at 0 or 1.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, number, positive, show


def sample_weights(sample_weight: ArrayLike | None, max_weight: object, n: int) -> tuple[Floats | None, int]:
    """((n,) weights over their public bound, how many were above it and clipped); None where there are none.

    Raises:
        InvalidInput: not one number of at least 0 for each row, or all are 0.
    """
    most = positive("max_weight", max_weight, fix="Give the largest weight that a row can have, without looking at the weights.")
    if sample_weight is None:
        return None, 0
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        weights = np.array(np.nan)
    if weights.ndim == 0 and np.isfinite(weights):
        weights = np.full(n, float(weights))
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise InvalidInput("sample_weight", f"must be {n:,} numbers of at least 0", "Give one for each row.")
    if not weights.any():
        raise InvalidInput("sample_weight", "is zero for every row: weights must contain a number above zero", "Leave it out.")
    return np.minimum(weights, most) / most, int((weights > most).sum())


def class_weights(class_weight: object, classes: NDArray[np.generic]) -> Floats | None:
    """(K,) weights of the classes over the largest of them; None where there are none. A class that is not named weighs 1.

    Raises:
        InvalidInput: not a mapping from classes to numbers above 0.
    """
    if class_weight is None:
        return None
    if not isinstance(class_weight, Mapping):
        balanced = isinstance(class_weight, str) and class_weight == "balanced"
        cause = "counts the rows of each class, which no ε covers" if balanced else "is not a mapping"
        raise InvalidInput("class_weight", f"{show(class_weight)} {cause}", 'Give weights, such as {"no": 1, "yes": 5}.')
    known = classes.tolist()
    for label, weight in class_weight.items():
        if label not in known:
            raise InvalidInput("class_weight", f"names {show(label)}, which is no class", f"The classes are {show(known)}.")
        number(f"class_weight[{show(label)}]", weight)
        positive(f"class_weight[{show(label)}]", weight)
    weights = np.array([float(class_weight.get(label, 1.0)) for label in known])
    return weights / weights.max()
