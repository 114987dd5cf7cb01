"""Pure local privacy: the l2 randomiser of Duchi, Jordan and Wainwright."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln

from dpviz.common.progress import Monitor
from dpviz.common.random import Normals, generator, single_normals, substreams
from dpviz.mechanisms.base import Calibration, Floats
from dpviz.mechanisms.calibration import TrainingValues
from dpviz.mechanisms.local.local_reports import ROOT2, SHUFFLED, LocalMechanism, Train, row_blocks
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, PureEpsilon, Shuffled
from dpviz.privacy.accounting.shuffle import central_epsilon, largest_local_epsilon, local_epsilon_for
from dpviz.privacy.budget import Budget


def report_length(epsilon: float, d: int) -> float:
    """B, the length of a report: coth(eps/2) sqrt(pi) Gamma((d+1)/2)/Gamma(d/2) (Duchi, Jordan, Wainwright 2018).

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


@dataclass(frozen=True)
class LDPDuchi(LocalMechanism):
    """Reports a vector of fixed length B from the half sphere around ±v or, with probability 1/(1 + e^eps), the other.

    v is the signed record y x, |v| <= 1; it is first rounded to ±v/|v| with mean v. E[z] = v, but
    z z' has the same mean whatever v is, because a half sphere and its opposite look alike to even functions. So
    the reports tell the mean record and no covariance: the surrogate keeps its largest curvature beta in every
    direction, and its minimiser is one gradient step of length 1/L from 0.

    With m = p a - q b, the mean record of classes of shares p > q with mean rows a and b, the sign of <m, x> is that of the
    larger class for all x with <b, x>/<a, x> < p/q, <a, x> > 0, whatever epsilon and n are.
    """

    id = "ldp-duchi"
    label = "Local reports, pure ε (Duchi)"
    citation = (
        "Duchi, Jordan, Wainwright, FOCS 2013 and JASA 113 (2018), the l2 randomiser; "
        "shuffling: Feldman, McMillan, Talwar, FOCS 2021, Theorem 3.1"
    )
    noise_enters = "Every row: each person reports a random vector of fixed length, more often near their own row."
    guarantee = (
        "ε-LDP of every report, proved; all training is post-processing. "
        "Shuffling can give a smaller central ε, not for every ε and n."
    )
    rate = r"O\!\left(\frac{G\,p}{\varepsilon\sqrt n}\right)"
    pure = True

    def limit(self, setting: Setting) -> str:
        if not setting.linear or self.training != "surrogate":
            return ""
        return (
            "Reports of signed records tell their mean, and nothing of how features vary together. With a share p of the rows, "
            "the larger class wins at any ε, unless the other class is more than p/(1 − p) times as similar to a row (mean of "
            "⟨x, x′⟩). Local Gaussian reports do tell how features vary together."
        )

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        query, source, sensitivity = self.query_in_words(setting)
        local = local_epsilon_for(budget, setting.n) if self.central else budget.epsilon
        # a report is of a vector in the unit ball: features and label divided by √2 where both are reported
        size, stretch = (setting.d, 1.0) if setting.linear else (setting.d + 1, ROOT2)
        length = stretch * report_length(local, size)
        # E|mean z - mean v|^2 = (B^2 - mean |v|^2)/n, as |z| = B and E z = v; at epsilon = infinity B is about sqrt(pi d/2)
        least = stretch * math.sqrt(max(report_length(math.inf, size) ** 2 - 1, 0.0) / setting.n)
        guarantee = budget if self.central else Budget(budget.epsilon)
        notes: list[str] = [
            f"Switching the noise off means ε = ∞: a report then always lies in the half sphere around ±v, and is still "
            f"{stretch * report_length(math.inf, size):.3g} long.",
            f"The mean of all reports is off by about {length / math.sqrt(setting.n):.3g} (root mean square), and by "
            f"{least:.3g} at least, however large ε is; what distinguishes the classes by less is lost, and the model then "
            f"predicts the majority. {self.limit(setting)}".strip(),
            "The table of rows is the data owner's view; a person's report is released without their row id.",
            *self.learns(setting),
        ]
        details = {"B": length, "expected_noise_norm": length}
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
                f"One report is ε = {local:.3g} LDP. All {setting.n} reports, shuffled, are (ε = {shuffled:.3g}, "
                f"δ = {budget.delta:.3g})-DP"
                + ("." if shuffled < local else "; at this size shuffling proves nothing better than one report."),
            )
        calibration = Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query=query,
            sensitivity_source=source,
            noise_scale=length / math.sqrt(size),  # root mean square of a coordinate of a report
            noise_family="duchi-sphere",
            proves=guarantee,
            claims=guarantee,
            accountant="shuffled pure ε reports" if self.central else "randomised response between half spheres, pure ε",
            conversion="Feldman, McMillan, Talwar 2021, Theorem 3.1" if self.central else "",
            notes=tuple(notes),
            for_training=LocalEpsilon(local),
            details=details,
        )
        return calibration.conditional(SHUFFLED) if self.central else calibration

    def released(self, setting: Setting, calibration: Calibration) -> Event | None:
        report = PureEpsilon(calibration.values(LocalEpsilon).local_epsilon)
        return Shuffled(report, setting.n) if self.central else report

    def levels(self, calibrations: Sequence[Calibration]) -> Floats:
        """(E,) epsilon of one report; noise switched off is the limit of large epsilon."""
        return np.array([c.values(LocalEpsilon).local_epsilon if c.noise_scale > 0 else math.inf for c in calibrations])

    def reports(
        self, problem: Problem, levels: Floats, stream: np.random.SeedSequence, lengths: Floats | None
    ) -> Iterator[Floats]:
        parts = [(weights, sphere) for _, weights, sphere in self._randomised(problem, levels, stream, lengths)]
        weights, sphere = np.hstack([w for w, _ in parts]), np.concatenate([s for _, s in parts]).astype(float)
        return (one[:, None] * sphere for one in weights)

    def _randomised(
        self, problem: Problem, levels: Floats, stream: np.random.SeedSequence, lengths: Floats | None
    ) -> Iterator[tuple[slice, Floats, np.ndarray]]:
        """(rows, weights, sphere) of all reports as `randomise` gives them, in the scale of the records.

        Block by block for the surrogate, all at once for the plain objective.
        """
        coins, directions = substreams(stream, 2)
        source, draw = generator(coins), single_normals(directions)
        linear = problem.setting.linear
        stretch = 1.0 if linear else ROOT2  # a vector in the unit ball: features and label are divided by √2
        records = problem.rows.signed32 if linear else self.reported(problem).astype(np.float32)
        norms = problem.rows.norms if linear else np.linalg.norm(self.reported(problem), axis=1)
        for block in row_blocks(problem.n) if self.by_surrogate(problem) else [slice(0, problem.n)]:
            size = np.broadcast_to(norms[block] / stretch, (len(levels), len(records[block])))
            noise = None if lengths is None else lengths[:, block]
            weights, sphere = randomise(records[block], size, levels, source, draw, noise)
            if noise is not None:
                noise *= stretch
            yield block, weights * stretch, sphere

    def surrogate(self, problem: Problem) -> Train:
        """|phi'(0)| mean report / L."""

        def train(levels: Floats, stream: np.random.SeedSequence, lengths: Floats | None, report: Monitor) -> Floats:
            total = np.zeros((len(levels), problem.m))
            for block, weights, sphere in self._randomised(problem, levels, stream, lengths):
                total += weights @ sphere
                report(block.stop / problem.n)
            return problem.setting.slope_at_zero * total / problem.n / problem.setting.L

        return train


