"""Runs that were computed before. Keys are `ResolvedRun.key()` strings, never arrays; memory is bounded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpviz.common.memory import Cache
from dpviz.common.progress import Monitor, ignore
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.run import Result, run_epsilons
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.cost import Cost, cost_in_metric, split_cost
from dpviz.mechanisms.attack import Attack, strongest_attack

MAX_BYTES = 256 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome(Result):
    """A `dpviz.Result` with what pages show of it; without `instances` and `record`, so that it is small enough to keep.

    Attributes:
        key: of the run (`ResolvedRun.key`).
        cost: what the accuracy is lost to, or another metric (`measured_by`).
        attack: the best possible attack; None where nothing is proved.
    """

    key: str
    cost: Cost
    attack: Attack | None

    def measured_by(self, metric: str) -> Outcome:
        """The same with its cost in a metric."""
        return replace(self, cost=cost_in_metric(self, self.cost, metric))


_store: Cache[Outcome] = Cache("runs", MAX_BYTES, lambda made: 4 * made.theta.nbytes + 4096)


def outcome(spec: RunSpec, monitor: Monitor = ignore) -> Outcome:
    """The outcome of a run, from memory where it is there. Pages ask for it by `tasks.outcome`."""
    run = resolve(spec)
    return _store.compute(run.key(), lambda listen: _compute(run.spec, listen), owner=spec.dataset, monitor=monitor)


def stored_outcome(spec: RunSpec) -> Outcome | None:
    """The outcome if it is in memory."""
    return _store.get(resolve(spec).key())


def _compute(spec: RunSpec, monitor: Monitor) -> Outcome:
    key = resolve(spec).key()
    (result,) = run_epsilons(spec, [spec.epsilon], instances=False, noiseless_runs=True, monitor=monitor)
    attack = strongest_attack(spec.build(), result.setup.problem.setting, result.calibration)
    return Outcome(**result.without_rows(), key=key, cost=split_cost(result), attack=attack)
