"""Train and measure: a mechanism at several budgets, its accuracy and objective for every replica, and divergence in words.

The one place where a mechanism is trained to be looked at. Runs, sweeps, comparisons of accountants, excess risk and the
tests of the papers' claims all come here.

The table of a run's training rows: visits, noise, clipping, margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.metrics import METRICS, measure_models
from dpviz.experiments.run.setup import Setup
from dpviz.mechanisms import Fit, Mechanism, OutputNoise, Training
from dpviz.models import Rows, margins, regulariser
from dpviz.models.problem import Problem, accuracy


@dataclass(frozen=True, eq=False)
class Trained:
    """E budgets x S seeds of a mechanism. What is measured of them is computed when first asked for.

    Attributes:
        problem: what was trained on.
        problems: the same at the regularisation of each budget.
        fit: what the mechanism gave; a replica that diverged is a model of zeros.
        diverged: (E, S) whether training left the range of numbers.
    """

    problem: Problem
    fit: Fit
    diverged: NDArray[np.bool_]
    problems: Sequence[Problem]

    def first(self, budgets: int) -> Trained:
        """Those of the first budgets."""
        return Trained(self.problem, self.fit.first(budgets), self.diverged[:budgets], self.problems[:budgets])

    @cached_property
    def _on_training_rows(self) -> tuple[Floats, Floats]:
        loss, right = self.problem.model.measure(self._flat, self.problem.rows)
        shape, lams = self.diverged.shape, np.array([problem.lam for problem in self.problems])
        return loss.reshape(shape) + lams[:, None] * regulariser(self._flat, 1.0).reshape(shape), right.reshape(shape)

    @property
    def _flat(self) -> Floats:
        return self.fit.theta.reshape(-1, self.fit.theta.shape[2])

    @property
    def objective(self) -> Floats:
        """(E, S) training objectives."""
        return self._on_training_rows[0]

    @property
    def optimality_gap(self) -> Floats:
        """(E, S) objective minus that of the non-private optimum; infinite for replicas that diverged."""
        least = np.array([problem.optimal_value for problem in self.problems])
        return np.where(self.diverged, np.inf, self.objective - least[:, None])

    @property
    def train_accuracy(self) -> Floats:
        """(E, S) shares of the training rows predicted right, in [0, 1]."""
        return self._on_training_rows[1] if self.fit.constant_label is None else self._of_the_label(self.problem.rows)

    def accuracy(self, rows: Rows) -> Floats:
        """(E, S) shares of these rows predicted right, in [0, 1]."""
        if self.fit.constant_label is not None:
            return self._of_the_label(rows)
        return accuracy(self.problem.model, self._flat, rows).reshape(self.diverged.shape)

    def metrics(self, rows: Rows, names: Sequence[str] = tuple(METRICS)) -> dict[str, Floats]:
        """Column of each metric (`Metric.column`) -> (E, S) values on these rows; NaN where it has none."""
        labels = None if self.fit.constant_label is None else self.fit.constant_label.ravel()
        table = measure_models(self.problem.model, self._flat, rows, labels, names)
        return {str(name): table[name].to_numpy(float).reshape(self.diverged.shape) for name in table}

    def expected_accuracy(self, rows: Rows) -> Floats | None:
        """(E, S) accuracies averaged over all noise in closed form, given each seed's training randomness.

        The mean over rows of P(score has the label's sign). (E, 1) where all seeds train alike; None where the
        distribution of the released parameters is not known.
        """
        return self.expected_accuracies(rows)[0]

    def expected_accuracies(self, rows: Rows) -> tuple[Floats | None, Floats | None]:
        """`expected_accuracy`, and the same for balanced accuracy: the mean of the shares of each class that is there."""
        noise, problem = self.fit.distribution, self.problem
        if noise is None or not problem.setting.linear:
            return None, None
        classes = [rows.y == label for label in (-1.0, 1.0) if (rows.y == label).any()]
        balanced = np.sum([one / (one.sum() * len(classes)) for one in classes], axis=0)
        chances = chances_right(problem, noise, rows, np.stack([np.full(len(rows), 1 / len(rows)), balanced]))
        return chances[:, :, 0], chances[:, :, 1]

    def _of_the_label(self, rows: Rows) -> Floats:
        """(E, S) shares of rows with the label that was released in the place of a model."""
        assert self.fit.constant_label is not None
        negative, positive = (np.count_nonzero(rows.y == label) / len(rows) for label in (-1.0, 1.0))
        return np.where(self.fit.constant_label > 0, positive, negative)


def chances_right(problem: Problem, noise: OutputNoise, rows: Rows, weights: Floats) -> Floats:
    """(E, S, G) weighted means over rows of P(score has the label's sign), for parameters of a known distribution.

    (E, 1, G) where all seeds train alike. The score must be linear in the parameters.

    Args:
        weights: (G, n), each weighting adds up to 1.
    """
    chances, positive = [], (rows.y > 0)[:, None]
    scores = None if noise.apart else problem.model.scores(np.atleast_2d(noise.centre), rows)
    for e, scale in enumerate(noise.scale):
        own = problem.model.scores(np.atleast_2d(noise.select(e).centre), rows) if scores is None else scores
        p = noise.family.prob_positive(float(scale), own, np.broadcast_to(rows.norms[:, None], own.shape), problem.m)
        chances.append((weights @ np.where(positive, p, 1 - p)).T)
    return np.stack(chances)


def train(mechanism: Mechanism, training: Training, *, keep_diverged: bool = False) -> Trained:
    """Trains all replicas of `training`.

    Args:
        keep_diverged: take a model of zeros for a replica that diverges, which is what one would use instead; otherwise
            one that diverges raises.

    Raises:
        InvalidInput: training diverged.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # divergence is reported in words below
        fit = mechanism.fit(training)
    diverged = np.asarray(~np.isfinite(fit.theta).all(axis=2))
    if diverged.any():
        if not keep_diverged:
            raise InvalidInput(
                "mechanism", f"{mechanism.id} diverged with these settings: its parameters overflow", "Use a smaller step size."
            )
        fit = replace(fit, theta=np.where(diverged[:, :, None], 0.0, fit.theta))
    return Trained(training.problem, fit, diverged, training.of_budgets)


_REPLICA_BLOCK = 1 << 24  # scores held at once when accuracy is counted


def instance_table(shared: Setup, fit: Fit, e: int) -> pd.DataFrame:
    """Means over the seeds at budget e, one row per training row; its number in the dataset is the index."""
    problem, record, theta = shared.problem, fit.record, fit.theta[e]
    n, s = problem.n, len(theta)

    def mean(values: NDArray[Any] | None, missing: float = np.nan) -> Floats:
        """(n,) means over the seeds that have a value; NaN where none has."""
        if values is None:
            return np.full(n, missing)
        per_seed = values[e if values.shape[0] > 1 else 0]  # it broadcasts to (E, S, ...)
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
