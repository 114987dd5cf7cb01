"""Performance-improving DBDP-ERM of Kang et al., Algorithm 2: noise only for rows that a rule calls influential."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.mechanisms import single_record as single
from dpviz.mechanisms.base import Calibration, Fit, Floats, RuleView, Training, knob
from dpviz.mechanisms.calibration import BOUNDED_ROWS, PUBLIC_N
from dpviz.mechanisms.capabilities import NoisesRows
from dpviz.mechanisms.input.row_noise import LABELS
from dpviz.mechanisms.knobs import start_knob, step_size_knob
from dpviz.mechanisms.published import INFINITE, gradient_bound_knob, nominal_gradient_bound, open_constant_knob, unbounded_note
from dpviz.models import Ability, Rows, Setting, feature_noise_of
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget
from dpviz.privacy.published_noise import largest_log_ratio, ratio_norm, sgd_sigma

#: least weight w in eq. (15): where the loss is flat the formula asks for infinite noise
SMALLEST_WEIGHT = 1e-6


@dataclass(frozen=True)
class DBDPPI(single.SingleRecord, NoisesRows):
    """Algorithm 2: single-record SGD from the non-private model; a row trains with noise on its features unless the
    rule finds its contribution small.

    The regulariser is inside each row's loss, c_t = (1/n) H^{-1} (g + lam theta), as the paper's L = mean of l implies.
    """

    id = "dbdp-pi"
    open_constant = "c"
    label = "DBDP-ERM, performance improving"
    family = "input"
    needs = frozenset({Ability.DERIVATIVES, Ability.FEATURE_NOISE})
    citation = (
        'Kang, Liu, Ding, Liu, Tong, Wang, "Differentially Private ERM Based on Data Perturbation", Algorithm 2, Theorems 2 and 3'
    )
    noise_enters = "The features of a drawn row, a new draw each time, unless the rule exempts the row; labels stay as they are."
    guarantee = (
        "Claimed to be (ε, δ)-DP; the proof does not hold: the start is not private, the rule's decisions are not accounted "
        "for, and exempt rows are used, and published, without noise."
    )
    supposes = (BOUNDED_ROWS, PUBLIC_N)
    rate = r"O\!\left(\frac{m\,G^2\log(1/\delta)\log n}{n^2\varepsilon^2}\right)"

    rounds: int = knob(
        5, "Global rounds", "How often the model that the rule uses is computed anew (R).", low=1, high=1000, log=True
    )
    local_steps: int = knob(
        10, "Local steps", "Rows drawn between two rounds (T_local; the experiments use 10).", low=1, high=1000, log=True
    )
    step_size: float = step_size_knob(
        "Size of a step; Theorem 3 has 1/L, the experiments choose it by cross-validation.",
        "0.001 from the non-private model, since noisy steps move away from it; 0.1 from zero",
        low=0.001,
    )
    rule: str = knob(
        "as-written",
        "Rule",
        "Line 9 as written compares one norm of all ratios; as intended, every single ratio must be close to 1.",
        options=("as-written", "as-intended"),
    )
    start: str = start_knob()
    scaling: str = knob(
        "root",
        "Weight in the noise",
        "Eq. (15) divides by √w; noise that reaches the gradient as w·b needs w itself.",
        options=("root", "linear"),
    )
    c: float = open_constant_knob()
    lipschitz: float = gradient_bound_knob()

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        return 0.1 if self.public_start else 0.001

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        budget.need_delta(*INFINITE)
        lipschitz = nominal_gradient_bound(setting, self.lipschitz)
        sigma = sgd_sigma(setting.n, self.steps, budget.epsilon, budget.delta, lipschitz=lipschitz, c=self.c)  # eq. (15), w = 1
        flip = 0.5 * math.log(setting.m)
        return Calibration.claimed(
            budget,
            query="the features of each drawn row that does not pass the rule",
            sensitivity_source="Theorem 2 argues through the gradient with a first-order expansion",
            noise_scale=sigma,
            accountant=f"the publication's eq. (15), with c = {self.c:g}; a row of weight w gets σ/√w"
            if self.scaling == "root"
            else f"eq. (15) with w for √w, with c = {self.c:g}",
            notes=(
                *(() if self.public_start else (single.NOT_PRIVATE_START,)),
                f"Line 9 compares the norm of a vector of {setting.m} ratios with e^ε. Ratios of rows with little influence "
                f"are near 1, so the norm is near √{setting.m}: as written the rule noises every such row where "
                f"ε < ½ ln {setting.m} = {flip:.3g} and none where ε is above, whatever its influence.",
                "Whether a row receives noise depends on private data, and no budget is spent on that decision.",
                "A row that passes moves the model by its exact gradient; line 18 publishes such rows unchanged.",
                f"Theorem 2 is stated for ε < c₁T/n² (n² = {setting.n**2:,}, T = {self.steps}); the experiments go to ε = 7.",
                "Noise of scale σ on a row has scale wσ on its gradient, at most; eq. (16) has variance wσ² for w²σ².",
                LABELS,
                "The noise grows without bound where w is near 0, for rows that the model is sure of: at small ε the noise "
                f"feeds itself and the model runs away. Here w is taken as at least {SMALLEST_WEIGHT:g}.",
                f"The publication leaves c open; here c = {self.c:g}.",
                *unbounded_note(setting, self.lipschitz),
            ),
            details={
                "steps": float(self.steps),
                "rule_low": math.exp(-budget.epsilon),
                "rule_high": math.exp(min(budget.epsilon, 700.0)),
                "rule_flip_epsilon": flip,
                "theorem_epsilon_over_c1": self.steps / setting.n**2,
            },
        )

    def fit(self, training: Training) -> Fit:
        return self._train(training, None)

    def _train(self, training: Training, published: Floats | None) -> Fit:
        """Algorithm 2; `published` (n, d) receives D_priv of the last replica."""
        problem, calibrations, streams = training.problem, training.calibrations, training.streams
        model, lam, e, s = problem.model, problem.lam, len(calibrations), len(streams)
        sigma = training.scales[:, None]
        draws = single.draw(streams, problem.n, self.steps, problem.rows.X.shape[1])
        solve = single.solver(problem, problem.optimum)  # line 2: the inverse Hessian of the pre-trained model
        outer = np.tile(self.starting_points(problem, streams), (e, 1))  # line 3, (E S, m)
        local = outer.copy()
        log = single.RowLog(e, s, problem.n, self.rounds, training.record)
        step = self.value("step_size", problem.setting) * problem.setting.unit_step
        for k in range(self.steps):
            training.monitor(k / self.steps)
            index = draws.index[:, k]  # line 7
            rows = single.replicate(problem.rows, index, e)
            contribution = solve(single.gradient(model, outer, rows, lam)) / problem.n  # line 8
            passed = self._passes(outer, contribution, calibrations)
            weight = np.maximum(feature_noise_of(model).data_weights(local, rows), SMALLEST_WEIGHT).reshape(e, s)
            spread = np.where(passed, 0.0, sigma / (np.sqrt(weight) if self.scaling == "root" else weight))  # eq. (15)
            noise = draws.noise[:, 0, k]
            rows = Rows(rows.X + (spread[:, :, None] * noise).reshape(e * s, -1), rows.y)  # line 12
            local -= step * single.gradient(model, local, rows, lam)  # lines 10 and 12
            log.step(k // self.local_steps, index, passed, spread * np.linalg.norm(noise, axis=1))
            if published is not None:  # line 18: the last version of a row
                published[index[-1]] = rows.X[-1] if spread[-1, -1] > 0 else published[index[-1]]
            if (k + 1) % self.local_steps == 0:
                outer = local.copy()  # line 15
        margin = None
        if training.record:  # distance to the rule's threshold before the first step, in units of epsilon
            size = self._log_statistic(problem, self.starting_points(problem, streams[:1])[0], solve, self.rule)
            margin = np.stack([size - _epsilon(c) for c in calibrations])[:, None]
        return Fit(outer.reshape(e, s, problem.m), log.record(self.noise_enters, margin))

    def _passes(self, outer: Floats, contribution: Floats, calibrations: Sequence[Calibration]) -> NDArray[np.bool_]:
        """(E, S) line 9."""
        epsilon = np.array([_epsilon(c) for c in calibrations])[:, None]
        if self.rule == "as-intended":
            return largest_log_ratio(outer, contribution).reshape(len(calibrations), -1) <= epsilon
        # e^-eps <= norm <= e^eps, on the logarithmic scale, where no epsilon overflows
        with np.errstate(divide="ignore"):
            return np.abs(np.log(ratio_norm(outer, contribution))).reshape(len(calibrations), -1) <= epsilon

    @staticmethod
    def _log_statistic(problem: Problem, start: Floats, solve: single.Solve, reading: str) -> Floats:
        """(n,) the number that `reading` compares with epsilon, at the model `start` (m,)."""
        if reading == "as-intended":
            return single.statistic(problem, start, solve, lambda c: largest_log_ratio(start, c))
        with np.errstate(divide="ignore"):
            return np.abs(np.log(single.statistic(problem, start, solve, lambda c: ratio_norm(start, c))))

    def rule_views(self, problem: Problem, calibration: Calibration) -> tuple[RuleView, ...]:
        solve = single.solver(problem, problem.optimum)
        start = self.starting_points(problem, [np.random.SeedSequence(0)])[0]
        epsilon = _epsilon(calibration)
        norm = single.statistic(problem, start, solve, lambda c: ratio_norm(start, c))
        largest = self._log_statistic(problem, start, solve, "as-intended")
        low, high = math.exp(-min(epsilon, 700.0)), math.exp(min(epsilon, 700.0))
        written = RuleView(
            name="as written",
            words="A row passes where the norm of the vector of ratios (c + θ)/θ lies between e^-ε and e^ε.",
            formula=r"e^{-\varepsilon}\le\left\lVert\frac{c_t+\theta}{\theta}\right\rVert_2\le e^{\varepsilon}",
            statistic_label="norm of the vector of ratios (c + θ)/θ",
            statistic=norm,
            low=low,
            high=high,
            passes=(norm >= low) & (norm <= high),
            used=self.rule == "as-written",
            notes=(f"{problem.m} ratios near 1 have norm √{problem.m} = {math.sqrt(problem.m):.3g}.",),
        )
        intended = RuleView(
            name="as intended",
            words="A row passes where every single ratio (c + θ)/θ lies between e^-ε and e^ε.",
            formula=r"\max_i\left|\ln\frac{[c_t]_i+\theta_i}{\theta_i}\right|\le\varepsilon",
            statistic_label="largest |ln((c + θ)/θ)| over the parameters",
            statistic=largest,
            low=-math.inf,
            high=epsilon,
            passes=largest <= epsilon,
            used=self.rule == "as-intended",
            notes=("A parameter near 0 makes every contribution look large.",),
        )
        return (written, intended) if written.used else (intended, written)

    def noisy_rows(self, problem: Problem, calibration: Calibration, stream: np.random.SeedSequence) -> Floats:
        """(n, d) D_priv, which Algorithm 2 publishes: the last perturbed version of a row, or the original."""
        published = problem.rows.X.copy()
        self._train(Training(problem, [calibration], [stream], record=False), published)
        return published


def _epsilon(calibration: Calibration) -> float:
    """The epsilon of the rule, which is about one row."""
    return calibration.for_row().budget.epsilon
