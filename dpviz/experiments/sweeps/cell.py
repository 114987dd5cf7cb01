"""A cell, the unit of long work: one run at several epsilons for some of its seeds."""

import hashlib
import json
import threading
import time
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import pandas as pd

from dpviz.common.progress import Monitor, ignore, track
from dpviz.common.validate import InvalidInput
from dpviz.datasets.catalogue import is_in_memory
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.run import run_epsilons, tabulate
from dpviz.experiments.run.setup import Setup, setup_for, usable_epsilons
from dpviz.experiments.run.spec import RunSpec

_guard = threading.Lock()
_turns: WeakKeyDictionary[Setup, threading.Lock] = WeakKeyDictionary()


def _prepare(setup: Setup) -> None:
    """Makes what all cells of a setup share; of those computed side by side the first does, and the others wait."""
    with _guard:
        turn = _turns.setdefault(setup, threading.Lock())
    with turn:
        _ = setup.non_private


@dataclass(frozen=True)
class Cell:
    """One unit of work: a run at several epsilons, for some of its replicas.

    Attributes:
        metrics: ids of further metrics in its table, those with levels of their own.
    """

    spec: RunSpec
    epsilons: tuple[float, ...]
    replicas: range
    metrics: tuple[str, ...] = ()

    def key(self) -> str:
        """SHA-256 of all that decides the numbers; the name of the cell's file."""
        values = json.loads(resolve(self.spec).key())
        del values["epsilon"], values["seeds"]
        if is_in_memory(self.spec.dataset):
            del values["dataset"]  # a random name, another one in every process; the rows' hash says which they are
        values |= {"epsilons": self.epsilons, "replicas": [self.replicas.start, self.replicas.stop]}
        values["mechanism"] = self.spec.mechanism  # an automatic one may be another at other budgets
        if self.metrics:
            values["metrics"] = self.metrics
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()

    def compute(self, monitor: Monitor = ignore) -> pd.DataFrame:
        """The cell's tidy table.

        Raises:
            InvalidInput: the mechanism refuses one of the budgets, or diverges.
        """
        results = run_epsilons(self.spec, self.epsilons, instances=False, replicas=self.replicas, monitor=monitor)
        return tabulate(results, self.metrics).assign(mechanism=self.spec.mechanism)

    def attempt(self, monitor: Monitor = ignore) -> pd.DataFrame:
        """The cell's tidy table without the budgets that cannot be computed, which `problems` gives with the reason.

        How much processor time its own thread took is in `attrs["seconds"]`: that does not depend on what else is at work.
        """
        _prepare(setup_for(self.spec))  # shared by all cells, so it counts for none
        start = time.thread_time()
        refused: list[tuple[float, InvalidInput]] = []
        try:
            table = self.compute(monitor)
        except InvalidInput as problem:
            if len(self.epsilons) == 1:  # not tried twice
                table, refused = pd.DataFrame(), [(self.epsilons[0], problem)]
            else:
                table = self._one_by_one(refused, monitor)
        table.attrs = {
            "seconds": time.thread_time() - start,
            "problems": [[epsilon, p.field, p.cause, p.fix] for epsilon, p in refused],
        }
        return table

    def _one_by_one(self, refused: list[tuple[float, InvalidInput]], monitor: Monitor) -> pd.DataFrame:
        met, others = usable_epsilons(self.spec, self.epsilons)
        refused += others
        # where every budget can be met, training itself failed, perhaps for some budgets only
        groups = [(e,) for e in met] if not others else [tuple(met)] if met else []
        parts = []
        for group, inside in track(monitor, groups):
            try:
                parts.append(replace(self, epsilons=group).compute(inside))
            except InvalidInput as problem:
                refused.extend((epsilon, problem) for epsilon in group)
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def problems(table: pd.DataFrame) -> list[tuple[float, InvalidInput]]:
    """Budgets that `Cell.attempt` could not compute: (epsilon, why)."""
    return [(epsilon, InvalidInput(field, cause, fix)) for epsilon, field, cause, fix in table.attrs.get("problems", [])]
