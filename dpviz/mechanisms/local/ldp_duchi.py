"""Pure local privacy: the l2 randomiser of Duchi, Jordan and Wainwright."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln

from dpviz.common.progress import Monitor
from dpviz.common.random import Normals, generator, single_normals, substreams
from dpviz.common.threads import THREADS_FROM, map_streams
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Training
from dpviz.mechanisms.calibration import TrainingValues
from dpviz.mechanisms.local.local_reports import ROOT2, SHUFFLED, LocalMechanism, row_blocks
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, PureEpsilon, Shuffled
from dpviz.privacy.accounting.shuffle import central_epsilon, largest_local_epsilon, local_epsilon_for
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import HALF_SPHERE


def report_norm(epsilon: float, d: int) -> float:
    """B, the norm of a report: coth(eps/2) sqrt(pi) Gamma((d+1)/2)/Gamma(d/2) (Duchi, Jordan, Wainwright 2018).

    The factor makes E[z] = v; epsilon may be infinite.
    """
    return math.sqrt(math.pi) * math.exp(gammaln((d + 1) / 2) - gammaln(d / 2)) / math.tanh(epsilon / 2)


@dataclass(frozen=True)
class LocalEpsilon(TrainingValues):
    """The parameter of a report's coins.

    Attributes:
        local_epsilon: epsilon of one report.
    """

    local_epsilon: float


def _epsilon(calibration: Calibration) -> float:
    """Epsilon of one report; noise switched off is the limit of large epsilon."""
    return calibration.values(LocalEpsilon).local_epsilon if calibration.noise_scale > 0 else math.inf


@dataclass(frozen=True)
class LDPDuchi(LocalMechanism):
    """Reports a vector of fixed norm B from the half sphere around ±v or, with probability 1/(1 + e^eps), the other.

    v is the signed record y x (or a gradient), |v| <= 1; it is first rounded to ±v/|v| with mean v. E[z] = v, but
    z z' has the same mean whatever v is, because a half sphere and its opposite look alike to even functions. So
    the reports tell the mean record and no covariance: the surrogate keeps its largest curvature beta in every
    direction, and its minimiser is one gradient step of size 1/L from 0.

    With m = p a - q b, the mean record of classes of shares p > q with mean rows a and b, the sign of <m, x> is that of the
    larger class for all x with <b, x>/<a, x> < p/q, <a, x> > 0, whatever epsilon and n are.
    """

    id = "ldp-duchi"
    label = "Local reports, pure ε (Duchi)"
    citation = (
        "Duchi, Jordan, Wainwright, FOCS 2013 and JASA 113 (2018), the l2 randomiser; "
        "shuffling: Feldman, McMillan, Talwar, FOCS 2021, Theorem 3.1"
    )
    noise_enters = "Every row: each person reports a random vector of fixed norm, more often near their own row."
    guarantee = (
        "ε-LDP of every report, proved; all training is post-processing. "
        "Shuffling can give a smaller central ε, not for every ε and n."
    )
    rate = r"O\!\left(\frac{G\,p}{\varepsilon\sqrt n}\right)"
    pure = True

    def limit(self, setting: Setting) -> str:
        if not setting.linear or self.release != "record" or self.training != "surrogate":
            return ""
        return (
            "Reports of signed records tell their mean, and nothing of how features vary together. With a share p of the rows, "
            "the larger class wins at any ε, unless the other class is more than p/(1 − p) times as similar to a row (mean of "
            "⟨x, x′⟩). Local Gaussian reports do tell how features vary together."
        )

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        self.check(setting)
        query, source, sensitivity = self.query_in_words(setting)
        local = local_epsilon_for(budget, setting.n) if self.central else budget.epsilon
        # a report is of a vector in the unit ball: features and label divided by √2 where both are reported
        size, stretch = (setting.d, 1.0) if setting.linear else (setting.d + 1, ROOT2)
        norm = stretch * report_norm(local, size)
        # E|mean z - mean v|^2 = (B^2 - mean |v|^2)/n, as |z| = B and E z = v; at epsilon = infinity B is about sqrt(pi d/2)
        least = stretch * math.sqrt(max(report_norm(math.inf, size) ** 2 - 1, 0.0) / setting.n)
        guarantee = budget if self.central else Budget(budget.epsilon)
        notes: list[str] = [
            f"Switching the noise off means ε = ∞: a report then always lies in the half sphere around ±v, and is still "
            f"{stretch * report_norm(math.inf, size):.3g} long.",
            f"The mean of all reports is off by about {norm / math.sqrt(setting.n):.3g} (root mean square), and by "
            f"{least:.3g} at least, however large ε is; what distinguishes the classes by less is lost, and the model then "
            f"predicts the majority. {self.limit(setting)}".strip(),
            "The table of rows is the data owner's view; a person's report is released without their row id.",
            *self.learns(setting),
        ]
        details = {"B": norm, "expected_noise_norm": norm}
        if budget.delta > 0:
            shuffled = central_epsilon(local, setting.n, budget.delta)
            details |= {
                "central_epsilon": shuffled,
                "central_delta": budget.delta,
                "amplified": float(shuffled < local),
                "largest_amplified_local_epsilon": largest_local_epsilon(setting.n, budget.delta),
            }
            notes.insert(
                0,
                f"One report is ε = {local:.3g} LDP. All {setting.n} reports, shuffled, are "
                f"{Budget(shuffled, budget.delta)}-DP"
                + ("." if shuffled < local else "; at this size shuffling proves nothing better than one report."),
            )
        calibration = Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query=query,
            sensitivity_source=source,
            noise_scale=norm / math.sqrt(size),  # root mean square of a coordinate of a report
            noise_family=HALF_SPHERE,
            proves=guarantee,
            claims=guarantee,
            accountant="shuffled pure ε reports" if self.central else "randomised response between half spheres, pure ε",
            conversion="Feldman, McMillan, Talwar 2021, Theorem 3.1" if self.central else "",
            notes=tuple(notes),
            for_training=LocalEpsilon(local),
            details=details,
        )
        return calibration.conditional(SHUFFLED) if self.central else calibration

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        report = PureEpsilon(calibration.values(LocalEpsilon).local_epsilon)
        return Shuffled(report, setting.n) if self.central else report

    def fit(self, training: Training) -> Fit:
        problem, streams = training.problem, training.streams
        epsilon = np.array([_epsilon(c) for c in training.calibrations])
        norms = np.zeros((len(epsilon), len(streams), problem.n)) if training.record else None
        plain = self.training == "plain" or not problem.setting.linear
        train = self._one_pass if self.release == "gradient" else self._plain if plain else self._surrogate
        _ = problem.rows.signed_rows32, problem.rows.norms  # made before the workers start

        def work(k: int, tick: Monitor) -> Floats:
            return train(problem, epsilon, streams[k], None if norms is None else norms[:, k], tick)

        theta = np.stack(
            map_streams(work, len(streams), training.monitor, parallel=problem.n * problem.m >= THREADS_FROM), axis=1
        )
        if norms is None:
            return Fit(theta, NoiseRecord(self.noise_enters))
        ones = np.ones((1, 1, problem.n))
        return Fit(theta, NoiseRecord(self.noise_enters, visits=ones, times_noised=ones, noise_norm=norms))

    def noisy_rows(self, problem: Problem, calibration: Calibration, stream: np.random.SeedSequence) -> Floats | None:
        """(n, d) reports as rows: signed records signed back, y z, or reported features; None for gradient reports."""
        if self.release == "gradient":
            return None
        epsilon = np.array([_epsilon(calibration)])
        coins, directions = _sources(substreams(stream, 2))
        if not problem.setting.linear:
            weights, sphere = self._reports(problem, epsilon, coins, directions, None)
            return weights[0][:, None] * sphere[:, :-1]
        out = np.empty(problem.rows.X.shape)
        # the draws of a run: block by block for the surrogate, all at once for the plain objective
        for block in row_blocks(problem.n) if self.training == "surrogate" else [slice(0, problem.n)]:
            size = problem.rows.norms[None, block]
            weights, sphere = randomise(problem.rows.signed_rows32[block], size, epsilon, coins, directions, None)
            out[block] = (problem.rows.y[block] * weights[0])[:, None] * sphere
        return out

    def _reports(
        self, problem: Problem, epsilon: Floats, coins: np.random.Generator, directions: Normals, norms: Floats | None
    ) -> tuple[Floats, np.ndarray]:
        """Reports of all people as `randomise` gives them, in the scale of the records."""
        records = self.signed_records(problem)
        stretch = 1.0 if problem.setting.linear else ROOT2
        size = np.broadcast_to(np.linalg.norm(records, axis=1) / stretch, (len(epsilon), problem.n))
        weights, sphere = randomise(records.astype(np.float32), size, epsilon, coins, directions, norms)
        if norms is not None:
            norms *= stretch
        return weights * stretch, sphere

    def _surrogate(
        self, problem: Problem, epsilon: Floats, stream: np.random.SeedSequence, norms: Floats | None, report: Monitor
    ) -> Floats:
        """(E, m): |phi'(0)| mean report / L."""
        coins, directions = _sources(substreams(stream, 2))
        total = np.zeros((len(epsilon), problem.m))
        for block in row_blocks(problem.n):
            v = problem.rows.signed_rows32[block]
            size = np.broadcast_to(problem.rows.norms[block], (len(epsilon), len(v)))
            weights, sphere = randomise(v, size, epsilon, coins, directions, None if norms is None else norms[:, block])
            total += weights @ sphere
            report(block.stop / problem.n)
        return problem.setting.slope_at_zero * total / problem.n / problem.setting.L

    def _plain(
        self, problem: Problem, epsilon: Floats, stream: np.random.SeedSequence, norms: Floats | None, report: Monitor
    ) -> Floats:
        """(E, m) minimisers of the model's own objective on the reports."""
        coins, directions = _sources(substreams(stream, 2))
        weights, sphere = self._reports(problem, epsilon, coins, directions, norms)
        theta = np.empty((len(epsilon), problem.m))
        for e in range(len(epsilon)):
            report(e / len(epsilon))
            theta[e] = self.learn(problem, weights[e][:, None] * sphere.astype(float), stream)
        return theta

    def _one_pass(
        self, problem: Problem, epsilon: Floats, stream: np.random.SeedSequence, norms: Floats | None, report: Monitor
    ) -> Floats:
        """(E, m) models after one pass in which every person reports one randomised gradient."""
        start, order, *rest = substreams(stream, 4)
        coins, directions = _sources(rest)
        theta = np.repeat(problem.model.initial(problem.m, [start]), len(epsilon), axis=0)
        step, bound = self.step_size * problem.setting.unit_step, problem.setting.G
        batches = np.array_split(generator(order).permutation(problem.n), self.batches)
        for t, index in enumerate(batches):
            rows = problem.rows.take(index)
            # linear models: a row's gradient is its norm times -y x/|x|
            size = problem.model.gradient_norms(theta, rows).T / bound
            noise = None if norms is None else np.empty(size.shape)
            weights, sphere = randomise(-rows.signed_rows.astype(np.float32), size, epsilon, coins, directions, noise)
            if norms is not None and noise is not None:
                norms[:, index] = bound * noise
            theta -= step * (bound * (weights @ sphere) / len(index) + problem.lam * theta)
            report((t + 1) / self.batches)
        return theta


