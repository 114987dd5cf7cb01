"""Many runs as one job: mechanisms x epsilons x seeds on one dataset and model, as a value that a file can hold."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import tomli_w

from dpviz.common import toml
from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import InvalidInput, check_instance, show
from dpviz.experiments.run.metrics import levels_of
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSettings, RunSpec, shared_fields
from dpviz.experiments.sweeps.cells import SEED_BLOCK, Cell, CellStore, run_cells
from dpviz.experiments.sweeps.curves import sort_by_mechanism
from dpviz.mechanisms import NoisesRows

if TYPE_CHECKING:
    from dpviz.datasets import Dataset
    from dpviz.experiments.run.spec import DatasetName

DEFAULT_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)

__all__ = ["Cell", "CellStore", "SweepSpec", "run_cells", "run_sweep", "sort_rows", "sweep"]


@dataclass(frozen=True)
class SweepSpec(RunSettings):
    """A whole figure as a value: mechanisms x epsilons x seeds on one dataset and model. Plain, as `RunSpec` is.

    Attributes:
        mechanisms: ids, or a mapping from id to knobs; an automatic one is named anew at each epsilon.
        epsilons: budgets, each > 0, no duplicates; kept in ascending order.
        metrics: metrics with levels of their own, such as "recall-at-precision=0.6", which get columns beside all others.
        (others as in `RunSpec`)

    Raises:
        InvalidInput: at construction, for the first bad value in any cell.

    >>> SweepSpec("iris", mechanisms=["dp-gd"], epsilons=[1, 0.1], seeds=20).epsilons
    (0.1, 1.0)
    >>> [cell.replicas for cell in SweepSpec("iris", mechanisms=["dp-gd"], seeds=20).cells()]
    [range(0, 10), range(10, 20)]
    """

    if TYPE_CHECKING:
        dataset: DatasetName = DatasetName()
    else:
        dataset: str = "breast-cancer"
    mechanisms: Mapping[str, Mapping[str, Any]] | Iterable[str] = ("output-gaussian", "dp-gd")
    epsilons: Sequence[float] = DEFAULT_EPSILONS
    metrics: Sequence[str] = ()

    def __post_init__(self) -> None:
        named = _named(self.mechanisms)
        if not named:
            raise InvalidInput("mechanisms", "none was given", "Choose at least one mechanism.")
        listed = isinstance(self.epsilons, Iterable) and not isinstance(self.epsilons, str | Mapping)
        if not listed or len(tuple(self.epsilons)) == 0:
            raise InvalidInput("epsilons", f"must be a list of budgets, got {show(self.epsilons)}", "Give at least one above 0.")
        # every epsilon is validated with the first mechanism, every mechanism with the first epsilon
        values = [self._run(next(iter(named)), {}, e).epsilon for e in self.epsilons]
        if len(set(values)) < len(values):
            raise InvalidInput("epsilons", "a budget is given twice", "Give each budget once.")
        specs = {name: self._run(name, params, values[0]) for name, params in named.items()}
        object.__setattr__(self, "dataset", next(iter(specs.values())).dataset)
        object.__setattr__(self, "mechanisms", {name: dict(spec.params) for name, spec in specs.items()})
        object.__setattr__(self, "epsilons", tuple(sorted(values)))
        if not isinstance(self.metrics, list | tuple):
            fix = 'For example: ["recall-at-precision=0.6"].'
            raise InvalidInput("metrics", f"must be a list of metrics, got {show(self.metrics)}", fix)
        object.__setattr__(self, "metrics", levels_of(self.metrics))

    @classmethod
    def from_run(
        cls, spec: RunSpec, mechanisms: Mapping[str, Mapping[str, Any]], epsilons: Sequence[float], metrics: Sequence[str] = ()
    ) -> SweepSpec:
        """A run's data, model, split and seeds with other mechanisms and budgets."""
        return cls(**shared_fields(spec), mechanisms=mechanisms, epsilons=epsilons, metrics=metrics)

    def _run(self, mechanism: str, params: Mapping[str, Any], epsilon: float) -> RunSpec:
        return RunSpec(**shared_fields(self), mechanism=mechanism, epsilon=epsilon, params=params)

    @property
    def named(self) -> dict[str, dict[str, Any]]:
        """Mechanism ids with their knobs."""
        assert isinstance(self.mechanisms, Mapping)
        return {name: dict(params) for name, params in self.mechanisms.items()}

    def run(self, mechanism: str, epsilon: float) -> RunSpec:
        """One of the sweep's runs, at any epsilon."""
        return self._run(mechanism, self.named[mechanism], epsilon)

    def key(self) -> str:
        """Canonical text of all that decides the sweep's numbers and their order."""
        return "\n".join([*self.named, *(resolve(run).key() for run in self.runs()), json.dumps(self.epsilons), *self.metrics])

    def runs(self) -> list[RunSpec]:
        """One run per mechanism, at the smallest epsilon."""
        return [self._run(name, params, self.epsilons[0]) for name, params in self.named.items()]

    def cells(self) -> list[Cell]:
        """All cells: the first ten seeds of every mechanism, then the next ten.

        Methods with noise of their own for every row and seed take longest, and come first: at the end all processors but one
        would wait for them.
        """
        runs = sorted(self.runs(), key=lambda run: not isinstance(run.build(), NoisesRows))
        blocks = [range(first, min(first + SEED_BLOCK, self.seeds)) for first in range(0, self.seeds, SEED_BLOCK)]
        together = [(e,) for e in self.epsilons] if self.prepared else [tuple(self.epsilons)]  # rows differ with epsilon
        return [
            Cell(replace(run, epsilon=some[0]), some, block, tuple(self.metrics))
            for block in blocks
            for run in runs
            for some in together
        ]

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> SweepSpec:
        """A spec from a TOML file with the fields as keys; knobs go into [mechanisms."id"] tables.

        Raises:
            InvalidInput: the file cannot be read, is not TOML, or has an unknown key or a bad value.
        """
        values = toml.read(path, "spec file")
        names = {f.name for f in fields(cls)}
        for name in values:
            if name not in names:
                raise InvalidInput("spec file", f"has an unknown key {show(name)}", f"Use: {', '.join(sorted(names))}.")
        return cls(**values)

    def to_toml(self) -> str:
        """The spec as a TOML document that `from_toml` reads back."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        set_values = {name: value for name, value in values.items() if value is not None and value != ()}
        return tomli_w.dumps(set_values | {"mechanisms": self.named})


def _named(chosen: object) -> dict[str, Any]:
    """Mechanism ids with their knobs, from whatever was given for them."""
    if isinstance(chosen, str):
        return {chosen: {}}
    if isinstance(chosen, Mapping):
        return dict(chosen)
    chosen_list = list(chosen) if isinstance(chosen, Iterable) else [chosen]
    ids = [name for name in chosen_list if isinstance(name, str)]
    if len(ids) < len(chosen_list):
        raise InvalidInput("mechanisms", f"must be a list of ids, got {show(chosen)}", 'For example: ["dp-gd", "cms-output"].')
    return {name: {} for name in ids}


def run_sweep(spec: SweepSpec, *, store: CellStore | None = None, n_jobs: int = 1, monitor: Monitor = ignore) -> pd.DataFrame:
    """All cells of a sweep as one tidy table, rows ordered by mechanism, epsilon and seed.

    Returns:
        Columns: dataset, model, mechanism, epsilon, delta, lam, seed (0 .. seeds-1), accuracy, train_accuracy,
        objective, optimality_gap, expected_accuracy (NaN without closed form), sensitivity, noise_scale,
        claimed_epsilon, proved_epsilon (NaN where there is none), status, neighbouring, non_private_accuracy,
        majority_accuracy, expected_balanced_accuracy, and every other metric of `dpviz.experiments.run.metrics` on the test
        rows, also with the prefixes non_private_ and majority_; NaN where a metric has no value.

    Raises:
        InvalidInput: a run does not fit what is there (see `dpviz.resolve`), before anything is computed; or a cell cannot
            be computed.
    """
    for run in check_instance("spec", spec, SweepSpec).runs():
        resolve(run)
    parts = list(run_cells(spec.cells(), store=store, n_jobs=n_jobs, monitor=monitor))
    monitor(1.0)
    return sort_rows(pd.concat(parts), spec)


def sort_rows(table: pd.DataFrame, spec: SweepSpec) -> pd.DataFrame:
    """Rows by mechanism (as in the spec), epsilon and seed; closed forms averaged over the seeds."""
    table = sort_by_mechanism(table, spec.mechanisms, "epsilon", "seed")
    exact = ["expected_accuracy", "expected_balanced_accuracy"]
    table[exact] = table.groupby(["mechanism", "epsilon"])[exact].transform("mean")
    return table


def sweep(
    dataset: str | Dataset = "breast-cancer",
    model: str = "logistic",
    mechanisms: Mapping[str, Mapping[str, Any]] | Iterable[str] = ("output-gaussian", "dp-gd"),
    epsilons: Sequence[float] = DEFAULT_EPSILONS,
    seeds: int = 10,
    *,
    store: CellStore | None = None,
    n_jobs: int = 1,
    monitor: Monitor = ignore,
    **fixed: Any,
) -> pd.DataFrame:
    """Trains every mechanism at every budget with every noise draw, and measures each model.

    Args:
        dataset, model, seeds: as in `RunSpec`.
        mechanisms: ids, or a mapping from id to hyperparameters.
        epsilons: budgets, each 1e-9 to 1e6.
        store: where finished parts are kept and looked for (`dpviz.CellStore`).
        n_jobs: parts computed at once; -1 for one per processor.
        monitor: receives progress, a share in [0, 1]; raises to cancel.
        fixed: the other fields of `RunSpec`, such as delta or lam.

    Returns:
        One row for each mechanism, epsilon and noise draw: accuracy and all other metrics on the test rows, noise_scale,
        proved_epsilon and more; `run_sweep` lists all columns.

    Raises:
        InvalidInput: a bad value, or a run that does not fit the data, before anything is trained.

    >>> len(sweep("teaching", mechanisms=["output-gaussian", "majority"], epsilons=[1.0, 10.0], seeds=3))
    12
    """
    spec = SweepSpec(dataset=dataset, model=model, mechanisms=mechanisms, epsilons=epsilons, seeds=seeds, **fixed)
    return run_sweep(spec, store=store, n_jobs=n_jobs, monitor=monitor)
