"""The released models of one run at several budgets, kept in memory: what groups and scores are read from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpviz.common.memory import Cache
from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.run import Result, run_epsilons
from dpviz.experiments.run.setup import usable_epsilons
from dpviz.experiments.run.spec import RunSpec

MAX_BYTES = 128 << 20


@dataclass(frozen=True, eq=False)
class Releases:
    """One run at several budgets.

    Attributes:
        spec: the run; its own epsilon does not matter.
        at: one result for each budget that could be met, epsilon rising.
        refused: the other budgets, and why.
    """

    spec: RunSpec
    at: tuple[Result, ...]
    refused: tuple[tuple[float, InvalidInput], ...]


_kept: Cache[Releases] = Cache(
    "models at several budgets", MAX_BYTES, lambda made: sum(4 * result.theta.nbytes + 4096 for result in made.at)
)


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
    return Releases(spec, tuple(Result(**one.without_rows()) for one in results), tuple(refused))