def _sources(streams: list[np.random.SeedSequence]) -> tuple[np.random.Generator, Normals]:
    """Coins and directions."""
    coins, directions = streams
    return generator(coins), single_normals(directions)


def randomise(
    direction: np.ndarray, size: Floats, epsilon: Floats, coins: np.random.Generator, directions: Normals, norms: Floats | None
) -> tuple[Floats, np.ndarray]:
    """Reports of k people at E budgets from the same draws: report (e, i) is weights[e, i] * sphere[i].

    Args:
        direction: (k, d) vectors that point where v points, of any norm.
        size: (E, k) norms |v| in [0, 1].
        epsilon: (E,) local budgets; infinity is allowed.
        norms: (E, k), overwritten with |z - v|; None where not wanted.

    Returns:
        weights (E, k), each ±B, and sphere (k, d) of unit norm.
    """
    k, d = direction.shape
    sphere = directions((k, d))
    sphere /= np.sqrt(np.einsum("ij,ij->i", sphere, sphere))[:, None]
    along = np.einsum("ij,ij->i", sphere, direction).astype(float)
    towards = np.where(along >= 0, 1.0, -1.0)
    rounding, flips = coins.random(k), coins.random(k)
    # v is rounded to ±v/|v|, + with probability 1/2 + |v|/2; then the right half sphere with probability e^eps/(1+e^eps)
    sign = np.where(rounding < 0.5 + 0.5 * size, 1.0, -1.0) * np.where(flips < expit(epsilon)[:, None], 1.0, -1.0)
    b = np.array([report_norm(e, d) for e in epsilon])[:, None]
    weights = b * towards * sign
    if norms is not None:
        norm = np.sqrt(np.einsum("ij,ij->i", direction, direction, dtype=float))
        cosine = along / np.maximum(norm, 1e-300)
        norms[:] = np.sqrt(np.maximum(b**2 + size**2 - 2 * weights * cosine * size, 0.0))
    return weights, sphere
