"""Data-perturbation-based ERM of Kang et al., Algorithm 1: noise on the features once, then mini-batch descent."""

import math
from dataclasses import dataclass

import numpy as np

from dpviz.common.progress import Monitor
from dpviz.common.random import generator, substreams
from dpviz.common.threads import THREADS_FROM, groups, map_streams, processors
from dpviz.mechanisms import rules
from dpviz.mechanisms.all_rows import precision
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
from dpviz.models import Ability, Setting, feature_noise_of
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget
from dpviz.privacy.published_noise import dbdp_sigma

_STEPS = (5, 7, 10, 14, 20, 28, 40, 56, 80, 113, 160, 200)
_ENTRIES = 1 << 25  # of noise that may be held at once, where that is more than for `AT_ONCE` seeds
_LAST = 2.0  # times the longest stable step that a step may be where iterates are averaged
#: mean curvature times the longest step, by trials on Adult, KDDCup99, synthetic censuses and the bundled sets
_CURVED = 0.95
_STEP: str = f"{BY_NOISE}; twice that where iterates are averaged"
_TABLE_1: str = (
    "Table 1 of the publication has n² in the variance where Theorem 1 leads to n: "
    "the table alone claims that this noise suffices."
)
_AT_BUDGET = Budget(2.0, 1e-5)  # for which a number of steps is shown where no budget is known


@dataclass(frozen=True)
class Descent(StepSize):
    """Step size and number of steps."""

    steps: int


