"""Runs that were computed before. Keys are `ResolvedRun.key()` strings, never arrays; memory is bounded."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import dpviz
from dpviz.common.arrays import Floats
from dpviz.common.memory import Cache
from dpviz.common.progress import Monitor, ignore
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import Baseline
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.cost import Cost, cost_in_metric, split_cost
from dpviz.mechanisms import Calibration
from dpviz.mechanisms.attack import Attack, strongest_attack

MAX_BYTES = 256 << 20


@dataclass(frozen=True, eq=False)
class Outcome:
    """A `dpviz.Result` without its data and rows, small enough to keep; see there.

    Attributes:
        key: of the run (`ResolvedRun.key`).
        cost: what the accuracy is lost to, or another metric (`measured_by`).
        attack: the best possible attack; None where nothing is proved.
    """

    key: str
    spec: RunSpec
    theta: Floats
    accuracy: Floats
    train_accuracy: Floats
    objective: Floats
    optimality_gap: Floats
    expected_accuracy: float | None
    calibration: Calibration
    non_private: Baseline
    majority: Baseline
    cost: Cost
    attack: Attack | None
    labels: Floats | None = None
    expected_balanced_accuracy: float | None = None

    def measured_by(self, metric: str) -> Outcome:
        """The same with its cost in a metric."""
        cost = cost_in_metric(self.spec, self.cost, self.theta, self.labels, metric)
        return replace(self, cost=replace(cost, expected=self._expected(metric)))

    @property
    def expected(self) -> float | None:
        """The mean of the cost's metric over all noise draws in closed form; None where there is none."""
        return self._expected(self.cost.metric.id)

    def _expected(self, metric: str) -> float | None:
        return {"accuracy": self.expected_accuracy, "balanced-accuracy": self.expected_balanced_accuracy}.get(metric)


_store: Cache[Outcome] = Cache("runs", MAX_BYTES, lambda made: 2 * made.theta.nbytes + 4096)


def outcome(spec: RunSpec, monitor: Monitor = ignore) -> Outcome:
    """The outcome of a run, from memory where it is there. Pages ask for it by `tasks.outcome`."""
    run = resolve(spec)
    return _store.compute(run.key(), lambda listen: _compute(run.spec, listen), owner=spec.dataset, monitor=monitor)


def stored_outcome(spec: RunSpec) -> Outcome | None:
    """The outcome if it is in memory."""
    return _store.get(resolve(spec).key())


def clear() -> None:
    """Forgets everything."""
    _store.clear()


def _compute(spec: RunSpec, monitor: Monitor) -> Outcome:
    key = resolve(spec).key()
    (result,) = dpviz.run_epsilons(spec, [spec.epsilon], instances=False, noiseless_runs=True, monitor=monitor)
    cost = split_cost(
        spec,
        result.accuracy,
        result.calibration,
        expected=result.expected_accuracy,
        noiseless_run=result.noiseless_run,
        models=(result.theta, result.labels),
    )
    attack = strongest_attack(spec.build(), result.setup.problem.setting, result.calibration)
    made: dict[str, Any] = {"key": key, "spec": spec, "cost": cost, "attack": attack}
    return Outcome(**{one.name: getattr(result, one.name) for one in fields(Outcome) if one.name not in made}, **made)
