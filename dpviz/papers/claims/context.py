"""The context of a claim's test: mechanisms, data, trained and measured models, and its thoroughness."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore, part
from dpviz.common.random import spawn
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import Setup, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Mechanism, Training, protection
from dpviz.models import get_model
from dpviz.papers import sets
from dpviz.papers.checks import Check
from dpviz.papers.verdict import Verdict
from dpviz.privacy.budget import Budget

#: sets of the papers that claims are tested on where they are present, and what stands for them elsewhere
PAPERS_SETS = ("adult-complete", "bank")
LARGE = "census-45000"
TRIALS = 8  # noise draws per setting and split where hyperparameters are chosen, at most
_TRIAL_SEED = 1 << 32  # above every seed that one can ask for: the noise of trials is not that of the final models
_NAMED = 1 << 33  # above these, noise by its name


@dataclass(frozen=True, eq=False)
class Measured:
    """Models of one mechanism at E budgets with S noise draws each.

    Attributes:
        accuracy: (E, S) test accuracies in [0, 1]; averaged over the noise in closed form where its distribution is known.
        gap: (E, S) training objective above its minimum; infinite where training diverged.
        baselines: (S,) a draw's split, the least training objective there, and test accuracies of the baselines; columns split,
            optimum, non_private_accuracy, majority_accuracy.
        dataset, model: what was trained on, and the model's id.
        epsilons: (E,) budgets.
    """

    accuracy: Floats
    gap: Floats
    baselines: pd.DataFrame
    dataset: str
    model: str
    epsilons: tuple[float, ...]

    def rows(self, name: str) -> pd.DataFrame:
        """The same as a sweep's table, one row per budget and draw, under `name` in the column "mechanism"."""
        return pd.concat(
            [
                self.baselines.assign(
                    dataset=self.dataset,
                    model=self.model,
                    mechanism=name,
                    epsilon=epsilon,
                    seed=range(len(self.baselines)),
                    accuracy=accuracy,
                    expected_accuracy=np.nan,  # `accuracy` is exact already where the distribution of the noise is known
                    optimality_gap=gap,
                    objective=gap + self.baselines["optimum"],
                )
                for epsilon, accuracy, gap in zip(self.epsilons, self.accuracy, self.gap, strict=True)
            ],
            ignore_index=True,
        )


