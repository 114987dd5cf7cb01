"""Training times of mechanisms, measured in turns A B A B on the same rows."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.common.progress import Monitor, part, silent
from dpviz.common.random import spawn
from dpviz.common.threads import thread_settings
from dpviz.datasets import Dataset, load_dataset
from dpviz.mechanisms import Mechanism, Training, list_mechanisms
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.papers import sets
from dpviz.papers.figures.base import Times, with_rows
from dpviz.privacy.budget import Budget

COLUMNS = ("mechanism", "rows", "turn", "seconds")
#: of the figure of times; five are the fewest that give an interval of a median
TURNS = 5


@dataclass(frozen=True)
class Measured:
    """Times of a figure, as far as they are known.

    Attributes:
        dataset: what was trained on, its catalogue name.
        notes: which set that is, and what differs from the paper's, one sentence each.
        sizes: numbers of rows.
        table: columns `COLUMNS`, without the turn that warms up.
    """

    dataset: str
    notes: tuple[str, ...]
    sizes: tuple[int, ...]
    table: pd.DataFrame


def in_turns(
    problem: Problem,
    racers: Sequence[tuple[str, Mechanism]],
    budget: Budget,
    *,
    turns: int,
    seed: int = 0,
    monitor: Monitor = silent,
) -> Iterator[pd.DataFrame]:
    """After each turn, the processor seconds that every method took to train one model; columns `COLUMNS`.

    Turn 0 warms caches up and does not count.
    """
    ready = [(name, built, built.calibrate(problem.setting, budget)) for name, built in racers]
    for turn in range(turns + 1):
        rows = []
        for r, (name, built, calibration) in enumerate(ready):
            clock = _Clock(part(monitor, (turn + r / len(ready)) / (turns + 1), 1 / len(ready) / (turns + 1)))
            with thread_settings():  # threads of a product wait for each other busily, which is no work
                clock.start()
                built.fit(Training(problem, [calibration], spawn(seed, 1), record=False, monitor=clock))
                rows.append((name, problem.n, turn, clock.stop()))
        yield pd.DataFrame(rows, columns=list(COLUMNS))


class _Clock:
    """A monitor that measures the processor time between its calls: the call itself may wait, while others work."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._seconds = self._since = 0.0

    def start(self) -> None:
        """From now on."""
        self._since = time.process_time()

    def stop(self) -> float:
        """Seconds until now."""
        self._seconds += time.process_time() - self._since
        return self._seconds

    def __call__(self, share: float, /) -> None:
        self.stop()
        self._monitor(share)
        self.start()


def measure(figure: Times) -> Iterator[Measured]:
    """The figure's times on the paper's set where it is on this machine, else on the synthetic census, size by size.

    The first value says what is being read and has no sizes yet.
    """
    name, own, problems = sets.choose((figure.dataset, figure.instead), {})
    reading: str = f"Reading {own or repr(name)}. A large file takes up to a minute."
    table = pd.DataFrame(columns=list(COLUMNS))
    yield Measured(name, (*problems, reading), (), table)
    dataset = load_dataset(name)
    sizes = sizes_of(figure, dataset.n)
    notes = (*problems, *_notes(figure, name, own, dataset.n, dataset.d, sizes))
    racers = [name for name in figure.methods if name in list_mechanisms()]
    yield Measured(name, notes, sizes, table)
    for size in sizes:
        problem = drawn(figure, dataset, size)
        built = [(racer, sets.build(racer, with_rows(figure.knobs[racer], size))) for racer in racers]
        for turn in in_turns(problem, built, Budget(figure.epsilon, figure.delta), turns=TURNS):
            if turn["turn"].iloc[0]:
                table = pd.concat([table, turn], ignore_index=True) if len(table) else turn
                yield Measured(name, notes, sizes, table)


def sizes_of(figure: Times, n: int) -> tuple[int, ...]:
    """The figure's numbers of rows that a table of n rows has; n itself where it has none of them."""
    return tuple(size for size in figure.rows if size <= n) or (n,)


def drawn(figure: Times, dataset: Dataset, size: int) -> Problem:
    """Logistic regression on `size` random rows of a dataset, the same ones every time."""
    chosen = np.sort(np.random.default_rng(size).choice(dataset.n, size, replace=False))
    return Problem(Rows(dataset.X[chosen], dataset.y[chosen]), get_model("logistic"), figure.lam)


def _notes(figure: Times, name: str, own: str, n: int, d: int, sizes: tuple[int, ...]) -> list[str]:
    if own:
        which: str = f"Measured on {own}: {n:,} rows, {d} features."
    elif name == figure.dataset:
        which = f"Measured on the paper's set, {name!r}: {n:,} rows, {d} features."
    else:
        which = f"The paper's set ({figure.dataset!r}) is not on this machine. Measured on {name!r}: {n:,} rows, {d} features."
    if sizes == figure.rows:
        return [which]
    return [which, f"It has too few rows for all sizes of the paper; the largest here is {sizes[-1]:,}."]
