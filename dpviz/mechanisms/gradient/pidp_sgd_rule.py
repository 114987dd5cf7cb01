"""PIDP-SGD's rule: which rows train without noise, as written and as intended, its thresholds, views and notes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from dpviz.common.digits import three
from dpviz.influence import error_bound
from dpviz.mechanisms import single_record as single
from dpviz.mechanisms.base import Calibration, Floats, RuleView
from dpviz.mechanisms.calibration import TrainingValues
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.published_noise import pidp_passes

INTENDED: tuple[str, ...] = (
    "This is the publication's idea and not its algorithm: no noise is spent on the decision, and rows that pass move the "
    "model by their exact gradient. It protects no row: a model that only one dataset can reach gives that dataset away.",
)
BATCHES: str = (
    "The paper only remarks that noise on a batch may follow the number B_IF of its rows that do not pass; no theorem is stated. "
    "The size of the noise then tells B_IF, which depends on the rows and is covered by no budget."
)


def chance(log10: float) -> str:
    """A probability in words people can read."""
    return f"{10**log10:.2g}" if log10 > -4 else f"10^{log10:.0f}"


def literal_notes(threshold: float, sigma_c: float, error: float, log10_pass: float, setting: Setting) -> tuple[str, ...]:
    """The values of lines 9 and 10 at these numbers."""
    return (
        f"Lines 9 and 10 let a row pass where all {setting.m} entries of |2c + b| are at most "
        f"2rδ₁(1 + e^-ε₁) = {three(threshold)}. The entries of b alone have standard deviation {three(sigma_c)}: whatever its "
        f"influence, a row passes with probability at most {chance(log10_pass)}.",
        "The threshold falls as ε grows, from 4rδ₁ to 2rδ₁, where the paper says that more budget means less noise; only the "
        "noise b becomes smaller.",
        f"Theorem 4's E = {error:.2g} is added to every |c| before it is doubled; the bound is loose."
        if math.isfinite(error)
        else "Theorem 4 gives no E for a loss whose second derivative jumps; nothing is added for it.",
        "The noise b is calibrated to the sensitivity of c, but 2c is used; the Hessian and the model inside c depend on the "
        "other rows too, which is not counted.",
        "The case for passing rows without noise assumes a uniformly distributed model and proves one event instead of all.",
    )


def visible_note(sigma: float, lipschitz: float, steps: int, used: float, delta: float) -> tuple[str, ...]:
    """Said where a single noisy step shows which row it used."""
    if sigma > 0.1 * lipschitz:
        return ()
    return (
        f"The gradient noise is {sigma:.2g} per coordinate on a single row's gradient of norm up to {lipschitz:g}. Where every "
        f"model is public, as the paper allows, such a step can show the row it used; T = {steps} steps use a given row with "
        f"probability {used:.2g}, which would all have to fit into δ = {delta:.2g}.",
    )


def log10_pass(doubled: Floats, threshold: float, sigma_c: float) -> Floats:
    """(n,) log10 P(all |2c + b| <= threshold), b ~ N(0, sigma_c^2 I), for 2c (n, m).

    The product over coordinates of Phi((t - 2|c|)/s) - Phi((-t - 2|c|)/s), in log space.
    """
    size = np.abs(doubled)
    upper, lower = log_ndtr((threshold - size) / sigma_c), log_ndtr((-threshold - size) / sigma_c)
    return (upper + np.log(-np.expm1(np.minimum(lower - upper, -1e-300)))).sum(axis=1) / math.log(10)


@dataclass(frozen=True)
class LiteralRule(TrainingValues):
    """The numbers of lines 8 to 10, from the rule's share of the budget.

    Attributes:
        epsilon_1, delta_1: what training may spend.
        radius: r of lines 9 and 10, absolute.
        threshold: 2 r delta_1 (1 + e^-epsilon_1), with which lines 9 and 10 compare |2c + b|.
        sigma_c: standard deviation of b, line 8.
    """

    epsilon_1: float
    delta_1: float
    radius: float
    threshold: float
    sigma_c: float


@dataclass(frozen=True)
class Rule:
    """The rule that selects rows trained without noise.

    Attributes:
        kind: "literal" (lines 9 and 10), "threshold" or "fraction".
        setting: public facts.
        influence_threshold: bound of the threshold rule on the largest |c|.
        fraction: share of the rows, the most influential, that the fraction rule gives noise.
    """

    kind: str
    setting: Setting
    influence_threshold: float
    fraction: float

    def passes(self, contribution: Floats, calibrations: Sequence[Calibration], draw: Floats) -> NDArray[np.bool_]:
        """(E, S) whether rows with these contributions (E, S, m) train without noise; draw is (S, m)."""
        if self.kind == "threshold":
            return np.abs(contribution).max(axis=2) <= self.influence_threshold
        passed = np.empty(contribution.shape[:2], bool)
        for e, cal in enumerate(calibrations):
            at = cal.values(LiteralRule)
            noise = at.sigma_c * draw if cal.noise_scale > 0 else 0.0  # line 8
            doubled = 2 * self.with_error(contribution[e]) + noise  # lines 7 and 9
            passed[e] = pidp_passes(doubled, at.radius, at.epsilon_1, at.delta_1)  # lines 9 and 10
        return passed

    def passes_fraction(self, statistic: Floats) -> NDArray[np.bool_]:
        """(n,) True but for the round(fraction n) most influential rows; of equal rows the first ones receive noise."""
        passes = np.ones(len(statistic), bool)
        passes[np.argsort(-statistic, kind="stable")[: round(self.fraction * len(statistic))]] = False
        return passes

    def with_error(self, contribution: Floats) -> Floats:
        """Line 7, c + E: E enlarges every entry, sign(c)(|c| + E); a positive number added to signed entries would not."""
        error = error_bound(self.setting)
        if not math.isfinite(error):
            return contribution  # Theorem 4 says nothing; the calibration's notes say so
        return np.copysign(np.abs(contribution) + error, contribution)

    def statistic(self, problem: Problem, start: Floats) -> Floats:
        """(n,) what the rule compares at the model `start` (m,), without the rule's own noise."""

        def largest(c: Floats) -> Floats:
            return np.abs(2 * self.with_error(c) if self.kind == "literal" else c).max(axis=1)

        return single.statistic(problem, start, single.solver(problem, start), largest)

    def bound(self, statistic: Floats, calibration: Calibration) -> float:
        """The threshold that `statistic` (n,) is compared with."""
        if self.kind == "literal":
            return calibration.values(LiteralRule).threshold
        if self.kind == "threshold":
            return self.influence_threshold
        passing = statistic[self.passes_fraction(statistic)]
        return float(passing.max()) if len(passing) else -math.inf

    def views(self, problem: Problem, start: Floats, calibration: Calibration) -> tuple[RuleView, RuleView]:
        """The rule as written and as intended at the model `start` (m,), the one in use first."""
        solve = single.solver(problem, start)
        at, n = calibration.values(LiteralRule), problem.n
        noisy = calibration.noise_scale > 0
        influence, doubled, log10 = np.empty(n), np.empty(n), np.empty(n)
        for block, c in single.contributions(problem, start, solve):
            influence[block] = np.abs(c).max(axis=1)
            twice = 2 * self.with_error(c)
            doubled[block] = np.abs(twice).max(axis=1)
            if noisy:
                log10[block] = log10_pass(twice, at.threshold, at.sigma_c)
        written = RuleView(
            name="as written",
            words="A row passes where every entry of 2c + b is small: lines 9 and 10 are the one threshold 2rδ₁(1 + e^-ε₁).",
            formula=r"\max_i\left|[2c_t+b^{(c)}]_i\right|\le 2r\delta_1\left(1+e^{-\varepsilon_1}\right)",
            statistic_label="largest |2(c + E)| over the parameters, without the rule's own noise b",
            statistic=doubled,
            low=-math.inf,
            high=at.threshold,
            passes=doubled <= at.threshold,
            used=self.kind == "literal",
            log10_pass=log10 if noisy else None,
            notes=(f"b has standard deviation {three(at.sigma_c)}, {three(at.sigma_c / at.threshold)} times the threshold.",),
        )
        intended = self._intended(influence, used=not written.used)
        return (written, intended) if written.used else (intended, written)

    def _intended(self, influence: Floats, used: bool) -> RuleView:
        fraction = self.kind == "fraction"
        passes = self.passes_fraction(influence) if fraction else influence <= self.influence_threshold
        high = (float(influence[passes].max()) if passes.any() else -math.inf) if fraction else self.influence_threshold
        return RuleView(
            name="as intended",
            words=f"All rows pass but the {round(self.fraction * len(influence))} most influential ones."
            if fraction
            else "A row passes where its influence is at most the chosen threshold.",
            formula=r"\max_i\left|[c_t]_i\right|\le \tau",
            statistic_label="largest influence |c| over the parameters",
            statistic=influence,
            low=-math.inf,
            high=high,
            passes=passes,
            used=used,
        )


