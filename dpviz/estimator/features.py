"""From a person's rows to the unit ball by a fixed linear map, and back to coefficients in the rows' own units.

Every row is mapped by itself, so the map costs no privacy. Its constants are declared by the person; those read from the rows are
named in the guarantee.

Weights of rows with a public bound, brought into [0, 1].

The objective is the mean of w_i times the loss of row i, divided by the largest weight W that is declared, + lam/2 |theta|^2.
So a row's slope and curvature are at most those of a row without weights, and every sensitivity and noise scale is that of
the unweighted method: beside a row of weight 1, the noise grows by W. That is used of a loss by minimiser and objective
perturbation (|phi'| <= G, 0 <= phi'' <= beta, gradients on the line of x, phi(0)), and for sums of clipped gradients, where
the weight multiplies the clipped gradient. D(r), the diameter of all gradients, stays too: |w g - w' g'| is convex in (w,
w'), so largest at 0 or 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.common import norms
from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, number, positive, show

FROM_DATA = "from data"
#: ranges by `privacy.private_ranges`, for a tenth of the budget
PRIVATE = "private"
CONSTANT = 0.5  # c of the constant feature, rows being (z, c)/sqrt(1 + c²); docs/default_rules.md has what it gains over 1


@dataclass(frozen=True)
class LinearMap:
    """x -> (x - centre) * scale, a vector of norm at most 1 for every row that keeps to what was declared.

    Attributes:
        centre, scale: (d,).
        low, high: (d,) declared ranges, infinite where whole rows are bounded.
        looked_at: what was read from the rows.
        radius: the declared norm by which whole rows are divided; None where each feature has a range.
    """

    centre: Floats
    scale: Floats
    low: Floats
    high: Floats
    looked_at: tuple[str, ...] = ()
    radius: float | None = None

    def rows(self, X: Floats, intercept: bool) -> tuple[Floats, int]:
        """((n, d) or (n, d + 1) rows of norm at most 1, how many did not keep to what was declared)."""
        inside = np.clip(X, self.low, self.high)
        if self.radius is not None:
            z, size = norms.scale_into_ball(inside, self.radius), norms.row_norms(inside, self.radius)
        else:  # declared ranges: no entry is larger than 1/sqrt(d)
            z = (inside - self.centre) * self.scale
            size = np.linalg.norm(z, axis=1)
            z /= np.maximum(1.0, size)[:, None]
        outside = (inside != X).any(axis=1) | (size > 1 + 1e-9)
        if intercept:
            z = norms.add_intercept(z, CONSTANT)
        return z, int(outside.sum())

    def coefficients(self, theta: Floats, intercept: bool) -> tuple[Floats, Floats]:
        """((K, d) weights, (K,) offsets) in the rows' own units of parameters (K, d) or (K, d + 1)."""
        offset = np.zeros(len(theta))
        if intercept:
            theta = theta / np.hypot(1.0, CONSTANT)
            theta, offset = theta[:, :-1], theta[:, -1] * CONSTANT
        weights = theta * self.scale
        return weights, offset - weights @ self.centre


def norm_map(d: int, data_norm: object) -> LinearMap:
    """Division by the declared largest norm of a row."""
    norm = positive("data_norm", data_norm, fix="Give the largest norm that a row can have, without looking at the rows.")
    _check_reach("data_norm", norm)
    return LinearMap(np.zeros(d), np.full(d, 1 / norm), np.full(d, -np.inf), np.full(d, np.inf), radius=norm)


def _check_reach(field: str, reach: float) -> None:
    """Refuses units in which 1/reach, and so a coefficient, is beyond double precision."""
    if not 1e-150 <= reach <= 1e150:
        raise InvalidInput(field, f"gives values of the size {reach:g}, beyond double precision", "Use units near 1.")


def range_map(X: Floats, ranges: object, names: Sequence[str], intercept: bool) -> LinearMap:
    """Every feature to [-1, 1] by its range, then all divided by sqrt(d).

    Args:
        X: (n, d) rows, used for "from data" only.
        ranges: (low, high) for all features, one pair for each, a mapping from names to pairs, or "from data".
        intercept: whether there is a constant feature; without it 0 stays 0.

    Raises:
        InvalidInput: a range is missing or empty.
    """
    d = X.shape[1]
    read: tuple[str, ...] = ()
    if isinstance(ranges, str):
        if ranges != FROM_DATA:
            raise InvalidInput("ranges", f"unknown value {show(ranges)}", f'Give ranges, "{PRIVATE}" or "{FROM_DATA}".')
        low, high, read = X.min(axis=0), X.max(axis=0), tuple(f"the range of {name}" for name in names)
        high = np.where(high > low, high, low + np.maximum(1.0, np.abs(low) * 2.0**-30))  # 1 is lost beside a large number
    else:
        low, high = _declared(ranges, names)
    for name, a, b in zip(names, low, high, strict=True):
        if not a < b:
            raise InvalidInput(f"ranges[{show(name)}]", f"low {a:g} is not below high {b:g}", "Give low < high.")
    centre = low / 2 + high / 2 if intercept else np.zeros(d)
    reach = np.maximum(high - centre, centre - low)
    for name, size in zip(names, reach, strict=True):
        _check_reach(f"ranges[{show(name)}]", float(size))
    return LinearMap(centre, 1 / (reach * np.sqrt(d)), low, high, read)


def _is_pair(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray) and len(value) == 2 and all(np.ndim(end) == 0 for end in value)


def _declared(ranges: object, names: Sequence[str]) -> tuple[Floats, Floats]:
    if isinstance(ranges, Mapping):
        missing = [name for name in names if name not in ranges]
        if missing:
            raise InvalidInput("ranges", f"has none for {show(missing[0])}", "Give one for each feature.")
        pairs = [ranges[name] for name in names]
    elif (isinstance(ranges, Sequence) and not isinstance(ranges, str)) or (isinstance(ranges, np.ndarray) and ranges.ndim > 0):
        pairs = [ranges] * len(names) if len(ranges) == 2 and not any(map(_is_pair, ranges)) else list(ranges)
    else:
        raise InvalidInput("ranges", f"must be (low, high) or one pair for each feature, got {show(ranges)}", "Give them.")
    if len(pairs) != len(names) or any(isinstance(pair, str) or not _is_pair(pair) for pair in pairs):
        raise InvalidInput("ranges", f"must be one (low, high) or {len(names)} of them", "Give one pair for each feature.")
    ends = np.array([[number("ranges", v) for v in pair] for pair in pairs])
    return ends[:, 0], ends[:, 1]


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
