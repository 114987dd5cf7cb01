"""The released models of one run at several budgets, kept in memory: what groups and scores are read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpviz.common.arrays import Floats
from dpviz.common.memory import Cache
from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.run import run_epsilons
from dpviz.experiments.run.setup import usable_epsilons
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import OutputNoise

MAX_BYTES = 128 << 20


@dataclass(frozen=True, eq=False)
class Release:
    """The models of one budget.

    Attributes:
        epsilon: the budget asked for.
        theta: (S, m) released parameters.
        labels: (S,) labels in {-1, +1} where a label was released in the place of a model, else None.
        distribution: of the parameters where it is known in closed form; its scale has one entry.
    """

    epsilon: float
    theta: Floats
    labels: Floats | None
    distribution: OutputNoise | None

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        centre = 0 if self.distribution is None else self.distribution.centre.nbytes
        return self.theta.nbytes + centre + 1024


@dataclass(frozen=True, eq=False)
class Releases:
    """One run at several budgets.

    Attributes:
        spec: the run; its own epsilon does not matter.
        at: one release for each budget that could be met, epsilon rising.
        refused: the other budgets, and why.
    """

    spec: RunSpec
    at: tuple[Release, ...]
    refused: tuple[tuple[float, InvalidInput], ...]


_kept: Cache[Releases] = Cache("models at several budgets", MAX_BYTES, lambda made: sum(r.nbytes for r in made.at) + 1024)


def releases(spec: RunSpec, epsilons: Sequence[float], monitor: Monitor = ignore) -> Releases:
    """Trains a run at several budgets, from memory where it is there.

    Raises:
        InvalidInput: no budget can be met, or training diverges.
    """
    budgets = tuple(sorted(epsilons))
    base = replace(spec, epsilon=budgets[0])
    key = f"{resolve(base).key()}|{budgets}"
    return _kept.compute(key, lambda listen: _train(base, budgets, listen), owner=spec.dataset, monitor=monitor)


def _train(spec: RunSpec, epsilons: Sequence[float], monitor: Monitor) -> Releases:
    met, refused = usable_epsilons(spec, epsilons)
    if not met:
        raise refused[0][1]
    results = run_epsilons(spec, met, instances=False, monitor=monitor)
    return Releases(spec, tuple(Release(r.spec.epsilon, r.theta, r.labels, r.distribution) for r in results), tuple(refused))
