"""The context of a claim's test: mechanisms, data, trained and measured models, and its thoroughness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, part, silent
from dpviz.common.random import spawn
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import Setup, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Mechanism, Training, get_mechanism
from dpviz.papers import sets
from dpviz.papers.checks import Check
from dpviz.papers.times import TimeCheck
from dpviz.papers.verdict import Verdict
from dpviz.privacy.budget import Budget

Floats = NDArray[np.float64]

#: sets of the papers that claims are tested on where they are present, and what stands for them elsewhere
PAPERS_SETS = ("adult-complete", "bank")
LARGE = "census-45000"


@dataclass(frozen=True, eq=False)
class Measured:
    """Models of one mechanism at E budgets with S noise draws each.

    Attributes:
        accuracy: (E, S) test accuracies in [0, 1]; averaged over the noise in closed form where its distribution is known.
        gap: (E, S) training objective above its minimum; infinite where training diverged.
        optimum: the least training objective.
        dataset, model: what was trained on, and the model's id.
        epsilons: (E,) budgets.
        non_private, majority: test accuracies of the baselines.
    """

    accuracy: Floats
    gap: Floats
    optimum: float
    dataset: str
    model: str
    epsilons: tuple[float, ...]
    non_private: float
    majority: float

    def rows(self, name: str) -> pd.DataFrame:
        """The same as a sweep's table, one row per budget and draw, under `name` in the column "mechanism"."""
        count = self.accuracy.shape[1]
        return pd.DataFrame(
            {
                "dataset": self.dataset,
                "model": self.model,
                "mechanism": name,
                "epsilon": np.repeat(self.epsilons, count),
                "seed": np.tile(np.arange(count), len(self.epsilons)),
                "accuracy": self.accuracy.ravel(),
                "expected_accuracy": np.nan,  # `accuracy` is exact already where the distribution of the noise is known
                "optimality_gap": self.gap.ravel(),
                "objective": self.gap.ravel() + self.optimum,
                "non_private_accuracy": self.non_private,
                "majority_accuracy": self.majority,
            }
        )


Swap = Callable[[dict[str, Any]], Mechanism]


@dataclass(frozen=True)
class Context:
    """The context of a test.

    Attributes:
        full: more data sets, budgets and draws.
        seed: of all randomness.
        monitor: receives progress; raises to cancel.
        swaps: mechanism id -> what stands in for it, and hook name -> function; tests of the tests plant alternatives.
        trained_on: names of the datasets that the test has asked for so far, in order; its parts share it.
    """

    full: bool = False
    seed: int = 0
    monitor: Monitor = silent
    swaps: Mapping[str, Any] = field(default_factory=dict)
    trained_on: list[str] = field(default_factory=list, compare=False)

    def choose(self, usual: Any, full: Any) -> Any:
        """One of the two, by `full`."""
        return full if self.full else usual

    def data(self, usual: tuple[str, ...], full: tuple[str, ...]) -> tuple[str, ...]:
        """Names of datasets, by `full`; there the papers' sets that are on this machine stand in for the large census."""
        if not self.full:
            return usual
        papers = tuple(name for name in PAPERS_SETS if sets.present(name))
        return tuple(name for name in full if not papers or name != LARGE) + papers

    def part(self, k: int, of: int) -> Context:
        """The same context whose progress is the k-th of `of` equal parts."""
        return replace(self, monitor=part(self.monitor, k / of, 1 / of))

    def build(self, mechanism: str, **knobs: Any) -> Mechanism:
        """A mechanism with these knobs, or what stands in for it."""
        swap: Swap | None = self.swaps.get(mechanism)
        return get_mechanism(mechanism).from_params(knobs) if swap is None else swap(knobs)

    def hook(self, name: str, usual: Callable[..., Any]) -> Callable[..., Any]:
        """A function that a planted alternative may replace."""
        function: Callable[..., Any] = self.swaps.get(name, usual)
        return function

    def setup(self, dataset: str, model: str = "logistic", lam: float = 1e-3) -> tuple[Setup, float]:
        """Data, split and problem, and the default delta."""
        if dataset not in self.trained_on:
            self.trained_on.append(dataset)
        spec = RunSpec(dataset=dataset, model=model, mechanism="majority", lam=lam, row_scaling="unit")
        return setup_for(spec), resolve(spec).budget.delta

    def measure(
        self,
        mechanism: Mechanism,
        dataset: str,
        epsilons: Sequence[float],
        seeds: int,
        *,
        model: str = "logistic",
        lam: float = 1e-3,
        delta: float | None = None,
    ) -> Measured:
        """Trains and measures `seeds` models at each budget, all from the context's seed; None is the data's default delta."""
        shared, usual = self.setup(dataset, model, lam)
        delta = usual if delta is None else delta
        problem = shared.problem
        calibrations = [mechanism.calibrate(problem.setting, Budget(e, delta)) for e in epsilons]
        training = Training(problem, calibrations, spawn(self.seed, seeds), record=False, monitor=self.monitor)
        trained = train(mechanism, training, keep_diverged=True)  # of a run that diverges, zeros are what one would use instead
        right, expected = trained.accuracy(shared.test), trained.expected_accuracy(shared.test)
        if expected is not None:  # exact over the noise, given each training's own randomness
            right = np.broadcast_to(expected, right.shape).copy()
        return Measured(
            right,
            trained.optimality_gap,
            problem.optimal_value,
            dataset,
            model,
            tuple(epsilons),
            shared.non_private.accuracy,
            shared.majority.accuracy,
        )

    def best(
        self,
        mechanism: str,
        grid: Sequence[dict[str, Any]],
        dataset: str,
        epsilons: Sequence[float],
        seeds: int,
        *,
        model: str = "logistic",
        lam: float = 1e-3,
        delta: float | None = None,
    ) -> tuple[Measured, list[dict[str, Any]]]:
        """The knobs of `grid` with the best mean test accuracy at each budget, as publications tune, and what was chosen."""
        tried = [
            self.part(k, len(grid)).measure(
                self.build(mechanism, **knobs), dataset, epsilons, seeds, model=model, lam=lam, delta=delta
            )
            for k, knobs in enumerate(grid)
        ]
        means = np.array([t.accuracy.mean(axis=1) for t in tried])
        chosen = means.argmax(axis=0)
        at = np.arange(len(epsilons))
        first = tried[0]
        best = replace(
            first, accuracy=np.array([t.accuracy for t in tried])[chosen, at], gap=np.array([t.gap for t in tried])[chosen, at]
        )
        return best, [grid[k] for k in chosen]


#: trains and measures, and says what came out
Test = Callable[[Context], Verdict]


@dataclass(frozen=True)
class Claim:
    """A claim of a paper as data, with the function that tests it.

    Attributes:
        id: kebab-case.
        paper: key of `PAPERS`.
        place: where it stands.
        meaning: the sentence in our words.
        matters: why one would want to know.
        mechanisms: ids of the mechanisms it speaks about.
        test: the test.
        check: the rule that the test applies, where a figure states the same and shares it; None otherwise.
        privacy: whether it says that its mechanism is private, so that a failure is a refutation by audit.
    """

    id: str
    paper: str
    place: str
    meaning: str
    matters: str
    mechanisms: tuple[str, ...]
    test: Test
    check: Check | TimeCheck | None = None
    privacy: bool = False
