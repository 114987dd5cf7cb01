"""Bolt-on privacy: permutation-based SGD with noise on its result."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, Floats, Monitor, NoiseRecord, Streams, Training, ignore, knob
from dpviz.mechanisms.calibration import BOUNDED_ROWS, CONVEX, PUBLIC_N, SMOOTH
from dpviz.mechanisms.capabilities import BoundsDistance, HasTrace, ProtectsQuery, ReleasesGaussians
from dpviz.mechanisms.output.minimiser_noise import ROUNDING, check_finite, proved_budget, release
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.models.solvers.minibatch import minibatch_descent, permutations
from dpviz.privacy.accounting.distance import gamma_sphere_distance
from dpviz.privacy.accounting.events import Event, Mixture, PureEpsilon
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.accounting.mixture import mixture_sigma
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAMMA_SPHERE, GAUSSIAN
from dpviz.privacy.sensitivity.algorithm2 import Trace
from dpviz.privacy.sensitivity.bounds import WU_RULES, Bound, balanced_batches, step_recursion, step_trace, wu_bolt_on, wu_steps

ACCOUNTANTS = {
    "exact": "exact Gaussian mechanism at the worst batch position (Balle & Wang 2018)",
    "mixture": "mixture of Gaussians over the batch positions, joint convexity of the hockey-stick divergence [ours]",
    "classical": "sqrt(2 ln(1.25/δ)) Δ/ε as published",
    "pure": "L2 Laplace mechanism, pure ε (Wu et al. 2017, Theorem 1)",
}


@dataclass(frozen=True)
class BoltOnPSGD(ProtectsQuery, HasTrace, ReleasesGaussians, BoundsDistance):
    """k passes of SGD over permuted rows, then one draw of noise scaled to how far the last iterate can move."""

    id = "bolt-on-psgd"
    joins_lams = True
    label = "Bolt-on PSGD"
    family = "output"
    citation = "Wu, Li, Kumar, Chaudhuri, Jha, Naughton, SIGMOD 2017, Algorithms 1 and 2"
    noise_enters = "The finished parameters: one draw is added to the last iterate of permutation-based SGD."
    guarantee = "(ε, δ)-DP or ε-DP, proved for bounded steps; holds for every permutation."
    supposes = (CONVEX, SMOOTH, BOUNDED_ROWS, PUBLIC_N)
    rate = r"O\!\left(\frac{G^2+\log n}{n}+\frac{m}{n\varepsilon}\right)"
    needs_strong_convexity = True
    needs_linear = True

    published_form: ClassVar = {"bound": "published", "noise": "classical"}

    rule: str = knob(
        "sc-decreasing",
        "Step rule",
        "min(1/L, 1/(μt)) or constant for strongly convex objectives; constant, 2/(L(t+n^c)) or 2/(L(√t+n^c)) for convex ones.",
        options=WU_RULES,
    )
    passes: int = knob(10, "Passes", "Passes over the data, k.", low=1, high=1000, log=True)
    batch_size: int = knob(
        50, "Batch size", "Rows in a batch, b.", low=1, high=1_000_000, log=True, unit="rows", share_of_rows=True
    )
    step_size: float = knob(
        10.0,
        "Constant step",
        "Step of the two constant rules. With the paper's 1/√n ten passes hardly move the parameters from 0.",
        low=0.01,
        high=100.0,
        log=True,
        unit="1/√n",
    )
    decay: float = knob(
        0.5, "Exponent c", "The larger c, the later the two decreasing convex rules shrink steps.", low=0.0, high=0.99
    )
    bound: str = knob(
        "recursion", "Sensitivity", "Computed update by update, or the published closed form.", options=("recursion", "published")
    )
    noise: str = knob(
        "exact",
        "Noise",
        "Exact Gaussian; Gaussian that uses the secret permutation; the published Gaussian; or pure ε-DP.",
        options=tuple(ACCOUNTANTS),
    )

    def automatic_lam(self, setting: Setting, budget: Budget) -> float:
        if self.rule != "sc-decreasing":
            return setting.lam  # noise hardly depends on it
        return rules.against_output_noise(setting, budget, self.calibrate)

    def _rule(self, setting: Setting) -> dict[str, Any]:
        """The step rule with its constants, as `wu_steps` and `wu_bolt_on` take them."""
        step, batches = self.step_size / math.sqrt(setting.n), balanced_batches(setting.n, self.batch_size)[0]
        constants = {"passes": self.passes, "batches": batches, "step": step, "n": setting.n, "decay": self.decay}
        return {"rule": self.rule, "mu": setting.mu, "L": setting.L, **constants}

    def _steps(self, setting: Setting) -> Floats:
        return wu_steps(**self._rule(setting))

    def _by_position(self, setting: Setting) -> tuple[Floats, Floats]:
        """(m,) sensitivities by the batch that holds the replaced row, and (m,) probabilities of these batches."""
        m, b, weights = balanced_batches(setting.n, self.batch_size)
        return step_recursion(self._steps(setting), m, b, setting.mu, setting.L, setting.G), weights

    def sensitivity_trace(self, setting: Setting) -> Trace:
        m, b, _ = balanced_batches(setting.n, self.batch_size)
        return step_trace(self._steps(setting), m, b, setting.mu, setting.L, setting.G)

    def _published(self, setting: Setting) -> float:
        smallest = balanced_batches(setting.n, self.batch_size)[1]
        return wu_bolt_on(**self._rule(setting), batch_size=smallest, G=setting.G)

    def sensitivity_bounds(self, setting: Setting) -> tuple[Bound, ...]:
        tight = float(self._by_position(setting)[0].max())
        bounds = [
            Bound(
                "Recursion, worst batch",
                tight,
                r"\Delta\leftarrow\rho\Delta\,(+\,2\eta G/b)",
                "Chen, Lee, Kifer 2019, Lemma 2, for this step rule",
            )
        ]
        try:
            latex = {
                "sc-decreasing": r"\frac{2G}{\mu n}",
                "sc-constant": r"\frac{2\eta G}{b(1-(1-\eta\mu)^N)}",
                "convex-constant": r"\frac{2kG\eta}{b}",
            }.get(self.rule, r"\frac{4G}{Lb}\sum_{j<k}\frac1{\dots}")
            bounds.append(Bound("Wu et al.", self._published(setting), latex, f"Wu et al. 2017, closed form of {self.rule}"))
        except InvalidInput:
            pass  # the step is beyond the published proof
        return tuple(bounds)

    def releases(self, setting: Setting) -> Event | None:
        if self.noise == "pure":
            return None
        by_position, weights = self._by_position(setting)
        factor = self._published(setting) / by_position.max() if self.bound == "published" else 1.0
        return Mixture.combine(by_position * factor, weights)

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        if self.noise == "pure":
            return PureEpsilon(calibration.sensitivity / calibration.noise_scale)
        return super().released_event(setting, calibration)

    def distance(self, setting: Setting, calibration: Calibration) -> float:
        pure = self.noise == "pure"
        return gamma_sphere_distance(calibration.sensitivity, calibration.noise_scale, setting.m) if pure else 1.0

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        m, b, _ = balanced_batches(setting.n, self.batch_size)
        by_position, weights = self._by_position(setting)
        tight, notes = float(by_position.max()), [ROUNDING]
        check_finite(tight)
        sensitivity, source = tight, "every update contracts by ρ and a visit adds 2ηG/b (Chen et al. 2019, Lemma 2): worst batch"
        if self.bound == "published":
            try:
                sensitivity = self._published(setting)
            except InvalidInput as error:  # a step beyond the published proof: name the knob
                raise InvalidInput("step_size", error.cause, "Choose a smaller step, or the recursion.") from error
            source = f"Wu et al. 2017, closed form of the rule {self.rule}, with G = {setting.G:g} since the regulariser cancels"
            notes.append(f"The recursion over the single updates gives {tight:.4g}.")
        claimed = proved = budget
        family = GAUSSIAN
        if self.noise == "pure":
            family, scale = GAMMA_SPHERE, sensitivity / budget.epsilon  # Wu 2017, Theorem 1
            claimed = proved = Budget(budget.epsilon)
        else:
            mu_star = gaussian_mu(budget)
            scale = sensitivity / mu_star
            if self.noise == "classical":
                # Wu 2017, Theorem 2 (Dwork & Roth 2014, Theorem A.1), proved for epsilon < 1
                scale = math.sqrt(2 * math.log(1.25 / budget.delta)) * sensitivity / budget.epsilon
                proved = proved_budget(budget, scale, tight / mu_star, tight)
                if budget.epsilon >= 1:
                    notes.append(f"The published noise is proved for ε < 1 only; what it proves here is {proved}.")
            elif self.noise == "mixture":
                scale = mixture_sigma(budget, by_position * (sensitivity / tight), weights)
                notes.append("Counts on the permutation being uniform, fresh and secret.")
        return Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query="the last iterate, for a given permutation",
            sensitivity_source=source,
            noise_scale=scale,
            noise_family=family,
            claims=claimed,
            proves=proved,
            accountant=ACCOUNTANTS[self.noise],
            notes=tuple(notes),
            details={
                "batches": float(m),
                "batch_size": float(b),
                "recursion_sensitivity": tight,
                "total_step": float(self._steps(setting).sum()),
            },
        )

    def centre(self, problem: Problem, streams: Streams, monitor: Monitor = ignore) -> Floats:
        """(S, m) last iterates, each after its own permutation."""
        m, _, _ = balanced_batches(problem.n, self.batch_size)
        return minibatch_descent(problem, self._steps(problem.setting), m, permutations(streams, problem.n), monitor=monitor)

    def fit(self, training: Training) -> Fit:
        problem = training.problem
        visits = NoiseRecord(self.noise_enters, visits=np.full((1, 1, problem.n), float(self.passes)))
        if not np.ptp(training.lams):
            return release(training, self.centre(problem, training.streams, training.monitor), visits)
        (m, _, _), orders = balanced_batches(problem.n, self.batch_size), permutations(training.streams, problem.n)
        steps = np.stack([self._steps(each.setting) for each in training.of_budgets])
        centre = minibatch_descent(problem, steps, m, orders, lams=training.lams, monitor=training.monitor)
        return release(training, centre, visits, apart=True)

    def query(self, problem: Problem, theta: np.ndarray, streams: Streams) -> np.ndarray:
        return self.centre(problem, streams)