def randomise(
    direction: np.ndarray, size: Floats, epsilon: Floats, coins: np.random.Generator, directions: Normals, lengths: Floats | None
) -> tuple[Floats, np.ndarray]:
    """Reports of k people at E budgets from the same draws: report (e, i) is weights[e, i] * sphere[i].

    Args:
        direction: (k, d) vectors that point where v points, of any length.
        size: (E, k) lengths |v| in [0, 1].
        epsilon: (E,) local budgets; infinity is allowed.
        lengths: (E, k), overwritten with |z - v|; None where not wanted.

    Returns:
        weights (E, k), each ±B, and sphere (k, d) of unit length.
    """
    k, d = direction.shape
    sphere = directions((k, d))
    sphere /= np.sqrt(np.einsum("ij,ij->i", sphere, sphere))[:, None]
    along = np.einsum("ij,ij->i", sphere, direction).astype(float)
    towards = np.where(along >= 0, 1.0, -1.0)
    rounding, flips = coins.random(k), coins.random(k)
    # v is rounded to ±v/|v|, + with probability 1/2 + |v|/2; then the right half sphere with probability e^eps/(1+e^eps)
    sign = np.where(rounding < 0.5 + 0.5 * size, 1.0, -1.0) * np.where(flips < expit(epsilon)[:, None], 1.0, -1.0)
    b = np.array([report_length(e, d) for e in epsilon])[:, None]
    weights = b * towards * sign
    if lengths is not None:
        norm = np.sqrt(np.einsum("ij,ij->i", direction, direction, dtype=float))
        cosine = along / np.maximum(norm, 1e-300)
        lengths[:] = np.sqrt(np.maximum(b**2 + size**2 - 2 * weights * cosine * size, 0.0))
    return weights, sphere
