"""PIDP-SGD of Kang et al.: gradient noise only for rows whose influence a rule calls large."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpviz.influence import error_bound
from dpviz.mechanisms import single_record as single
from dpviz.mechanisms.base import Calibration, Fit, RuleView, Training, knob
from dpviz.mechanisms.calibration import BOUNDED_ROWS, PUBLIC_N
from dpviz.mechanisms.capabilities import NoisesShare
from dpviz.mechanisms.gradient import pidp_sgd_rule as pidp
from dpviz.mechanisms.knobs import start_knob, step_size_knob
from dpviz.mechanisms.published import INFINITE, gradient_bound_knob, nominal_gradient_bound, open_constant_knob, unbounded_note
from dpviz.models import Ability, Setting
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget
from dpviz.privacy.published_noise import contribution_sigma, pidp_threshold, sgd_sigma


@dataclass(frozen=True)
class PIDPSGD(single.SingleRecord, NoisesShare):
    """Algorithm 1: single-record SGD from the non-private model, with Gaussian noise on a step unless the row's noisy
    contribution 2 c + b passes lines 9 and 10.

    Lines 9 and 10 are one threshold in disguise [ours]: noise-free iff max_i |[c_t]_i| <= 2 r delta_1 (1 + e^-eps_1).
    It falls as epsilon grows, and the noise b on the contribution is so much larger that the literal algorithm never
    skips noise in practice. Two readings of the intention stand beside it, labelled as giving no privacy: noise rows
    whose influence max_i |[c]_i| is above a threshold, or a given share of the rows, the most influential ones.

    With batches of B rows, of which B_IF do not pass, the sampling probability 1/n of the noise becomes B_IF/n (the remark on
    mini-batches): noise of standard deviation sigma B_IF on the batch's summed gradient, divided by B like the sum. The paper
    states no theorem for it.

    The regulariser is inside each row's loss, c = (1/n) H^{-1} (g + lam theta), as the paper's L = mean of l implies;
    L, G, C of the data part as in its Remark 1, zeta = lam, r = radius G/lam, delta_1 = delta_2 = delta/2.
    """

    id = "pidp-sgd"
    open_constant = "c"
    label = "PIDP-SGD"
    family = "gradient"
    needs = frozenset({Ability.DERIVATIVES})
    citation = (
        'Kang, Li, Liu, Wang, "Data Heterogeneity Differential Privacy: From Theory to Algorithm", Algorithm 1, Theorems 4 to 7'
    )
    noise_enters = "The gradient of a drawn row, a new draw each time, unless the rule exempts the row; and the rule's statistic."
    guarantee = (
        "Claimed to be (ε, δ)-DP as written; the proof does not hold and the start is not private. The intended readings "
        "give no privacy: exempt rows are used without noise."
    )
    supposes = (BOUNDED_ROWS, PUBLIC_N)
    rate = r"O\!\left(\frac{k\,m\,G^2\log(1/\delta_1)\log n}{n^3\varepsilon_1^2}\right)"

    rounds: int = knob(
        5,
        "Global rounds",
        "How often the Hessian is computed anew (R); the noise of the rule grows with it.",
        low=1,
        high=1000,
        log=True,
    )
    local_steps: int = knob(
        2,
        "Local steps",
        "Rows drawn between two rounds (T_local); the theory needs R·T_local of order ln n.",
        low=1,
        high=1000,
        log=True,
    )
    batch_size: int = knob(
        1,
        "Batch size",
        "Rows drawn for a step. The paper's remark on mini-batches: the noise is in proportion to the rows that do not pass.",
        low=1,
        high=100,
        log=True,
        unit="rows",
    )
    step_size: float = step_size_knob(
        "Size of a step; the theory has 1/L.",
        "0.01 from the non-private model, since noisy steps move away from it; 1 from zero",
        low=0.001,
    )
    rule: str = knob(
        "literal",
        "Rule",
        "Lines 9 and 10 as written; or the intention: a threshold on the influence, or the share of rows that receives noise.",
        options=("literal", "threshold", "fraction"),
    )
    threshold: float = knob(
        0.1,
        "Influence threshold",
        "Rows of influence up to this receive no noise (threshold rule only). At the minimiser none exceeds 2.",
        low=1e-6,
        high=10.0,
        log=True,
        unit="G/(nλ)",
    )
    fraction: float = knob(
        0.1,
        "Share of rows with noise",
        "Share of the rows, the most influential, that receives noise (fraction rule only).",
        low=0.0,
        high=1.0,
    )
    start: str = start_knob()
    share: float = knob(
        0.75, "Share of ε for training", "ε₁/ε; the rest is spent on the rule (the experiments use 3/4).", low=0.01, high=0.99
    )
    radius: float = knob(
        1.0,
        "Radius r",
        "Radius of the parameter space in lines 9 and 10; nothing is projected onto it.",
        low=1e-4,
        high=1e4,
        log=True,
        unit="G/λ",
    )
    c: float = open_constant_knob()
    lipschitz: float = gradient_bound_knob()

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        return 1.0 if self.public_start else 0.01

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        budget.need_delta(*INFINITE)
        lipschitz = nominal_gradient_bound(setting, self.lipschitz)
        first, second, delta = self.share * budget.epsilon, (1 - self.share) * budget.epsilon, budget.delta / 2
        sigma = sgd_sigma(setting.n, self.steps, first, delta, lipschitz=lipschitz, c=self.c)  # Theorem 5
        sigma_c = contribution_sigma(setting.n, self.rounds, setting.lam, second, delta, lipschitz=lipschitz)  # Theorem 5
        radius = self.radius * lipschitz / setting.lam
        threshold = pidp_threshold(radius, first, delta)
        error = error_bound(setting)  # Theorem 4
        # Anderson: centred noise stays in the box |.| <= threshold most often
        bound = setting.m * math.log10(math.erf(threshold / (sigma_c * math.sqrt(2))))
        literal = self.rule == "literal"
        least = sigma * (self.batch_size if literal else 1)  # by the other rules one row may be the only one with noise
        make = Calibration.claimed if literal and self.batch_size == 1 else Calibration.unprotected  # no theorem on batches
        return make(
            budget,
            query="the gradient of one drawn row, in steps whose row does not pass the rule",
            sensitivity_source="the publication's moments argument; decisions and noise-free steps are not covered by it",
            noise_scale=sigma,
            accountant=f"Theorem 5 with c = {self.c:g}: ε₁ = {first:.3g} for training, ε₂ = {second:.3g} for the rule",
            notes=(
                *(pidp.literal_notes(threshold, sigma_c, error, bound, setting) if literal else pidp.INTENDED),
                *(() if self.public_start else (single.NOT_PRIVATE_START,)),
                *((pidp.BATCHES,) if self.batch_size > 1 else ()),
                *pidp.visible_note(least, lipschitz, self.steps, self._used(setting.n), budget.delta),
                f"The publication leaves c open; here c = {self.c:g}.",
                *unbounded_note(setting, self.lipschitz),
            ),
            for_training=pidp.LiteralRule(first, delta, radius, threshold, sigma_c),
            details={
                "steps": float(self.steps),
                "epsilon_2": second,
                "delta_2": delta,
                "line_9_bound": 2 * radius * delta / -math.expm1(-first),
                "taylor_error": error,
                "log10_pass_bound": bound,
                "influence_threshold": self._influence_threshold(setting),
                "row_used_probability": self._used(setting.n),
            },
        )

    def _used(self, n: int) -> float:
        """Probability that a given row is drawn at least once."""
        return -math.expm1(self.steps * self.batch_size * math.log1p(-1 / n))

    def _influence_threshold(self, setting: Setting) -> float:
        """The threshold rule's bound on max_i |[c]_i|."""
        return self.threshold * nominal_gradient_bound(setting, self.lipschitz) / (setting.n * setting.lam)

    def fit(self, training: Training) -> Fit:
        problem, calibrations, streams, record = training.problem, training.calibrations, training.streams, training.record
        model, lam, m, e, s = problem.model, problem.lam, problem.m, len(calibrations), len(streams)
        sigma = training.scales[:, None]
        draws = single.draw(streams, problem.n, self.steps * self.batch_size, m, kinds=2)
        outer = np.tile(self.starting_points(problem, streams), (e, 1))  # line 2, (E S, m)
        local = outer.copy()
        log = single.RowLog(e, s, problem.n, self.rounds, record)
        step = self.value("step_size", problem.setting) * problem.setting.unit_step
        rule = self._rule(problem.setting)
        first = (
            rule.statistic(problem, self.starting_points(problem, streams[:1])[0]) if record or self.rule == "fraction" else None
        )
        solve = single.solvers(problem, outer, partial(training.monitor, 0.0))
        for k in range(self.steps):
            training.monitor(k / self.steps)
            if k % self.local_steps == 0 and self.rule != "fraction":
                solve = single.solvers(problem, outer, partial(training.monitor, k / self.steps))  # line 4
            slope, scale, rows_of_step = np.zeros_like(local), np.zeros((e, s)), []
            for at in range(k * self.batch_size, (k + 1) * self.batch_size):
                index = draws.index[:, at]  # line 6
                rows = single.replicate(problem.rows, index, e)
                if self.rule == "fraction":
                    assert first is not None
                    passed = np.broadcast_to(rule.passes_fraction(first)[index], (e, s))
                else:
                    slopes = single.gradient(model, outer, rows, lam)
                    refused = np.zeros(e * s, bool)
                    if self.rule == "literal":
                        refused = pidp.refused_replicas(slopes, calibrations, draws.noise[:, 1, at], problem.setting)
                    contribution = np.zeros_like(slopes)
                    for r in np.flatnonzero(~refused).tolist():
                        contribution[r] = solve(r, slopes[r]) / problem.n
                    passed = rule.passes(contribution.reshape(e, s, m), calibrations, draws.noise[:, 1, at])
                    passed &= ~refused.reshape(e, s)
                slope += single.gradient(model, local, rows, lam) / self.batch_size
                scale += np.where(passed, 0.0, sigma) / self.batch_size  # (B_IF/n) in the place of (B/n), section 5.3
                rows_of_step.append((index, passed))
            noise = scale[:, :, None] * draws.noise[:, 0, k]  # line 13
            local -= step * (slope + noise.reshape(e * s, m))  # lines 11 and 14
            noise_norm = np.linalg.norm(noise, axis=2)
            for index, passed in rows_of_step:
                log.step(k // self.local_steps, index, passed, np.where(passed, 0.0, noise_norm))
            if (k + 1) % self.local_steps == 0:
                outer = local.copy()  # line 17
        margin = None
        if first is not None:
            margin = np.stack([first - rule.bound(first, c) for c in calibrations])[:, None]
        return Fit(outer.reshape(e, s, m), log.record(self.noise_enters, margin))  # line 19

    @classmethod
    def noising(cls, share: float) -> dict[str, Any]:
        return {"rule": "fraction", "fraction": share}

    def rule_views(self, problem: Problem, calibration: Calibration) -> tuple[RuleView, ...]:
        start = self.starting_points(problem, [np.random.SeedSequence(0)])[0]
        return self._rule(problem.setting).views(problem, start, calibration)

    def _rule(self, setting: Setting) -> pidp.Rule:
        return pidp.Rule(self.rule, setting, self._influence_threshold(setting), self.fraction)
