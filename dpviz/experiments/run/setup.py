"""Data cut in two and made ready for one model: what all mechanisms of a comparison share, and what they are set beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.memory import Cache
from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput
from dpviz.datasets import Dataset, Split
from dpviz.experiments.run.metrics import METRICS, measure_models
from dpviz.experiments.run.resolve import ResolvedRun, dataset_of, resolve, split_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration, Mechanism, protection
from dpviz.models import Rows, Setting, get_model
from dpviz.models.problem import Problem, accuracy


@dataclass(frozen=True)
class Baseline:
    """A result without noise to compare with.

    Attributes:
        accuracy: test accuracy in [0, 1].
        train_accuracy: training accuracy in [0, 1].
        objective: training objective; NaN where there is no model.
        theta: (m,) parameters, None where there is no model.
    """

    accuracy: float
    train_accuracy: float
    objective: float
    theta: Floats | None


@dataclass(frozen=True, eq=False)
class Setup:
    """A dataset cut in two and made ready for one model: what all mechanisms of a comparison share.

    Attributes:
        dataset: the rows.
        split: row ids of training and test rows.
        problem: the training problem.
        test: the test rows.
        reference: the same problem with the regularisation of a model without noise. It differs where lambda is automatic and
            the method's rule asks for more, which is part of what its training costs.
    """

    dataset: Dataset
    split: Split
    problem: Problem
    test: Rows
    reference: Problem

    @cached_property
    def non_private(self) -> Baseline:
        """The minimiser of `reference`, without privacy; for a network the best of three long trainings."""
        theta = self.reference.optimum
        return Baseline(
            float(accuracy(self.reference.model, theta[None], self.test)[0]),
            float(self.reference.measure(theta[None])[1][0]),
            self.reference.optimal_value,
            theta,
        )

    @cached_property
    def problems(self) -> dict[float, Problem]:
        """Problems on these rows by their regularisation, which keep their optima as long as the rows are kept."""
        return {}

    @property
    def majority_label(self) -> Floats:
        """(1,) the most frequent training label; a tie goes to +1."""
        return np.array([1.0 if self.problem.rows.y.sum() >= 0 else -1.0])

    @cached_property
    def majority(self) -> Baseline:
        """The most frequent training label for everyone."""
        tested, trained = (float((rows.y == self.majority_label).mean()) for rows in (self.test, self.problem.rows))
        return Baseline(tested, trained, float("nan"), None)

    @cached_property
    def held_out(self) -> Setup:
        """The training rows cut in two again: three quarters to train on, and a quarter to choose hyperparameters by."""
        order = np.random.default_rng(0).permutation(self.split.train)
        split = Split(*(np.sort(part) for part in np.split(order, [len(order) - len(order) // 4])))
        weights = self.problem.rows.class_weights
        problem = Problem(rows_in(self.dataset, split.train, weights), self.problem.model, self.problem.lam)
        return Setup(self.dataset, split, problem, rows_in(self.dataset, split.test), problem)

    @cached_property
    def baselines(self) -> pd.DataFrame:
        """Every metric on the test rows: rows "non-private" and "majority", columns as in `Result.metrics`."""
        return self.baselines_in(tuple(METRICS))

    def baselines_in(self, metrics: Sequence[str]) -> pd.DataFrame:
        """`baselines` in these metrics, which may have levels of their own."""
        model, theta = self.reference.model, self.reference.optimum[None]
        tables = [measure_models(model, theta, self.test, labels, metrics) for labels in (None, self.majority_label)]
        return pd.concat(tables).set_axis(["non-private", "majority"])


_BYTES = 1 << 30
# what is derived from the rows counts with them; the last one stays however large it is
_setups: Cache[Setup] = Cache("training problems", _BYTES, lambda made: min(3 * made.dataset.X.nbytes + 1, _BYTES))


def setup_for(spec: RunSpec) -> Setup:
    """The data and the training problem of a spec; the last ones used stay in memory, up to 1 GiB.

    Raises:
        InvalidInput: the run does not fit what is there; see `dpviz.resolve`.
    """
    return setup_of(resolve(spec))


def setup_of(run: ResolvedRun) -> Setup:
    """`setup_for` a run that is resolved already."""
    spec, model, dataset = run.spec, get_model(run.spec.model), dataset_of(run.spec)

    def make(_: Monitor) -> Setup:
        if run.lam != run.base_lam:
            plain = setup_of(replace(run, spec=replace(spec, lam=run.base_lam)))
            return replace(plain, problem=plain.problems.setdefault(run.lam, Problem(plain.problem.rows, model, run.lam)))
        split = split_of(spec, dataset)
        # the rows, and what is derived from them, are shared by all models and regularisations
        for other in _setups.values():
            alike = other.dataset is dataset and other.problem.rows.class_weights == class_weights(spec)
            if alike and np.array_equal(other.split.train, split.train):
                problem = Problem(other.problem.rows, model, run.lam)
                return replace(other, problem=problem, reference=problem)
        problem = Problem(rows_in(dataset, split.train, class_weights(spec)), model, run.lam)
        return Setup(dataset, split, problem, rows_in(dataset, split.test), problem)

    return _setups.compute((run.fit_key(), run.base_lam), make, owner=spec.dataset)


def class_weights(spec: RunSpec) -> tuple[float, float] | None:
    """Weights of the labels -1 and +1 over the larger of them; None where both are 1."""
    largest = max(spec.class_weight, 1.0)
    return None if spec.class_weight == 1 else (1 / largest, spec.class_weight / largest)


def all_rows_of(spec: RunSpec, dataset: Dataset) -> Rows:
    """All rows of a dataset to train on, weighed as the run asks."""
    return rows_in(dataset, slice(None), class_weights(spec))


def rows_in(dataset: Dataset, part: NDArray[np.intp] | slice, weights: tuple[float, float] | None = None) -> Rows:
    """Some rows of a dataset with their persons; `weights` as of `class_weights`."""
    persons = None if dataset.persons is None else dataset.persons[part]
    X, y = dataset.X[part], dataset.y[part]
    return Rows(X, y, dataset.person_rows, None, weights, persons, dataset.preparations, len(dataset.looked_at))


def setting_of(spec: RunSpec) -> Setting:
    """Public facts about a run (rows, features, bounds of the loss), without training anything."""
    return setup_for(spec).problem.setting


def mechanism_of(spec: RunSpec, rows: int = 0) -> Mechanism:
    """A run's mechanism with its automatic hyperparameters; for other `rows` as in the run, with batches of the same share."""
    return protection.settle(spec.build(), setting_of(spec), resolve(spec).budget, rows)


def calibration_of(spec: RunSpec) -> Calibration:
    """A run's noise and guarantee, without training anything."""
    return protection.calibrate(spec.build(), setting_of(spec), resolve(spec).budget)


def usable_epsilons(spec: RunSpec, epsilons: Sequence[float]) -> tuple[list[float], list[tuple[float, InvalidInput]]]:
    """(epsilons to which a run's mechanism can be calibrated, the others and why)."""
    met: list[float] = []
    refused: list[tuple[float, InvalidInput]] = []
    for epsilon in epsilons:
        try:
            calibration_of(replace(spec, epsilon=epsilon))
            met.append(epsilon)
        except InvalidInput as problem:
            refused.append((epsilon, problem.bare()))
    return met, refused
