"""Variance-reduced SGD: a full gradient now and then, and in between only how far gradients have moved since."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.common.digits import three
from dpviz.common.progress import Monitor
from dpviz.common.random import BatchIndices, generator, lockstep, poisson_batches, substreams
from dpviz.common.threads import groups, map_streams, processors
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import rules
from dpviz.mechanisms.all_rows import precision, rounding
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Training, knob
from dpviz.mechanisms.calibration import StepSize
from dpviz.mechanisms.capabilities import DeclaresEvent, IndividualBudget, ProtectsQuery
from dpviz.mechanisms.gradient.clip_count import ClipCount, ClipsRows
from dpviz.mechanisms.individual import path_epsilon, room_for_path
from dpviz.mechanisms.knobs import clip_norm_knob, relation_knob, step_size_knob
from dpviz.mechanisms.published import open_constant_knob
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.models.products import uses_kernels
from dpviz.privacy.accounting import account, rdp
from dpviz.privacy.accounting.events import Composed, Event, Gaussian, Repeated, Sampled, steps_of
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.individual import IndividualEpsilon, PoissonPath
from dpviz.privacy.search import smallest

MOST_STEPS = 200_000
_ROUNDING = 1e-8  # of the clip norm: well above the rounding of a difference of two sums


@dataclass(frozen=True)
class Multipliers(StepSize):
    """Step size and noise multipliers of the accounted form.

    Attributes:
        noise_multiplier_full: z1, of a full gradient, in units of the clip norm.
        noise_multiplier_inner: z2, of an inner step, in units of C_t.
    """

    noise_multiplier_full: float
    noise_multiplier_inner: float


@dataclass(frozen=True)
class DPSVRG(ClipsRows, ProtectsQuery, DeclaresEvent, IndividualBudget):
    """T rounds: a noisy full gradient v at a snapshot w, then m steps x <- prox(x - eta (noisy difference + v)).

    Accounted form [ours]. v = (1/n)(sum clip g_i(w) + N(0, z1^2 C^2 I)). An inner step takes a Poisson batch and adds
    N(0, z2^2 C_t^2 I) to the sum of clip g_i(x) - clip g_i(w), divided by the public qn. Clipping to norm C moves no
    two vectors apart, so a row adds at most C_t = min(2C, beta |x - w|), which is computed from public iterates and
    needs no further clipping: near the snapshot a step costs hardly any noise. All noise multipliers are fixed in
    advance, so the run is T Gaussian and T m subsampled Gaussian mechanisms, however C_t moves.
    """

    id = "dp-svrg"
    open_constant = "c"
    label = "DP-SVRG"
    citation = (
        "Wang, Ye, Xu, NIPS 2017, Algorithm 1 and Theorems 4.1, 4.2 (published form); "
        "accounting: Mironov, Talwar, Zhang 2019 and Canonne, Kamath, Steinke 2020"
    )
    noise_enters = (
        "Every full gradient at a snapshot, and every inner step's difference of gradients. No noise is added to single rows."
    )
    guarantee = (
        "(ε, δ)-DP, proved, in the accounted form; the published form is a claim, because its theorem holds for no usual ε."
    )
    rate = r"O\!\left(\frac{G^2 p\log n\,\log(1/\delta)}{n^2\lambda\varepsilon^2}\right)"

    published_form: ClassVar = {"noise": "published"}

    rounds: int = knob(20, "Rounds", "Full gradients.", low=1, high=1000, log=True)
    inner_steps: int = knob(10, "Inner steps", "Steps between two full gradients.", low=1, high=100_000, log=True)
    sampling_rate: float = knob(
        0.1, "Sampling rate", "Probability that a row is in an inner step's batch (accounted form).", low=1e-4, high=1.0, log=True
    )
    share: float = knob(
        0.5, "Share of full gradients", "Part of the budget that goes to the full gradients.", low=0.01, high=0.99
    )
    step_size: float = step_size_knob("Size of a step.", rules.STEP_SIZE)
    clip_norm: float = clip_norm_knob(0.0, rules.CLIP_NORM)
    snapshot: str = knob(
        "last",
        "Snapshot",
        "Start of the next round: the last iterate of this one, or the mean of all (as published).",
        options=("average", "last"),
    )
    noise: str = knob(
        "accounted",
        "Noise",
        "Accounted with all constants, or the published formula with its open constant c.",
        options=("accounted", "published"),
    )
    c: float = open_constant_knob(" (published noise only)", high=100.0)
    relation: str = relation_knob("replace-one moves a sum twice as far, and needs more noise.")

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        if budget is None:
            return self._step_size(setting, 0.0)
        return self.calibrate(setting, budget).values(StepSize).step_size

    def _step_size(self, setting: Setting, sigma: float) -> float:
        """Step size in units of 1/L, as set or by the rule for noise `sigma` on a full gradient or, if published, on a step."""
        steps = self.rounds * self.inner_steps
        if self.step_size:
            return self.step_size
        if self.noise == "published":
            return min(1.0, rules.step_size(setting, steps, sigma))  # its inner steps are on single rows
        # the noise of a full gradient is the same in all inner steps of a round
        return rules.step_size(setting, steps, sigma * math.sqrt(self.inner_steps), clip=self.clip(setting))

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        if self.rounds * self.inner_steps > MOST_STEPS:
            raise InvalidInput(
                "inner_steps",
                f"{self.rounds} rounds of {self.inner_steps} steps are {self.rounds * self.inner_steps:,} steps",
                f"At most {MOST_STEPS:,} steps: lower the rounds or the inner steps.",
            )
        return self._accounted(setting, budget) if self.noise == "accounted" else self._published(setting, budget)

    def _accounted(self, setting: Setting, budget: Budget) -> Calibration:
        bound = self.bound(setting)
        replace_one = self.relation == Neighbouring.REPLACE_ONE
        z1, z2 = self.noise_multipliers(budget)
        step_size = self._step_size(setting, z1 * bound / setting.n)
        return Calibration.proved(
            budget,
            sensitivity=(2 if replace_one else 1) * bound / setting.n,
            query="the mean gradient at a snapshot",
            sensitivity_source=f"a row contributes at most min(C, G)/n{', a replaced one twice that' if replace_one else ''}",
            noise_scale=z1 * bound / setting.n,
            neighbouring=Neighbouring(self.relation),
            accountant="Rényi DP of T full and T m Poisson-subsampled Gaussians",
            conversion="Canonne, Kamath, Steinke 2020",
            notes=(
                *rounding(setting),
                "The published form draws one row per inner step and adds its noise there; see the noise knob.",
                "Noise of an inner step follows |x − w|, the public distance to the snapshot, and is 0 at the snapshot itself.",
                "Every iterate may be published.",
            ),
            for_training=Multipliers(step_size, z1, z2),
            details={"sampling_rate": self.sampling_rate, "steps": float(self.rounds * self.inner_steps)},
        )

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        return self._of_row(setting, calibration)

    def _of_row(self, setting: Setting, calibration: Calibration) -> Event | None:
        """The released event, in units of the contribution of one row."""
        if self.noise != "accounted" or calibration.noise_scale <= 0:
            return None
        z1 = calibration.noise_scale * setting.n / self.bound(setting)
        declared = calibration.values(Multipliers)
        z2 = z1 * declared.noise_multiplier_inner / declared.noise_multiplier_full
        return self.noisy_sums(z1, z2)

    def noisy_sums(self, z1: float, z2: float) -> Event:
        """All releases of an accounted run, by their noise multipliers: full gradients, then inner steps."""
        inner = Sampled(Gaussian.of_rows(1.0, z2), self.sampling_rate)
        return Composed((Repeated(Gaussian.of_rows(1.0, z1), self.rounds), Repeated(inner, self.rounds * self.inner_steps)))

    def _multipliers(self, setting: Setting, calibration: Calibration) -> tuple[float, float]:
        """Noise multipliers of a full gradient and of an inner step, of what is released; (1, 0) where that is not stated."""
        event = self._of_row(setting, calibration)
        if event is None:
            return 1.0, 0.0
        full, *inner = [step.event.noise_multiplier for step in steps_of(event) if isinstance(step.event, Gaussian)]
        return full, inner[0] if inner else full  # equal ones are one step where every row is in every batch

    def log_delta(self, z1: float, z2: float, epsilon: float) -> float:
        """ln delta of the accounted run at epsilon, under the chosen relation."""
        return account.log_delta(self.noisy_sums(z1, z2), account.Method("rdp", Neighbouring(self.relation)), epsilon)

    def noise_multipliers(self, budget: Budget) -> tuple[float, float]:
        """(z1, z2) that meet the budget. In the central limit, full gradients and inner steps split mu^2 by `share`."""
        budget.need_delta()
        target = math.log(budget.delta)
        per_step = self.rounds * self.inner_steps * self.sampling_rate**2

        def multipliers(variance: float) -> tuple[float, float]:
            square = 1 / variance
            # mu^2 = T/z1^2, and q^2 T m (e^(1/z2^2) - 1) (Bu, Dong, Long, Su 2020, Corollary 5)
            z1 = math.sqrt(self.rounds / (self.share * square))
            return z1, 1 / math.sqrt(math.log1p((1 - self.share) * square / per_step))

        def excess(variance: float) -> float:
            return self.log_delta(*multipliers(variance), budget.epsilon) - target

        # even without any divergence the largest order may not reach this delta
        cause = f"RDP up to order {max(rdp.ORDERS):,} proves no epsilon as small at delta = {budget.delta:.2g}"
        refusal = InvalidInput("epsilon", cause, "Choose a larger epsilon or delta, or another method.")
        return multipliers(smallest(excess, 0.0, tolerance=1e-10, limits=(1e-40, 1e40), refusal=refusal))

    def _published(self, setting: Setting, budget: Budget) -> Calibration:
        bound, steps, n = self.bound(setting), self.rounds * self.inner_steps, setting.n
        budget.need_delta()
        # Wang, Ye, Xu 2017, Theorem 4.1: sigma^2 = c G^2 T m ln(1/delta)/(n^2 eps^2), for eps <= c1 T m/n^2
        sigma = bound * math.sqrt(self.c * steps * math.log(1 / budget.delta)) / (n * budget.epsilon)
        drawn = -math.expm1(steps * math.log1p(-1 / n))
        undrawn = float(gaussian_epsilon(budget.delta, math.sqrt(steps) * 2 * bound / (n * sigma)))
        return Calibration.claimed(
            budget,
            sensitivity=2 * bound / n,
            query="the mean gradient at a snapshot",
            sensitivity_source="one replaced row moves the mean of clipped gradients by at most 2 min(C, G)/n",
            noise_scale=sigma,
            accountant="none: the publication's moments bound with open constants c and c1",
            notes=(
                f"Theorem 4.1 holds for ε ≤ c1 T m/n² = c1 · {steps / n**2:.2g}, which no useful ε meets, and leaves c open.",
                f"In the step in which a row is drawn it moves the parameters by up to min(2G, β|x − w|) times the step, against "
                f"noise of {sigma:.2g}; the noise is sized for the 2G/n = {2 * bound / n:.2g} that it moves the mean by.",
                f"What can be proved [ours]: a row is never drawn with chance 1 − {drawn:.3g}, and then the steps are "
                f"{Budget(undrawn, budget.delta)}-DP; so the run is (ε = {three(undrawn)}, δ = "
                f"{three(min(1.0, drawn + budget.delta))})-DP, which means nothing where that δ is not far below "
                f"1/n = {1 / n:.2g}.",
            ),
            for_training=StepSize(self._step_size(setting, sigma)),
            details={
                "chance_of_being_drawn": drawn,
                "epsilon_if_never_drawn": undrawn,
                "largest_epsilon_over_c1": steps / n**2,
                "steps": float(steps),
            },
        )

    def fit(self, training: Training) -> Fit:
        problem, seeds, record = training.problem, len(training.streams), training.record
        visits = np.zeros((1, seeds, problem.n), np.int32) if record else None
        problem.model.prepare(problem.rows)
        clips = [
            ClipCount(problem.setting, self.clip(problem.setting), len(training.calibrations))
            for _ in range(seeds if record else 0)
        ]
        keep = record and self.noise == "accounted"
        path = room_for_path(training, self.rounds * self.inner_steps) if keep else None

        heavy = problem.n * len(training.calibrations) * problem.m >= 1_000_000 and self.noise == "accounted"
        # one seed at a time where it is recorded; the bits of a seed do not depend on the others
        parts = groups(seeds, seeds if record else processors() if heavy else 1)

        def work(g: int, tick: Monitor) -> Floats:
            s = parts[g].start
            counts = visits[0, s] if visits is not None else None
            here = path[:, s] if path is not None and s < path.shape[1] else None
            return self._train(training, parts[g], counts, here, clips[s] if clips else None, tick)

        trained = np.concatenate(map_streams(work, len(parts), training.monitor, parallel=heavy))
        looks = np.full((len(training.calibrations), problem.n), float(self.rounds))  # those at the snapshots
        clipped = np.stack([count.share(looks) for count in clips], axis=1) if clips else None
        theta = np.ascontiguousarray(trained.transpose(1, 0, 2))
        return Fit(theta, NoiseRecord(self.noise_enters, visits=visits, clipped=clipped, path=path))

    def individual(
        self, problem: Problem, calibration: Calibration, theta: Floats, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        if record.path is None or calibration.noise_scale <= 0:
            return None
        bound, linear = self.bound(problem.setting), problem.setting.linear
        z1, z2 = self._multipliers(problem.setting, calibration)
        full, inner = (PoissonPath(Sampled(Gaussian.of_rows(1.0, z), rate)) for z, rate in ((z1, 1.0), (z2, self.sampling_rate)))

        def divergence(norms: Floats, path: Floats) -> Floats:
            clipped = np.minimum(norms, bound).reshape(len(norms), self.rounds, self.inner_steps)
            anchor, later = clipped[:, :, :1], clipped[:, :, 1:]
            points = path.reshape(self.rounds, self.inner_steps, -1)
            limit = np.stack([self._limit(problem, p[1:], p[:1]) for p in points])
            # a linear model's gradients of one row share a direction; others differ by the sum of their norms at most
            moved = np.abs(later - anchor) if linear else later + anchor
            shares = np.minimum(moved / limit, 1.0).reshape(len(norms), self.rounds * (self.inner_steps - 1))
            return full.divergence(anchor[:, :, 0] / bound) + inner.divergence(shares)

        worst = account.epsilon(self.noisy_sums(z1, z2), account.Method("rdp"), calibration.budget.delta)
        return path_epsilon(problem, calibration, record.path, len(theta), divergence, worst)

    def _train(
        self,
        training: Training,
        group: slice,
        counts: np.ndarray | None,
        path: Floats | None,
        clips: ClipCount | None,
        tick: Monitor,
    ) -> Floats:
        """(S, E, m): some seeds, one where its training is recorded, at all budgets, which share batches and standard draws."""
        problem, calibrations, scale = training.problem, training.calibrations, training.scales
        n, m, accounted = problem.n, problem.m, self.noise == "accounted"
        bound, kind = self.bound(problem.setting), precision(problem.setting)
        # kernels give a replica the same bits beside any others; products of dense blocks may not
        at_once = problem.setting.linear and uses_kernels(problem.rows)
        starts, sampling, noise = zip(*(substreams(stream, 3) for stream in training.streams[group]), strict=True)
        choose, draws = ([generator(stream) for stream in streams] for streams in (sampling, noise))
        batch = lockstep(poisson_batches(len(problem.rows), self.sampling_rate), choose)
        divisor = self.sampling_rate * n if accounted else 1.0
        # noise of an inner step in units of C_t/(qn), as a multiple of the noise scale, so that 0 switches it off
        multipliers = [self._multipliers(problem.setting, c) for c in calibrations]
        inner = scale * np.array([z2 / z1 for z1, z2 in multipliers]) * n / bound
        step = training.step_sizes[:, None]
        x = np.repeat(problem.model.initial(m, starts)[:, None], len(scale), axis=1)

        for t in range(self.rounds):
            anchor = x.copy()
            rule = None if clips is None else clips.rule()
            sums = [
                problem.model.sum_gradient(at, problem.rows, clip_norm=self.clip(problem.setting), rule=rule)
                for at in (anchor.reshape(1, -1, m) if at_once else anchor).astype(kind, copy=False)
            ]
            full = np.reshape(sums, x.shape) / n
            if accounted:
                full += scale[:, None] * np.stack([rng.standard_normal(m) for rng in draws])[:, None]
            if counts is not None:
                counts += 1
            mean = np.zeros_like(x)
            for k in range(self.inner_steps):
                tick((t + k / self.inner_steps) / self.rounds)
                if path is not None:
                    path[:, t * self.inner_steps + k] = x[0]
                # the published form draws one row uniformly
                index = batch(k) if accounted else BatchIndices.join([rng.integers(n, size=1) for rng in choose])
                if counts is not None:
                    counts[index[0]] += 1
                # at the snapshot itself nothing has moved
                moved = self._difference(problem, x, anchor, index) / divisor if k > 0 else np.zeros_like(x)
                if accounted:
                    deviation = inner * self._limit(problem, x, anchor) / divisor
                else:
                    deviation = scale
                moved += full + deviation[..., None] * np.stack([rng.standard_normal(m) for rng in draws])[:, None]
                # prox of eta lam/2 |x|^2 (Wang, Ye, Xu 2017, Algorithm 1): the regulariser is public
                x = (x - step * moved) / (1 + step * problem.lam)
                mean += (x - mean) / (k + 1)
            x = mean if self.snapshot == "average" else x
        return x

    def _limit(self, problem: Problem, x: Floats, anchor: Floats) -> Floats:
        """(..., E) C_t, the most that a row adds to the sum of differences."""
        bound = self.bound(problem.setting)
        moved = np.linalg.norm(x - anchor, axis=-1)
        # 0 x inf would be NaN; rounding is covered by a floor
        smooth = problem.setting.beta * np.maximum(moved, 1e-300)
        return np.clip(smooth, _ROUNDING * bound, 2 * bound)

    def _difference(self, problem: Problem, x: Floats, anchor: Floats, batches: BatchIndices) -> Floats:
        """(S, E, m) sums over a batch for each seed of clip g_i(x) - clip g_i(anchor)."""
        # in double: near the snapshot the noise is far smaller than the rounding of sums in single precision
        at = np.concatenate([x, anchor], axis=1)
        both = problem.model.sum_batches(at, problem.rows, batches, clip_norm=self.clip(problem.setting))
        return both[:, : x.shape[1]] - both[:, x.shape[1] :]