@dataclass(frozen=True)
class Context:
    """The context of a test.

    Attributes:
        full: more data sets, budgets and draws.
        seed: of all randomness.
        monitor: receives progress; raises to cancel.
        swaps: mechanism id -> what stands in for it, and hook name -> function; tests of the tests plant alternatives.
        trained_on: names of the datasets that the test has asked for so far, in order; its parts share it.
        drawn: noise draws per point and split of those whose best models were asked for; likewise.
    """

    full: bool = False
    seed: int = 0
    monitor: Monitor = ignore
    swaps: Mapping[str, Any] = field(default_factory=dict)
    trained_on: list[str] = field(default_factory=list, compare=False)
    drawn: dict[str, int] = field(default_factory=dict, compare=False)

    @property
    def seeds(self) -> str:
        """The numbers of draws, in words."""
        each = f"noise draws per point on each of {sets.SPLITS} splits of"
        return (
            f"{'; '.join(f'{draws:,} {each} {name}' for name, draws in self.drawn.items())}; seed {self.seed}, each method's own."
        )

    def choose(self, usual: Any, full: Any) -> Any:
        """One of the two, by `full`.

        >>> Context(full=True).choose(3, 10), Context().choose(3, 10)
        (10, 3)
        """
        return full if self.full else usual

    def data(self, usual: tuple[str, ...], full: tuple[str, ...]) -> tuple[str, ...]:
        """Names of datasets, by `full`; there the papers' sets that are on this machine stand in for the large census."""
        if not self.full:
            return usual
        papers = tuple(here for name in PAPERS_SETS if (here := sets.choose((name, LARGE), {})[0]) != LARGE)
        return tuple(name for name in full if not papers or name != LARGE) + papers

    def part(self, k: int, of: int) -> Context:
        """The same context whose progress is the k-th of `of` equal parts."""
        return replace(self, monitor=part(self.monitor, k / of, 1 / of))

    def parts(self, items: Sequence[Any]) -> list[tuple[Context, Any]]:
        """The same context for each of some items, whose progress is the item's part."""
        return [(self.part(k, len(items)), item) for k, item in enumerate(items)]

    def build(self, mechanism: str, **knobs: Any) -> Mechanism:
        """A mechanism with these knobs, or what stands in for it."""
        swap: Callable[[dict[str, Any]], Mechanism] | None = self.swaps.get(mechanism)
        return sets.build(mechanism, knobs) if swap is None else swap(knobs)

    def hook(self, name: str, usual: Callable[..., Any]) -> Callable[..., Any]:
        """A function that a planted alternative may replace."""
        return self.swaps.get(name, usual)

    def setup(self, dataset: str, model: str = "logistic", lam: float = 1e-3, split: int = 0) -> tuple[Setup, float]:
        """Data, split and problem, and the default delta."""
        spec = self.spec(dataset, model, lam, split)
        return setup_for(spec), resolve(spec).budget.delta

    def spec(self, dataset: str, model: str = "logistic", lam: float = 1e-3, split: int = 0) -> RunSpec:
        """A run on rows of unit length, but for its method; splits are the seed's own."""
        if dataset not in self.trained_on:
            self.trained_on.append(dataset)
        own = (sets.SPLITS * self.seed + split) % 2**32
        return RunSpec(dataset=dataset, model=model, mechanism="majority", lam=lam, row_scaling="unit", split_seed=own)

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
        split: int = 0,
        stream: str = "",
        held_out: bool = False,
    ) -> Measured:
        """Trains and measures `seeds` models at each budget, all from the context's seed.

        Args:
            delta: None for the data's default.
            split: seed of the 80/20 split.
            stream: name of the noise; another name has independent noise.
            held_out: train on three quarters of the training rows and measure on the others, with noise of their own.
        """
        shared, usual = self.setup(dataset, model, lam, split)
        delta = usual if delta is None else delta
        shared = shared.held_out if held_out else shared
        problem = shared.problem
        calibrations = [protection.calibrate(mechanism, problem.setting, Budget(e, delta)) for e in epsilons]
        noise = zlib.crc32(f"{stream}, split {split}".encode()) if stream else 0
        streams = spawn(self.seed + noise * _NAMED + (_TRIAL_SEED if held_out else 0), seeds)
        training = Training(problem, calibrations, streams, record=False, monitor=self.monitor)
        trained = train(mechanism, training, keep_diverged=True)  # of a run that diverges, zeros are what one would use instead
        right, expected = trained.accuracy(shared.test), trained.expected_accuracy(shared.test)
        if expected is not None:  # exact over the noise, given each training's own randomness
            right = np.broadcast_to(expected, right.shape).copy()
        baselines = {
            "split": split,
            "optimum": problem.optimal_value,
            "non_private_accuracy": shared.non_private.accuracy,
            "majority_accuracy": shared.majority.accuracy,
        }
        table = pd.DataFrame(baselines, index=range(seeds))
        return Measured(right, trained.optimality_gap, table, dataset, model, tuple(epsilons))

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
        by: str = "accuracy",
    ) -> tuple[Measured, list[dict[str, Any]]]:
        """Models with the knobs of `grid` that do best at each budget on held-out training rows, and what was chosen.

        Every method of a comparison is tuned here: on a quarter of the training rows, after training on the others. Test rows
        score what was chosen, trained on all training rows. Noise is each method's and split's own.

        Args:
            seeds: noise draws over all splits; convex models have `SMALL_SEEDS` on each split of a small set, networks as many.
            by: "accuracy", or "gap" for the least optimality gap.

        Returns:
            The models of all splits, and the knobs that were chosen at each budget on the first one.
        """
        least = sets.SMALL_SEEDS if get_model(model).convex else 1
        seeds = max(seeds, least) if sets.is_small(dataset) else math.ceil(seeds / sets.SPLITS)
        self.drawn[dataset] = seeds
        where: dict[str, Any] = {"model": model, "lam": lam, "delta": delta, "stream": mechanism}
        found = [
            here._best(mechanism, grid, dataset, epsilons, seeds, by, **where, split=k)
            for here, k in self.parts(range(sets.SPLITS))
        ]
        accuracy, gap = (np.concatenate([getattr(one, name) for one, _ in found], axis=1) for name in ("accuracy", "gap"))
        baselines = pd.concat([one.baselines for one, _ in found], ignore_index=True)
        return Measured(accuracy, gap, baselines, dataset, model, tuple(epsilons)), found[0][1]

    def _best(
        self,
        mechanism: str,
        grid: Sequence[dict[str, Any]],
        dataset: str,
        epsilons: Sequence[float],
        seeds: int,
        by: str,
        **where: Any,
    ) -> tuple[Measured, list[dict[str, Any]]]:
        """`best` on one split."""
        score = np.zeros((len(grid), len(epsilons)))
        for k, knobs in enumerate(grid if len(grid) > 1 else ()):
            trial = self.part(k, len(grid) + 1).measure(
                self.build(mechanism, **knobs), dataset, epsilons, min(TRIALS, seeds), **where, held_out=True
            )
            score[k] = -trial.gap.mean(axis=1) if by == "gap" else trial.accuracy.mean(axis=1)
        chosen = score.argmax(axis=0)
        accuracy, gap = np.empty((2, len(epsilons), seeds))
        for k in sorted(set(chosen.tolist())):
            at = np.flatnonzero(chosen == k)
            final = self.part(len(grid), len(grid) + 1).measure(
                self.build(mechanism, **grid[k]), dataset, np.array(epsilons)[at].tolist(), seeds, **where
            )
            accuracy[at], gap[at] = final.accuracy, final.gap
        return replace(final, accuracy=accuracy, gap=gap, epsilons=tuple(epsilons)), [grid[k] for k in chosen]


#: trains and measures, and says what came out
Test = Callable[[Context], Verdict]


@dataclass(frozen=True)
class ByCheck:
    """A test that trains models and applies a rule to them, which a figure of the paper may share."""

    check: Check
    run: Test

    def __call__(self, context: Context) -> Verdict:
        return self.run(context)


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
        privacy: whether it says that its mechanism is private, so that a failure is a refutation by audit.
    """

    id: str
    paper: str
    place: str
    meaning: str
    matters: str
    mechanisms: tuple[str, ...]
    test: Test
    privacy: bool = False

    @property
    def check(self) -> Check | None:
        """The rule that the test applies, where a figure states the same and shares it."""
        return self.test.check if isinstance(self.test, ByCheck) else None
