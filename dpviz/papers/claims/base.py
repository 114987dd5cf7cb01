"""What a claim is, what testing it gives, and the test context (`Lab`) that tests are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t as student

from dpviz.common.progress import Monitor, silent
from dpviz.common.random import spawn
from dpviz.experiments.measure import train
from dpviz.experiments.resolve import resolve
from dpviz.experiments.setup import Setup, setup_for
from dpviz.experiments.spec import RunSpec
from dpviz.mechanisms import Mechanism, Training, get_mechanism
from dpviz.privacy.budget import Budget

Floats = NDArray[np.float64]

LEVEL = 0.99  # of every interval of a difference of means


class Outcome(StrEnum):
    """What a test says about a claim."""

    HOLDS = "holds"
    UNDER = "holds under …"
    FAILS = "fails"
    UNTESTABLE = "not testable here"


@dataclass(frozen=True)
class Picture:
    """How a test's table is drawn: one chart per panel, one line per series.

    Attributes:
        x, y: titles of the axes.
        log_x, log_y: logarithmic axes.
        limit: a horizontal line that the rule looks at, None for none.
        limit_label: what the line is.
    """

    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    limit: float | None = None
    limit_label: str = ""


@dataclass(frozen=True, eq=False)
class Verdict:
    """What one test found. Everything here is computed.

    Attributes:
        outcome: by `rule` from `numbers`.
        rule: the thresholds in words.
        numbers: (what, value) pairs that the rule looked at.
        because: why it came out like this.
        condition: under what the claim holds, where the outcome is UNDER.
        table: columns panel, series, mechanism (id or ""), x, y, low, high.
        picture: how the table is drawn.
        seeds: what was drawn how often, with the seed.
    """

    outcome: Outcome
    rule: str
    numbers: tuple[tuple[str, str], ...]
    because: str
    condition: str = ""
    table: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    picture: Picture = Picture("", "")
    seeds: str = "No randomness."

    @property
    def headline(self) -> str:
        """The outcome, with its condition in place of the dots."""
        return self.outcome.replace("…", self.condition) if self.outcome is Outcome.UNDER else str(self.outcome)


@dataclass(frozen=True, eq=False)
class Measured:
    """Models of one mechanism at E budgets with S noise draws each.

    Attributes:
        accuracy: (E, S) test accuracies in [0, 1]; averaged over the noise in closed form where its law is known.
        gap: (E, S) training objective above its minimum; infinite where training diverged.
        scale: objective of the zero model above the minimum: what there is to be learned.
        non_private, majority: test accuracies of the baselines.
    """

    accuracy: Floats
    gap: Floats
    scale: float
    non_private: float
    majority: float


Swap = Callable[[dict[str, Any]], Mechanism]


@dataclass(frozen=True)
class Lab:
    """What a test is given.

    Attributes:
        full: more data sets, budgets and draws.
        seed: of all randomness.
        monitor: told of progress; raises to cancel.
        swaps: mechanism id -> what stands in for it, and hook name -> function; tests of the tests plant alternatives.
    """

    full: bool = False
    seed: int = 0
    monitor: Monitor = silent
    swaps: Mapping[str, Any] = field(default_factory=dict)

    def choose(self, usual: Any, full: Any) -> Any:
        """One of the two, by `full`."""
        return full if self.full else usual

    def part(self, k: int, of: int) -> Lab:
        """The same lab whose progress is the k-th of `of` equal parts."""
        return replace(self, monitor=lambda done: self.monitor((k + done) / of))

    def build(self, mechanism: str, **knobs: Any) -> Mechanism:
        """A mechanism with these knobs, or what stands in for it."""
        swap: Swap | None = self.swaps.get(mechanism)
        return get_mechanism(mechanism).from_params(knobs) if swap is None else swap(knobs)

    def hook(self, name: str, usual: Callable[..., Any]) -> Callable[..., Any]:
        """A function that a planted alternative may replace."""
        found: Callable[..., Any] = self.swaps.get(name, usual)
        return found

    def setup(self, dataset: str, model: str = "logistic", lam: float = 1e-3) -> tuple[Setup, float]:
        """Data, split and problem, and the default delta."""
        spec = RunSpec(dataset=dataset, model=model, mechanism="majority", lam=lam)
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
        """Trains and measures `seeds` models at each budget, all from the lab's seed; None is the data's default delta."""
        shared, usual = self.setup(dataset, model, lam)
        delta = usual if delta is None else delta
        problem = shared.problem
        calibrations = [mechanism.calibrate(problem.setting, Budget(e, delta)) for e in epsilons]
        training = Training(problem, calibrations, spawn(self.seed, seeds), record=False, monitor=self.monitor)
        trained = train(mechanism, training, keep_diverged=True)  # of a run that diverges, zeros are what one would use instead
        right, expected = trained.accuracy(shared.test), trained.expected_accuracy(shared.test)
        if expected is not None:  # exact over the noise, given each training's own randomness
            right = np.broadcast_to(expected, right.shape).copy()
        zero = float(problem.objective(np.zeros((1, problem.m)))[0]) - problem.optimal_value
        return Measured(right, trained.optimality_gap, zero, shared.non_private.accuracy, shared.majority.accuracy)

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


Test = Callable[[Lab], Verdict]


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
    """

    id: str
    paper: str
    place: str
    meaning: str
    matters: str
    mechanisms: tuple[str, ...]
    test: Test