@dataclass(frozen=True)
class DBDP(NoisesRows, HasWorstPair, CountsSteps):
    """x_i <- x_i + b, b ~ N(0, sigma^2 I), once; then T steps on random batches of perturbed rows (Algorithm 1).

    Theorem 1 asks for q of the same order as 1/|B| = 1/(qn), which makes q ~ n^(-1/2): the noise is about sqrt(n)
    times that of Kang's input perturbation, and not the n^(-2) variance of the paper's own Table 1.
    Training starts at the model's data-independent start, where line 2 says a random one; labels stay. The mean of the
    second half of the iterates is released, or the last one as published.
    """

    id = "dbdp"
    open_constant = "c"
    label = "DBDP-ERM"
    family = "input"
    needs = frozenset({Ability.FEATURE_NOISE})
    citation = (
        'Kang, Liu, Ding, Liu, Tong, Wang, "Differentially Private ERM Based on Data Perturbation", Algorithm 1 and Theorem 1'
    )
    noise_enters = "The features of every training row, once, before training; labels stay as they are."
    guarantee = "Claimed to be (ε, δ)-DP; the proof does not hold, and no proof covers a changed label."
    supposes = (BOUNDED_ROWS, PUBLIC_N, SINGLE_PRECISION)
    rate = r"O\!\left(\frac{m\,G^2\log(1/\delta)\log n}{n^2\varepsilon^2}\right)"

    steps: int = steps_knob("Mini-batch steps T", "as many as raise accuracy before the noise dominates, 5 to 200")
    step_size: float = step_size_knob("Size of a step.", _STEP)
    average: bool = knob(
        True,
        "Averaging",
        "Release the mean of the second half of the iterates, in which the choice of batches weighs less; off: the last "
        "iterate, as published. The published noise already counts every step, so averaging does not change it.",
    )
    batch: float = knob(
        1.0,
        "Batch size",
        "Rows in a batch; the theorem needs a size of order √n. The noise is proportional to it.",
        low=0.01,
        high=100.0,
        log=True,
        unit="√n",
    )
    noise: str = knob(
        "theorem-1",
        "Noise formula",
        "Theorem 1, or the variance that Table 1 gives for it, which is smaller by the square of the batch size.",
        options=("theorem-1", "table-1"),
    )
    c: float = open_constant_knob()
    lipschitz: float = gradient_bound_knob()

    def _q(self, n: int) -> float:
        return min(1.0, self.batch / math.sqrt(n))

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        if knob == "steps":
            return self._steps(setting, _AT_BUDGET if budget is None else budget)
        steps = int(self.value("steps", setting, budget))
        return self._step_size(setting, steps, 0.0 if budget is None else self._sigma(setting, budget, steps))

    def _steps(self, setting: Setting, budget: Budget) -> int:
        """The number of steps that moves the parameters farthest where the rows have no curvature of their own [ours].

        Noise of scale sigma on the rows is a regularisation of weight r = kappa sigma^2, where kappa is the mean curvature of
        the loss: below its bound as far as steps may be longer than that bound allows. After the time s = T eta such a direction
        has gone (1 - e^(-(lambda + r) s))/(lambda + r) times its gradient. As sigma^2 grows with T, few steps do not go far, and
        many are held back: without lambda and with steps of one size the farthest is where r s = 1.256, the root of
        e^u = 1 + 2u. Noise on the way only asks for fewer steps.
        """
        kappa = _CURVED / rules.longest_step(setting) * min(setting.beta, 1 / setting.unit_step)
        gone = []
        for steps in _STEPS:
            sigma = self._sigma(setting, budget, steps)
            time = steps * self._step_size(setting, steps, sigma) * setting.unit_step
            rate = setting.lam + kappa * sigma**2
            gone.append(-math.expm1(-rate * time) / rate)
        return _STEPS[gone.index(max(gone))]

    def _step_size(self, setting: Setting, steps: int, sigma: float) -> float:
        """Step size in units of 1/L, as set or by the rule for this noise."""
        size = self._batch_size(setting.n)
        longest = noisy_rows_step(setting, steps, sigma, sigma / math.sqrt(size), size)
        return self.step_size or longest * (_LAST if self.average and setting.linear else 1.0)

    def _sigma(self, setting: Setting, budget: Budget, steps: int) -> float:
        budget.need_delta(*INFINITE)
        lipschitz = nominal_gradient_bound(setting, self.lipschitz)
        # eq. (10); Table 1's variance G^2 T ln(1/delta)/(n^2 eps^2) is that with q = 1/n
        q = 1 / setting.n if self.noise == "table-1" else self._q(setting.n)
        return dbdp_sigma(q, steps, budget.epsilon, budget.delta, c=self.c, lipschitz=lipschitz)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        q, steps = self._q(setting.n), int(self.value("steps", setting, budget))
        sigma = self._sigma(setting, budget, steps)
        facts = same_label_facts(sigma, budget.delta)
        return Calibration.claimed(
            budget,
            query=QUERY,
            sensitivity_source="Theorem 1 argues through the gradient, whose noise it bounds from below by I·b",
            noise_scale=sigma,
            accountant=f"the publication's Table 1, with c = {self.c:g}"
            if self.noise == "table-1"
            else f"the publication's eq. (10), with c = {self.c:g} and q = {q:.3g}",
            notes=(
                *(() if self.noise == "theorem-1" else (_TABLE_1,)),
                ONCE,
                "The proof takes a first-order Taylor expansion as an equality, replaces a matrix by its norm, lets one draw b "
                "stand for all rows, and drops the infimum I from its bound.",
                "It uses Theorem 1 of Abadi et al. (2016), which needs fresh noise in every step and ε of order q²T at most.",
                same_label_note(facts, budget.delta),
                LABELS,
                f"The publication leaves c open; here c = {self.c:g}. Algorithm 1 also publishes the perturbed rows.",
                *unbounded_note(setting, self.lipschitz),
            ),
            for_training=Descent(self._step_size(setting, steps, sigma), steps),
            details={"q": q, "batch_size": float(self._batch_size(setting.n)), **facts},
        )

    def _batch_size(self, n: int) -> int:
        # Theorem 1's q is met from above, to a whole number of rows
        return min(n, math.ceil(self._q(n) * n - 1e-9))

    def fit(self, training: Training) -> Fit:
        problem, streams, record = training.problem, training.streams, training.record
        n, d = problem.rows.X.shape
        sigma, size = training.scales, self._batch_size(n)
        noisy = feature_noise_of(problem.model)
        start, kind = problem.model.initial(problem.m, streams), precision(problem.setting)  # line 2
        # seeds train in step, because batches are short; each holds noise for all rows
        heavy = size * problem.m * len(sigma) >= THREADS_FROM
        at_once, threads = max(AT_ONCE, _ENTRIES // problem.rows.X.size), processors() if heavy else 1
        parts = groups(len(streams), max(threads, -(-len(streams) * threads // at_once)))
        most = max(1, at_once // max(part.stop - part.start for part in parts))
        counts = np.array([c.values(Descent).steps for c in training.calibrations])
        steps = int(counts.max())
        first = counts // 2 if self.average else counts - 1  # of the iterates that are averaged
        draw_norms = np.zeros((len(streams), n)) if record else np.zeros((0, 0))
        visits = np.zeros((len(counts), len(streams), n)) if record else np.zeros((0, 0, 0))

        def work(g: int, tick: Monitor) -> Floats:
            group = parts[g]
            draws = [row_draws(stream, n, d) for stream in streams[group]]  # lines 3 and 4
            if record:
                draw_norms[group] = [np.sqrt(np.einsum("ij,ij->i", draw, draw)) for draw in draws]
            orders = [generator(substreams(stream, 1)[0]) for stream in streams[group]]
            current = np.repeat(start[group, None], len(sigma), axis=1)
            total = np.zeros_like(current)
            for t in range(steps):
                tick(t / steps)
                chosen = np.stack([np.sort(order.choice(n, size, replace=False)) for order in orders])  # line 6
                going = t < counts  # budgets with fewer steps stand still after their last one
                if record:
                    for s, index in zip(range(len(streams))[group], chosen, strict=True):
                        visits[np.flatnonzero(going)[:, None], s, index] += 1
                gradient = noisy.over_batches(current.astype(kind, copy=False), problem.rows, chosen, draws, sigma) / size
                step = np.where(going, training.step_sizes, 0.0)[:, None]
                current -= step * (gradient + problem.lam * current)  # line 7
                total += np.where((going & (t >= first))[:, None], current, 0.0)
            return total / (counts - first)[:, None]

        trained = map_streams(work, len(parts), training.monitor, parallel=heavy, most=most)
        theta = np.ascontiguousarray(np.concatenate(trained).transpose(1, 0, 2))
        log = once_record(self.noise_enters, sigma, n, visits, draw_norms) if record else NoiseRecord(self.noise_enters)
        return Fit(theta, log)

    worst_pair = staticmethod(opposed_pair)

    def noisy_rows(self, problem: Problem, calibration: Calibration, stream: np.random.SeedSequence) -> Floats:
        """(n, d) D_priv, which Algorithm 1 publishes."""
        return problem.rows.X + calibration.noise_scale * row_draws(stream, *problem.rows.X.shape)
