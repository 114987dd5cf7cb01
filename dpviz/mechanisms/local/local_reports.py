"""Shared parts of the local methods: everyone sends one noisy report, and all that follows is post-processing."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.common.progress import Monitor
from dpviz.common.threads import THREADS_FROM, map_streams
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Streams, Training, knob
from dpviz.mechanisms.capabilities import DeclaresEvent, NoisesRows, ProtectsQuery
from dpviz.mechanisms.conditions import BOUNDED_ROWS, PUBLIC_N_IF_SHUFFLED, SINGLE_PRECISION
from dpviz.models import Rows, Setting
from dpviz.models.problem import Problem

SHUFFLED: str = "a trusted shuffler hides which report is whose, and nobody sees the reports before that"
ROOT2 = math.sqrt(2)
_BLOCK = 8192

#: (levels of E budgets, stream, (E, n) lengths of the noise to be overwritten or None, monitor) -> (E, m) models
Train = Callable[[Floats, np.random.SeedSequence, Floats | None, Monitor], Floats]


@dataclass(frozen=True)
class LocalMechanism(ProtectsQuery, DeclaresEvent, NoisesRows):
    """Knobs and training of the local methods; not a mechanism itself."""

    family = "local"
    supposes = (BOUNDED_ROWS, PUBLIC_N_IF_SHUFFLED, SINGLE_PRECISION)

    training: str = knob(
        "surrogate",
        "Training",
        "A quadratic surrogate, corrected for the bias of the noise, or the plain objective.",
        options=("surrogate", "plain"),
    )
    epsilon_is: str = knob(
        "local",
        "ε is",
        "Whether ε bounds what one report tells, or what all reports tell once they are shuffled.",
        options=("local", "central by shuffling"),
    )

    @property
    def central(self) -> bool:
        """True where the budget is that of the shuffled reports."""
        return self.epsilon_is != "local"

    @abstractmethod
    def levels(self, calibrations: Sequence[Calibration]) -> Floats:
        """(E,) what sets the noise of a report at each budget."""

    @abstractmethod
    def reports(
        self, problem: Problem, levels: Floats, stream: np.random.SeedSequence, lengths: Floats | None
    ) -> Iterable[Floats]:
        """Reports of all people at each level, as `reported` has records.

        Args:
            lengths: (E, n), overwritten with the lengths of the noise; None where not wanted.
        """

    @abstractmethod
    def surrogate(self, problem: Problem) -> Train:
        """Training by the surrogate; what all seeds share is computed once."""

    def query_in_words(self, setting: Setting) -> tuple[str, str, float]:
        """(query, where its sensitivity comes from, sensitivity) of one person's report before noise."""
        if not setting.linear:
            # only a linear score makes y x say all about (x, y)
            return "one person's features and label (x, y)", "|x| <= 1 and |y| = 1, so any two are at most 2√2 apart", 2 * ROOT2
        return "one person's signed record y·x", "|y x| <= 1, so any two records are at most 2 apart", 2.0

    def learns(self, setting: Setting) -> tuple[str, ...]:
        """Notes on how a model that is not linear learns from reports."""
        if setting.linear:
            return ()
        return (
            "The network is trained on the reported features with the sign of the reported label, as they are; the surrogate "
            "is for linear models.",
        )

    def by_surrogate(self, problem: Problem) -> bool:
        """True where the surrogate learns from the reports; it is for linear models."""
        return self.training == "surrogate" and problem.setting.linear

    def fit(self, training: Training) -> Fit:
        problem, streams, levels = training.problem, training.streams, self.levels(training.calibrations)
        lengths = np.zeros((len(levels), len(streams), problem.n)) if training.record else None
        train = self.surrogate(problem) if self.by_surrogate(problem) else self._plain(problem)
        _ = problem.rows.signed32, problem.rows.norms  # made before the workers start

        def work(k: int, tick: Monitor) -> Floats:
            return train(levels, streams[k], None if lengths is None else lengths[:, k], tick)

        theta = np.stack(
            map_streams(work, len(streams), training.monitor, parallel=problem.n * problem.m >= THREADS_FROM), axis=1
        )
        if lengths is None:
            return Fit(theta, NoiseRecord(self.noise_enters))
        visits, noised = np.ones((1, 1, problem.n)), (lengths[:, :1, :1] > 0).astype(float)
        return Fit(theta, NoiseRecord(self.noise_enters, visits=visits, times_noised=noised, noise_norm=lengths))

    def _plain(self, problem: Problem) -> Train:
        """Training by the model's own objective on the reports."""

        def train(levels: Floats, stream: np.random.SeedSequence, lengths: Floats | None, report: Monitor) -> Floats:
            theta = np.empty((len(levels), problem.m))
            for e, reports in enumerate(self.reports(problem, levels, stream, lengths)):
                report(e / len(levels))
                theta[e] = self.learn(problem, reports, stream)
            return theta

        return train

    def noisy_rows(self, problem: Problem, calibration: Calibration, stream: np.random.SeedSequence) -> Floats:
        """(n, d) reports as rows: signed records signed back, or reported features."""
        (reports,) = self.reports(problem, self.levels([calibration]), stream, None)
        return problem.rows.y[:, None] * reports if problem.setting.linear else reports[:, :-1]

    def reported(self, problem: Problem) -> Floats:
        """(n, d) signed records y x, or (n, d + 1) features and label where the score is not linear; before noise."""
        if problem.setting.linear:
            return problem.rows.signed
        return np.column_stack([problem.rows.X, problem.rows.y])

    def learn(self, problem: Problem, reports: Floats, stream: np.random.SeedSequence) -> Floats:
        """(m,) the model's own minimiser on noisy reports, as if they were records; signed ones have the label +1."""
        if problem.setting.linear:
            return problem.model.minimise(Rows(reports, np.ones(problem.n)), problem.lam)
        start = problem.model.initial(problem.m, [stream])[0]
        rows = Rows(reports[:, :-1], np.where(reports[:, -1] >= 0, 1.0, -1.0))
        return problem.model.minimise(rows, problem.lam, start)

    def rows_in_words(self, setting: Setting) -> str:
        if not setting.linear:
            return "Released is one report of features and label; shown are the features. The label of a report is as noisy."
        return (
            "Released is one report of the signed record y·x, label included. Shown is that report with this row's own label "
            "multiplied in again, which only who knows the label can do; without it nobody sees which side a row is on."
        )

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        records = self.reported(problem)
        return np.broadcast_to(records.ravel(), (len(theta), records.size))


def row_blocks(n: int) -> Iterator[slice]:
    """Rows in pieces that stay in the cache."""
    for start in range(0, n, _BLOCK):
        yield slice(start, min(start + _BLOCK, n))