PAPERS = {
    "kang-pidp": 'Kang, Li, Liu, Wang, "Data Heterogeneity Differential Privacy: From Theory to Algorithm"',
    "kang-dbdp": 'Kang, Liu, Ding, Liu, Tong, Wang, "Differentially Private ERM Based on Data Perturbation"',
    "kang-ip": 'Kang, Liu, Niu, Tong, Zhang, Wang, "Input Perturbation: A New Paradigm between Central and Local '
    'Differential Privacy"',
    "chen-rsgd": 'Chen, Lee, Kifer, "Renyi Differentially Private ERM for Smooth Objectives", AISTATS 2019',
}


def difference(one: Floats, other: Floats) -> tuple[float, float]:
    """Mean of `one` minus mean of `other` and the half width of its interval at `LEVEL` (Welch)."""
    a, b = one.var(ddof=1) / len(one), other.var(ddof=1) / len(other)
    if a + b == 0:
        return float(one.mean() - other.mean()), 0.0
    freedom = (a + b) ** 2 / (a**2 / (len(one) - 1) + b**2 / (len(other) - 1))
    return float(one.mean() - other.mean()), float(student.ppf(0.5 + LEVEL / 2, freedom) * (a + b) ** 0.5)


def by_points(points: Mapping[tuple[str, float], bool]) -> tuple[Outcome, str]:
    """HOLDS where the claim holds at every (place, epsilon), FAILS at none, otherwise UNDER with those at which it holds."""
    good: dict[str, list[float]] = {}
    for (where, epsilon), holds in points.items():
        if holds:
            good.setdefault(where, []).append(epsilon)
    count = sum(map(len, good.values()))
    if count == len(points):
        return Outcome.HOLDS, ""
    words = "; ".join(f"{epsilons(values)} {where}" for where, values in good.items())
    return (Outcome.UNDER, words) if good else (Outcome.FAILS, "")


def lines(panel: str, series: str, mechanism: str, x: Iterable[Any], values: Floats) -> pd.DataFrame:
    """Rows of a table from (E, S) values: mean, and one standard deviation to each side."""
    spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
    mean = values.mean(axis=1)
    return pd.DataFrame(
        {
            "panel": panel,
            "series": series,
            "mechanism": mechanism,
            "x": list(x),
            "y": mean,
            "low": mean - spread,
            "high": mean + spread,
        }
    )


def constant(panel: str, series: str, mechanism: str, x: Iterable[Any], value: float) -> pd.DataFrame:
    """Rows of a table for a baseline that does not change with x."""
    at = list(x)
    return lines(panel, series, mechanism, at, np.full((len(at), 1), value))


def percent(share: float) -> str:
    """0.8213 is "82.1 %"."""
    return f"{100 * share:.1f} %"


def points(share: float) -> str:
    """0.0123 is "+1.2 points"."""
    return f"{100 * share:+.1f} points"


def epsilons(values: Sequence[float]) -> str:
    """ "ε = 0.1, 1"."""
    return "ε = " + ", ".join(f"{v:g}" for v in values)
