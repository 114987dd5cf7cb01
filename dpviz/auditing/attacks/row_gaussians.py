"""Means and variances of each row's signal over shadow models: what both forms of LiRA share."""

from typing import NamedTuple

import numpy as np

from dpviz.auditing.attacks.base import Flags, Floats, Shadows

FEW = 64  # shadow models, of both kinds together, below which one variance serves all rows, as in LeakPro's `carlini` variance
_LEAST = 1e-12  # of a variance, in parts of the mean square of all signals: where models do not differ at all


class RowGaussians(NamedTuple):
    """Means and variances (n,) of a row's signal."""

    mean: Floats
    variance: Floats


def row_gaussians(shadows: Shadows, members: bool) -> RowGaussians:
    """The signal of each row over the shadow models that were, or were not, trained on it.

    A row's variance is its own where there are `FEW` models, and else the mean over the rows: margins of an overfitted
    network are 4 for some members and 90 for others, and one variance for all rows hides those that differ. A row with
    fewer than two models of the kind has the mean over the rows.
    """
    counted = shadows.member if members else ~shadows.member
    count = counted.sum(axis=0)
    mean = _mean(shadows.signals, counted, count)
    spread = (np.where(counted, shadows.signals - mean, 0.0) ** 2).sum(axis=0)
    pooled = spread.sum() / max(1, count.sum() - np.count_nonzero(count))
    variance = np.where((count > 1) & (len(shadows) >= FEW), spread / np.maximum(count - 1, 1), pooled)
    floor = _LEAST * max(float(np.mean(np.square(shadows.signals, dtype=float))), 1e-300)
    return RowGaussians(mean, np.maximum(variance, floor))


def separation(shadows: Shadows) -> Floats:
    """(n,) how many standard deviations larger a row's signal is under shadow models that were trained on it."""
    inside, outside = row_gaussians(shadows, True), row_gaussians(shadows, False)
    return np.asarray((inside.mean - outside.mean) / np.sqrt((inside.variance + outside.variance) / 2))


def _mean(signals: Floats, counted: Flags, count: np.ndarray) -> Floats:
    total = np.where(counted, signals, 0.0).sum(axis=0, dtype=float)
    return np.where(count > 0, total / np.maximum(count, 1), signals.mean(axis=0, dtype=float))
