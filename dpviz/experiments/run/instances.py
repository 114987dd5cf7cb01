"""The table of a run's training rows: visits, noise, clipping, margins."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.experiments.run.setup import Setup
from dpviz.mechanisms import Fit
from dpviz.models import margins

_REPLICA_BLOCK = 1 << 24  # scores held at once when accuracy is counted


def instance_at(values: NDArray[Any], e: int) -> NDArray[Any]:
    """The part of an array that broadcasts to (E, S, ...) that belongs to budget e."""
    return values[e if values.shape[0] > 1 else 0]


def instance_table(shared: Setup, fit: Fit, e: int) -> pd.DataFrame:
    """Means over the seeds at budget e, one row per training row; its number in the dataset is the index."""
    problem, record, theta = shared.problem, fit.record, fit.theta[e]
    n, s = problem.n, len(theta)

    def mean(values: NDArray[Any] | None, missing: float = np.nan) -> Floats:
        """(n,) means over the seeds that have a value; NaN where none has."""
        if values is None:
            return np.full(n, missing)
        per_seed = instance_at(values, e)
        there = np.isfinite(per_seed)
        with np.errstate(invalid="ignore"):
            known = np.where(there, per_seed, 0.0).sum(axis=0, dtype=float) / there.sum(axis=0)
        return np.broadcast_to(known, (n,)).copy()

    margin, correct = np.zeros(n), np.zeros(n)
    size = max(1, _REPLICA_BLOCK // n)
    for i in range(0, s, size):
        scores = problem.model.scores(theta[i : i + size], problem.rows)
        margin += (problem.rows.y[:, None] * scores).sum(axis=1) / s
        correct += ((scores >= 0) == (problem.rows.y > 0)[:, None]).sum(axis=1) / s
    return pd.DataFrame(
        {
            "label": problem.rows.y.astype(int),
            "visits": mean(record.visits),
            "times_noised": mean(record.times_noised, 0.0),
            "noise_norm": mean(record.noise_norm, 0.0),
            "passed": mean(record.passed, 0.0),
            "clipped": mean(record.clipped),
            "rule_margin": mean(record.rule_margin),
            "margin": margin,
            "margin_non_private": margins(problem.model, shared.reference.optimum[None], problem.rows)[:, 0],
            "correct": correct,
        },
        index=pd.Index(shared.split.train, name="row_id"),
    )
