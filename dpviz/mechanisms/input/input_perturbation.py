"""Input perturbation of Kang et al.: noise on the features once, then plain gradient descent."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dpviz.common.progress import Monitor
from dpviz.common.threads import THREADS_FROM, map_streams
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import rules
from dpviz.mechanisms.all_rows import AllRows, precision
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Training, knob
from dpviz.mechanisms.calibration import BOUNDED_ROWS, PUBLIC_N, SINGLE_PRECISION, StepSize
from dpviz.mechanisms.capabilities import CountsSteps, HasWorstPair, NoisesRows
from dpviz.mechanisms.input.row_noise import (
    AT_ONCE,
    BY_NOISE,
    LABELS,
    ONCE,
    QUERY,
    noisy_rows_step,
    once_record,
    opposed_pair,
    row_draws,
    same_label_facts,
    same_label_note,
    steps_knob,
)
from dpviz.mechanisms.knobs import step_size_knob
from dpviz.mechanisms.published import INFINITE, gradient_bound_knob, nominal_gradient_bound, open_constant_knob, unbounded_note
from dpviz.models import Ability, Setting
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget
from dpviz.privacy.published_noise import input_perturbation_sigma

_TOGETHER, _MOST_TOGETHER = 2, 10  # seeds trained in one computation, and where threads share the rows of small tables
_ENTRIES = 1 << 26  # of noise in such a computation
_USUAL_STEPS, _NETWORK_STEPS = 100, 400
_AT_BUDGET = Budget(2.0, 1e-5)  # the number of steps suits this budget


@dataclass(frozen=True)
class InputPerturbation(NoisesRows, HasWorstPair, CountsSteps):
    """x_i <- x_i + z, z ~ N(0, sigma^2 I), once; then T steps of gradient descent on the perturbed rows (Algorithm 1).

    Labels stay. The constant feature, where there is one, is a feature like any other. Nothing is clipped.
    """

    id = "input-perturbation"
    open_constant = "c"
    joins_lams = True
    label = "Input perturbation (Kang)"
    family = "input"
    needs = frozenset({Ability.FEATURE_NOISE})
    citation = (
        'Kang, Liu, Niu, Tong, Zhang, Wang, "Input Perturbation: A New Paradigm between Central and Local Differential '
        'Privacy", Algorithm 1, Theorems 1 to 4'
    )
    noise_enters = "The features of every training row, once, before training; labels stay as they are."
    guarantee = "Claimed to be (ε, δ)-DP; the proof does not hold, and no proof covers a changed label."
    supposes = (BOUNDED_ROWS, PUBLIC_N, SINGLE_PRECISION)
    rate = r"O\!\left(\frac{\alpha(2LD+G)G^3 d\log^2 n\,\log(1/\delta)}{n(n-1)\sqrt{\Delta}\,\varepsilon^2}\right)"

    steps: int = steps_knob(
        "Gradient steps on the perturbed rows",
        "100 to 200 (network: 400), as many as the noise of ε = 2 lets train; fewer where λ is large",
    )
    step_size: float = step_size_knob("Size of a step.", BY_NOISE)
    sharing: str = knob(
        "per-record",
        "Noise draw",
        "One draw for each row, as the text says, or one draw for all rows, as the proof needs.",
        options=("per-record", "shared"),
    )
    theorem: str = knob(
        "automatic",
        "Noise formula",
        "Theorem 1 (strongly convex) or Theorem 3 (PL); automatic takes Theorem 1 where the objective is strongly convex.",
        options=("automatic", "strongly-convex", "pl"),
    )
    c: float = open_constant_knob()
    lipschitz: float = gradient_bound_knob()

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        if knob == "steps":
            return self._steps(setting)
        return self._step_size(setting, 0.0 if budget is None else self._sigma(setting, budget))

    def automatic_lam(self, setting: Setting, budget: Budget) -> float:
        if not setting.linear:
            return setting.lam
        # at unit slopes the rows' noise adds up to a random linear term in the sum, the same in every step
        rows = setting.n if self.sharing == "shared" else math.sqrt(setting.n)
        return rules.against_objective_noise(setting, rows * self.calibrate(setting, budget).rms_noise(setting.m))

    def _step_size(self, setting: Setting, sigma: float) -> float:
        """Step size in units of 1/L, as set or by the rule for this noise."""
        # the noise of a row is the same in every step: that on the mean gradient adds up over the steps
        steps, spread = self.step_count(setting), sigma if self.sharing == "shared" else sigma / math.sqrt(setting.n)
        return self.step_size or noisy_rows_step(setting, steps, sigma, spread * math.sqrt(steps), setting.n)

    def _steps(self, setting: Setting) -> int:
        """Steps that give the longest training time.

        The longest steps allow T eta; the noise grows with the root of T, so that the time it allows falls with T. All
        budgets take the same number of steps: that for epsilon = 2. A network takes more, shorter steps: at the end of
        long ones it goes to and fro between the majority label and better models.
        """
        if not setting.linear:
            return _NETWORK_STEPS
        most = rules.full_steps(setting)
        time = []
        tried = np.unique(np.geomspace(min(_USUAL_STEPS, most), most, 9).round()).tolist()
        for steps in tried:
            sized = replace(self, steps=round(steps), step_size=0.0)
            size = sized._step_size(setting, sized._sigma(setting, _AT_BUDGET))
            time.append(steps * size)
        return round(tried[int(np.argmax(time))])

    def _convex(self, setting: Setting) -> bool:
        return setting.mu > 0 if self.theorem == "automatic" else self.theorem == "strongly-convex"

    def _sigma(self, setting: Setting, budget: Budget) -> float:
        return input_perturbation_sigma(
            setting.n,
            self.step_count(setting),
            budget.epsilon,
            budget.delta,
            c=self.c,
            lipschitz=nominal_gradient_bound(setting, self.lipschitz),
            strong_convexity=setting.mu if self._convex(setting) else None,
        )

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        convex = self._convex(setting)
        if convex and setting.mu <= 0:
            raise InvalidInput("theorem", f"{setting.model!r} is not strongly convex, so Theorem 1 has no Δ", "Choose 'pl'.")
        budget.need_delta(*INFINITE)
        sigma = self._sigma(setting, budget)
        details = {"strong_convexity": setting.mu if convex else float("nan"), "steps": float(self.step_count(setting))}
        notes: list[str] = [ONCE]
        if self.sharing == "shared":
            notes.append("One draw for all rows leaves every difference of two rows visible in the perturbed data.")
        else:
            facts = same_label_facts(sigma, budget.delta)
            details |= facts
            notes += [
                "With one draw per row the noise on the mean gradient has n times less variance than the proof uses.",
                same_label_note(facts, budget.delta),
            ]
        notes += [
            "The proof bounds the mean of the signed slopes from below; it is 0 for data that is symmetric, where the noise "
            "does not reach the gradient that way at all.",
            LABELS,
            f"The publication leaves c open; here c = {self.c:g}.",
            *unbounded_note(setting, self.lipschitz),
        ]
        return Calibration.claimed(
            budget,
            query=QUERY,
            sensitivity_source="the proof bounds a gradient difference by 2G/n, which does not hold for perturbed rows",
            noise_scale=sigma,
            accountant=f"the publication's moments argument, eq. ({'9' if convex else '12'}), with c = {self.c:g}",
            notes=tuple(notes),
            for_training=StepSize(self._step_size(setting, sigma)),
            details=details,
        )

    def fit(self, training: Training) -> Fit:
        problem, streams = training.problem, training.streams
        n, sigma = problem.n, training.scales
        start, own = problem.model.initial(problem.m, streams), self._draw_shape(problem)
        steps = np.array([self.step_count(each.setting) for each in training.of_budgets])
        step, lam = training.step_sizes[:, None], training.lams[:, None]
        kind = precision(problem.setting)
        problem.model.prepare(problem.rows, kind)
        # seeds train together, so that the rows without noise, which they share, are read once for all
        shared = AllRows.shares_rows(problem, _TOGETHER * len(sigma))  # whether threads share the rows, and not the seeds
        together = max(_TOGETHER, min(_MOST_TOGETHER, _ENTRIES // problem.rows.X.size)) if shared else _TOGETHER
        parts = [slice(s, min(s + together, len(streams))) for s in range(0, len(streams), together)]

        def work(g: int, tick: Monitor) -> tuple[Floats, Floats]:
            mine = streams[parts[g]]
            current = np.repeat(start[parts[g]][:, None], len(sigma), axis=1)
            with AllRows(problem, len(mine) * len(sigma)) as rows:
                draws = rows.each(lambda s: row_draws(mine[s], *own), len(mine))  # Algorithm 1, lines 2 to 4
                for first, last in pairwise([0, *np.unique(steps).tolist()]):
                    left = steps >= last  # budgets with fewer steps have ended
                    gradient_at = rows.noisy_gradients(draws, np.tile(sigma[left], len(mine)))
                    for t in range(first, last):
                        tick(t / steps.max())
                        at = current[:, left]
                        # line 7, whose 1/n sum of the gradient of a mean divides by n twice; eq. (14) divides once, as here
                        gradient = gradient_at(at.reshape(-1, problem.m)).reshape(at.shape) / n
                        current[:, left] = at - step[left] * (gradient + lam[left] * at)
            return current, np.array([np.sqrt(np.einsum("ij,ij->i", draw, draw)) for draw in draws if training.record])

        heavy = n * problem.m * len(sigma) >= THREADS_FROM
        most = 1 if shared else AT_ONCE // _TOGETHER
        trained, draw_norms = zip(*map_streams(work, len(parts), training.monitor, parallel=heavy, most=most), strict=True)
        theta = np.ascontiguousarray(np.concatenate(trained).transpose(1, 0, 2))
        visits = np.broadcast_to(steps[:, None, None].astype(float), (len(steps), 1, n))
        return Fit(
            theta,
            once_record(self.noise_enters, sigma, n, visits, np.concatenate(draw_norms))
            if training.record
            else NoiseRecord(self.noise_enters),
        )

    def _draw_shape(self, problem: Problem) -> tuple[int, int]:
        n, d = problem.rows.X.shape
        return (n if self.sharing == "per-record" else 1), d

    worst_pair = staticmethod(opposed_pair)

    def noisy_rows(self, problem: Problem, calibration: Calibration, stream: np.random.SeedSequence) -> Floats:
        return problem.rows.X + calibration.noise_scale * row_draws(stream, *self._draw_shape(problem))
