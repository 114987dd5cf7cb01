"""Bassily, Smith and Thakurta's noisy SGD: n^2 steps on single rows as published, or accounted with Poisson batches."""

import math
from dataclasses import dataclass, replace

import numpy as np

from dpviz.common.random import generator, substreams
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Streams, Training, knob
from dpviz.mechanisms.gradient.noisy_sgd import Plan
from dpviz.mechanisms.gradient.poisson_sgd import PoissonSGD
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting import account
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated, Sampled
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.individual import IndividualEpsilon

FAITHFUL_ROWS = 1_000
_CHUNK = 1024  # steps drawn at once


def published_sigma(budget: Budget, n: int, bound: float) -> float:
    """Noise on n grad l of one row: sigma^2 = 32 G^2 n^2 ln(n/delta) ln(1/delta)/eps^2 (Bassily et al. 2014, Algorithm 1)."""
    return bound * n * math.sqrt(32 * math.log(n / budget.delta) * math.log(1 / budget.delta)) / budget.epsilon


@dataclass(frozen=True)
class BassilySGD(PoissonSGD):
    """theta <- Pi(theta - eta_t (n grad l(theta; z) + n lam theta + b_t)), b_t Gaussian; n^2 steps, or Poisson batches."""

    id = "bassily-sgd"
    label = "Bassily SGD"
    citation = "Bassily, Smith, Thakurta, FOCS 2014, Algorithm 1, Theorems 2.1 and 2.4"
    noise_enters = (
        "The gradient of every step: of one drawn row (published form) or of a Poisson batch (accounted form). "
        "A row counts as receiving noise in the steps that use it alone."
    )
    guarantee = (
        "(ε, δ)-DP, proved by composition of the subsampled steps; at usual ε the published noise is far more than needed."
    )
    rate = r"O\!\left(\frac{G^2 p\log^2(n/\delta)\log(1/\delta)}{n\Delta\varepsilon^2}\right)"

    mode: str = knob(
        "accounted",
        "Mode",
        f"faithful: n² steps on single rows, at most {FAITHFUL_ROWS:,} rows; accounted: Poisson batches.",
        options=("accounted", "faithful"),
    )
    rule: str = knob(
        "convex", "Step rule", "convex: |C|/√(t(G²+dσ²)); strongly-convex: 1/(λt).", options=("convex", "strongly-convex")
    )
    radius: float = knob(
        0.0, "Radius", "Iterates are projected to the ball of this radius.", low=0.1, high=1000.0, log=True, automatic=rules.REACH
    )

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        return rules.reach(setting)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        if self.rule == "strongly-convex" and setting.mu <= 0:
            raise InvalidInput("rule", f"{setting.model!r} is not strongly convex", 'Choose rule "convex".')
        if self.mode == "accounted":
            base = super().calibrate(setting, budget)
            note = "Step rule and projection are the published ones; batches, noise and number of steps (published: n²) are not."
            return replace(base, notes=(*base.notes, note))
        n = setting.n
        if n > FAITHFUL_ROWS:
            raise InvalidInput(
                "mode",
                f"the published method makes n² = {n * n:,} steps one after the other",
                f'Choose mode "accounted", or at most {FAITHFUL_ROWS:,} training rows.',
            )
        if self.relation != Neighbouring.REPLACE_ONE.value:
            raise InvalidInput("relation", "the published method is defined for replace-one", 'Choose "replace-one".')
        budget.need_delta()
        bound = self.bound(setting)
        sigma = published_sigma(budget, n, bound)
        z = sigma / (n * bound)
        method = account.Method("pld", Neighbouring.REPLACE_ONE)
        reached = account.epsilon(_on_single_rows(n, Gaussian.of_rows(1.0, z)), method, budget.delta)
        return Calibration.proved(
            budget,
            sensitivity=2 * n * bound,
            query="n times the gradient of the row drawn",
            sensitivity_source="one replaced row moves n grad l by at most 2 n min(C, G), in the steps that draw it",
            noise_scale=sigma,
            proves=Budget(max(reached, 1e-9), budget.delta),
            accountant=account.describe(method),
            conversion="δ(ε) of n² steps on one uniformly drawn row each (Balle, Barthe, Gaboardi 2018, Theorem 9)",
            notes=(
                f"With all constants the steps together are proved at ε = {reached:.3g}: the published noise is "
                + (
                    "far more than the budget needs."
                    if reached < budget.epsilon
                    else "too little, as its proof is for small ε only."
                ),
                "Every step is on one row, with a draw of noise of its own.",
            ),
            details={"noise_multiplier": z, "sampling_rate": 1 / n, "steps": float(n * n), "mean_batch": 1.0},
        )

    def step_count(self, setting: Setting) -> int:
        return super().step_count(setting) if self.mode == "accounted" else setting.n**2

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        if self.mode == "accounted":
            return super().released_event(setting, calibration)
        n = setting.n
        return _on_single_rows(n, Gaussian.of_rows(n * self.bound(setting), calibration.noise_scale))

    def releases(self, setting: Setting) -> Event | None:
        return super().releases(setting) if self.mode == "accounted" else None

    def step_sizes(self, setting: Setting, sigma: Floats, steps: int) -> Floats:
        """(E, T) step sizes on the mean objective, n times those on the sum.

        Args:
            sigma: (E,) noise per coordinate on the mean gradient.
        """
        t = np.arange(1, steps + 1)
        if self.rule == "strongly-convex":
            published = 1 / (setting.lam * t)  # Theorem 2.4: 1/(n Delta t) on the sum, with Delta = lam
            # a few hundred steps do not make up for the first ones, so here they are kept to what is stable without noise
            longest = np.inf if self.mode == "faithful" else setting.unit_step
            return np.broadcast_to(np.minimum(published, longest), (len(sigma), steps))
        bound = self.bound(setting)
        noise = bound**2 + setting.m * sigma[:, None] ** 2  # Theorem 2.1: |C| = 2 radius
        return 2 * self.value("radius", setting) / np.sqrt(t * noise)

    def plan(self, training: Training) -> Plan:
        setting = training.problem.setting
        step_sizes = self.step_sizes(setting, training.scales, self.step_count(setting))
        return self.batch_plan(training.problem, step_sizes, radius=self.value("radius", setting))

    def fit(self, training: Training) -> Fit:
        if self.mode == "accounted":
            return super().fit(training)
        problem, streams = training.problem, training.streams
        n, m, e, s = problem.n, problem.m, len(training.calibrations), len(streams)
        sigma = training.scales / n
        step_sizes = self.step_sizes(problem.setting, sigma, n * n)
        pairs = [[generator(part) for part in substreams(stream, 2)] for stream in streams]
        theta = np.tile(problem.model.initial(m, streams), (e, 1))
        own = np.tile(np.eye(s), (1, e))  # replica (e, s) uses row s of the step's batch
        visits, strength = np.zeros((s, n)), np.zeros((s, n))
        every, radius = np.arange(s), self.value("radius", problem.setting)
        for start in range(0, n * n, _CHUNK):
            training.monitor(start / (n * n))
            size = min(_CHUNK, n * n - start)
            drawn = np.stack([sampling.integers(n, size=size) for sampling, _ in pairs])
            draws = np.stack([noise.standard_normal((size, m)) for _, noise in pairs])
            for k in range(size):
                batch = problem.rows.batch(drawn[:, k])
                gradient = problem.model.sum_gradient(theta, batch, clip_norm=self.clip(problem.setting), weights=own)
                direction = (gradient + problem.lam * theta).reshape(e, s, m) + sigma[:, None, None] * draws[:, k]
                theta -= (step_sizes[:, start + k, None, None] * direction).reshape(e * s, m)
                theta *= radius / np.maximum(np.sqrt(np.einsum("ij,ij->i", theta, theta)), radius)[:, None]
            if training.record:
                for r in every:
                    visits[r] += np.bincount(drawn[r], minlength=n)
                    strength[r] += np.bincount(drawn[r], np.linalg.norm(draws[r], axis=1), minlength=n)
        if not training.record:
            return Fit(theta.reshape(e, s, m), NoiseRecord(self.noise_enters))
        noisy = (sigma > 0)[:, None, None]
        return Fit(
            theta.reshape(e, s, m),
            NoiseRecord(
                self.noise_enters,
                visits=visits[None],
                times_noised=visits[None] * noisy,
                noise_norm=training.scales[:, None, None] * strength[None],
            ),
        )

    def individual(
        self, problem: Problem, calibration: Calibration, theta: Floats, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        # the published form draws one row a step: that is not a Poisson batch
        return super().individual(problem, calibration, theta, record) if self.mode == "accounted" else None

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        if self.mode == "accounted":
            return super().query(problem, theta, streams)
        drawn = (generator(substreams(stream, 2)[0]).integers(problem.n, size=1) for stream in streams)
        return problem.n * self.sums_over(problem, theta, drawn)


def _on_single_rows(n: int, one: Gaussian) -> Event:
    """n^2 steps on one uniformly drawn row each."""
    return Repeated(Sampled(one, 1 / n, "without-replacement"), n * n)