def refused_replicas(gradients: Floats, calibrations: Sequence[Calibration], draw: Floats, setting: Setting) -> NDArray[np.bool_]:
    """(E S,) replicas whose row receives noise whatever its contribution is, so that no Hessian need be made for them.

    The Hessian is at least lam I, so |c_i| <= |c| <= |g|/(n lam), and an entry of 2 sign(c)(|c| + E) + b is at least
    |b_i| - 2(|g|/(n lam) + E) and at least 2E - |b_i| long [ours]. A row that passes with a chance below 10^-30, whatever its
    influence is, counts as refused too.

    Args:
        gradients: (E S, m) g, the drawn rows' gradients with the regulariser.
        draw: (S, m) standard draws of b.
    """
    count, out = len(draw), np.zeros(len(gradients), bool)
    error = error_bound(setting)
    error = error if math.isfinite(error) else 0.0
    reach = 2 * (np.linalg.norm(gradients, axis=1) / (setting.n * setting.lam) + error)
    smallest, largest = np.abs(draw).min(axis=1), np.abs(draw).max(axis=1)
    for e, cal in enumerate(calibrations):
        if cal.noise_scale > 0:
            part, at = slice(e * count, (e + 1) * count), cal.values(LiteralRule)
            # rounding is far below this margin
            out[part] = at.sigma_c * largest > (reach[part] + at.threshold) * (1 + 1e-6)
            out[part] |= 2 * error > (at.sigma_c * smallest + at.threshold) * (1 + 1e-6)
            out[part] |= log10_pass(np.zeros((1, draw.shape[1])), at.threshold, at.sigma_c)[0] < -30
    return out
