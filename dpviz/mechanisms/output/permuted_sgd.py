"""Mini-batch SGD over permuted rows whose last iterate receives noise (Chen et al. 2019, Algorithms 1 and 2)."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, Floats, Monitor, NoiseRecord, Streams, Training, ignore, knob
from dpviz.mechanisms.calibration import BOUNDED_ROWS, PUBLIC_N, SMOOTH, STRONGLY_CONVEX, StepSize
from dpviz.mechanisms.capabilities import HasTrace, NoisySteps, ProtectsQuery, ReleasesGaussians
from dpviz.mechanisms.knobs import step_size_knob
from dpviz.mechanisms.output.minimiser_noise import ROUNDING, check_finite, release, step_sizes_of
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.models.solvers.minibatch import minibatch_descent, permutations
from dpviz.privacy.accounting.events import Event, Gaussian, Mixture, Repeated
from dpviz.privacy.accounting.mixture import mixture_epsilon, mixture_rdp_epsilon, mixture_rdp_sigma, mixture_sigma
from dpviz.privacy.budget import Budget
from dpviz.privacy.sensitivity.algorithm2 import Algorithm2, Trace, contraction, epoch_steps
from dpviz.privacy.sensitivity.bounds import Bound, balanced_batches, proposition2
from dpviz.privacy.sensitivity.iteration import iteration

#: decay of the step size over epochs, with the exponent of s
DECAYS = {"1/s": 1.0, "1/sqrt(s)": 0.5}
_LEAST_EPOCHS, _MOST_EPOCHS = 20, 200
FIRST_STEP: str = "follows from the noise, at most 1.5 (SVM: 1.9)"


@dataclass(frozen=True)
class Noise:
    """The noise of a method with batches, and how it follows from a budget; attributes as of `Calibration`."""

    sigma: float
    accountant: str
    conversion: str = ""
    notes: tuple[str, ...] = ()
    details: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class MiniBatch(ProtectsQuery, HasTrace, ReleasesGaussians):
    """SGD over fixed balanced batches with decaying steps, then one Gaussian draw on the result."""

    family = "output"
    supposes = (STRONGLY_CONVEX, SMOOTH, BOUNDED_ROWS, PUBLIC_N)
    noise_enters = "The finished parameters: one Gaussian draw is added to the last iterate of mini-batch SGD."
    needs_strong_convexity = True
    needs_linear = True
    released_query: ClassVar[str] = "the last iterate"

    epochs: int = knob(
        0,
        "Epochs",
        "Passes over the data.",
        low=1,
        high=1000,
        log=True,
        automatic="20; up to 200 where a batch size is set: more where noise is small at ε = 10",
    )
    batch_size: int = knob(
        0,
        "Batch size",
        "Rows in a batch. Chen et al. use 4,000 on data of this kind.",
        low=1,
        high=1_000_000,
        unit="rows",
        share_of_rows=True,
        automatic="follows from the noise at ε = 10",
    )
    step_size: float = step_size_knob("Size of a step in the first epoch; later ones decay.", FIRST_STEP, label="First step size")
    decay: str = knob(
        "1/s",
        "Decay of steps",
        "Step size of epoch s, as a share of the first: 1/s as printed, 1/√s as in the authors' code.",
        options=tuple(DECAYS),
    )

    def window(self) -> tuple[int, bool, bool]:
        """(tau, whether to average, whether to restart the step size)."""
        return 0, False, False

    def batches(self, setting: Setting) -> tuple[int, int, Floats]:
        """(m, size of the smallest batch, (m,) probability of each batch for a randomly placed row)."""
        return balanced_batches(setting.n, self.value("batch_size", setting))

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        if knob == "step_size":
            # below 2 runs come together; the SVM's mean curvature is far below its bound
            longest = 1.9 if rules.longest_step(setting) > 2 else 1.5
            if budget is None:
                return longest
            # the batches suit a large budget; what a smaller one allows is reached in as many, shorter steps
            most = self._time(setting, self.epoch_count(setting))[-1] * self.batches(setting)[0]
            return float(max(0.01, longest * min(1.0, rules.time_before_release(setting, budget, math.inf) / most)))
        wanted = rules.time_before_release(setting, steps=math.inf)
        if knob == "batch_size":
            # k batches of n/k rows take k steps an epoch: time and noise do not depend on n/k but for their product
            needed = wanted / self._time(setting, self.epochs or _LEAST_EPOCHS)[-1]
            return max(1, min(1_000_000, setting.n // max(1, math.ceil(needed))))
        if not self.batch_size:
            return _LEAST_EPOCHS
        time = self._time(setting, _MOST_EPOCHS) * self.batches(setting)[0]
        return min(_MOST_EPOCHS, max(_LEAST_EPOCHS, int(np.searchsorted(time, wanted)) + 1))

    def _time(self, setting: Setting, epochs: int) -> Floats:
        """(epochs,) training time for a batch an epoch; the mean of tau iterates has trained for the mean of their times."""
        tau, average, _ = self.window()
        time = np.cumsum(self._epoch_steps(setting, epochs))
        for end in range(tau, epochs + 1, tau) if average else ():
            time[end - 1 :] -= time[end - 1] - time[end - tau : end].mean()
        return time

    def epoch_count(self, setting: Setting) -> int:
        """Passes over the data."""
        return int(self.value("epochs", setting))

    def first_step(self, setting: Setting) -> float:
        """Size of a step in the first epoch."""
        return float(self.value("step_size", setting) * setting.unit_step)

    def _epoch_steps(self, setting: Setting, epochs: int) -> Floats:
        """(epochs,) step sizes."""
        tau, _, restart = self.window()
        return epoch_steps(epochs, self.first_step(setting), tau if restart else 0, DECAYS[self.decay])

    def algorithm2(self, setting: Setting) -> Algorithm2:
        """The recursion of this method's sensitivity; the regulariser cancels, so R = G."""
        (m, nu, _), (tau, average, restart) = self.batches(setting), self.window()
        return Algorithm2(
            self.epoch_count(setting),
            m,
            self.first_step(setting),
            nu,
            setting.mu,
            setting.L,
            setting.G,
            tau,
            average,
            restart,
            DECAYS[self.decay],
        )

    def position_sensitivities(self, setting: Setting) -> Floats:
        """(m,) sensitivities by batch position."""
        delta = self.algorithm2(setting).by_position()
        check_finite(float(delta.max()))
        return delta

    def sensitivity_trace(self, setting: Setting) -> Trace:
        run = self.algorithm2(setting)
        kept = max(2, min(12, run.batches, 10**6 // (run.epochs * run.batches)))
        return run.trace(np.unique(np.linspace(1, run.batches, kept).round().astype(int)).tolist())

    @abstractmethod
    def over_positions(self, setting: Setting, values: Floats) -> Event:
        """The release of Gaussians with noise 1 whose sensitivity is values[j] if batch j has the replaced row."""

    def releases(self, setting: Setting) -> Event:
        return self.over_positions(setting, self.position_sensitivities(setting))

    def noise_in_steps(self, setting: Setting) -> NoisySteps | None:
        if self.window()[1]:  # a mean of iterates is no iterate
            return None
        (m, nu, _), epochs = self.batches(setting), self.epoch_count(setting)
        last, spread = iteration(self._epoch_steps(setting, epochs), m, nu, setting.mu, setting.L, setting.G)
        return NoisySteps(self.over_positions(setting, last), Repeated(Gaussian(2 * setting.G / nu), epochs), spread)

    def sensitivity_bounds(self, setting: Setting) -> tuple[Bound, ...]:
        m, nu, _ = self.batches(setting)
        eta, in_use = self.first_step(setting), float(self.position_sensitivities(setting).max())
        bounds = [
            Bound(
                "Algorithm 2, worst batch",
                in_use,
                r"\max_j\Delta_j,\ \Delta\leftarrow\rho\Delta\,(+\,2\eta G/\nu)",
                "Chen, Lee, Kifer 2019, Algorithm 2; closed form [ours]",
            )
        ]
        if float(contraction(eta, setting.mu, setting.L)) < 1:
            fixed = proposition2(eta, nu, m, setting.mu, setting.L, setting.G)
            bounds.append(
                Bound(
                    "Fixed step, any number of epochs",
                    fixed,
                    r"\frac{2\eta G}{\nu(1-\rho^m)}",
                    "Chen, Lee, Kifer 2019, Proposition 2, at the first step size",
                )
            )
        return tuple(bounds)

    @abstractmethod
    def noise(self, setting: Setting, budget: Budget, delta: Floats) -> Noise:
        """The noise for sensitivities (m,) by batch position; the method is settled."""

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        settled = self.settle(setting, budget)
        delta, (m, nu, _) = settled.position_sensitivities(setting), settled.batches(setting)
        noise = settled.noise(setting, budget, delta)
        return Calibration.proved(
            budget,
            sensitivity=float(delta.max()),
            query=self.released_query,
            sensitivity_source="Chen et al. 2019, Algorithm 2 in closed form: worst batch position; R = G since λ cancels",
            noise_scale=noise.sigma,
            accountant=noise.accountant,
            conversion=noise.conversion,
            notes=(ROUNDING, *noise.notes),
            for_training=StepSize(settled.step_size),
            details={
                "batches": float(m),
                "batch_size": float(nu),
                "epochs": float(settled.epoch_count(setting)),
                "sensitivity_first_batch": float(delta[0]),
                "sensitivity_last_batch": float(delta[-1]),
                "worst_position": float(delta.argmax() + 1),
                **noise.details,
            },
        )

    def steps(self, setting: Setting) -> Floats:
        """(T m,) size of every step."""
        return np.repeat(self._epoch_steps(setting, self.epoch_count(setting)), self.batches(setting)[0])

    def centre(
        self, problem: Problem, streams: Streams | None, step_sizes: Floats | None = None, monitor: Monitor = ignore
    ) -> Floats:
        """(S, m) results before noise; None for `streams` trains once on the rows as they stand.

        Args:
            step_sizes: (T m,) of the steps, by default this method's own; (E, T m) gives (E, S, m).
        """
        tau, average, _ = self.window()
        m, steps = self.batches(problem.setting)[0], self.steps(problem.setting) if step_sizes is None else step_sizes
        orders = None if streams is None else permutations(streams, problem.n)
        return minibatch_descent(problem, steps, m, orders, average_every=tau if average else 0, monitor=monitor)

    def fit(self, training: Training) -> Fit:
        setting = training.problem.setting
        settled = self.settle(setting, training.calibrations[0].budget)  # batches and epochs are the same for all budgets
        own = [replace(settled, step_size=c.values(StepSize).step_size).steps(setting) for c in training.calibrations]
        step_sizes, apart = step_sizes_of(np.array(own))
        centre = self.released_centre(training, step_sizes)
        return release(training, centre, self.record_visits(training.problem), apart=apart)

    def released_centre(self, training: Training, step_sizes: Floats) -> Floats:
        """(S, m) what is released before noise, or (m,) where all seeds train alike; with E in front for (E, T m) step_sizes."""
        return self.centre(training.problem, training.streams, step_sizes, training.monitor)

    def record_visits(self, problem: Problem) -> NoiseRecord:
        """Every row once an epoch; the noise is on none of them."""
        return NoiseRecord(self.noise_enters, visits=np.full((1, 1, problem.n), float(self.epoch_count(problem.setting))))


@dataclass(frozen=True)
class Permuted(MiniBatch):
    """Batches after one secret permutation: the position of the replaced row is random, and so is the sensitivity."""

    published_form: ClassVar = {"accounting": "published"}
    released_query: ClassVar[str] = "the last iterate, for a given permutation"

    accounting: str = knob(
        "hockey-stick",
        "Accounting",
        "Joint convexity of the hockey-stick divergence, or Rényi divergence with the improved or the published conversion.",
        options=("hockey-stick", "rdp-improved", "published"),
    )

    def noise(self, setting: Setting, budget: Budget, delta: Floats) -> Noise:
        weights = self.batches(setting)[2]
        secret = "The permutation is fresh for every release and stays secret, like the noise; models that share one void this."
        if self.accounting == "hockey-stick":
            accountant = "mixture of Gaussians, joint convexity of the hockey-stick divergence [ours]"
            return Noise(mixture_sigma(budget, delta, weights), accountant, notes=(secret,))
        name = "mironov" if self.accounting == "published" else "improved"
        sigma = mixture_rdp_sigma(budget, delta, weights, name)
        reached = mixture_epsilon(budget.delta, delta, weights, sigma)
        return Noise(
            sigma,
            "mixture of Gaussians, Rényi divergence (Chen et al. 2019, Proposition 3)",
            {
                "mironov": "Mironov 2017, Proposition 3 (Chen et al. 2019, Proposition 1)",
                "improved": "Balle et al. 2020, Theorem 21; Canonne, Kamath, Steinke 2020",
            }[name],
            (f"The hockey-stick mixture proves ε = {reached:.4g} at this noise.", secret),
            {"alpha": mixture_rdp_epsilon(budget.delta, delta, weights, sigma, name)[1], "hockey_stick_epsilon": reached},
        )

    def over_positions(self, setting: Setting, values: Floats) -> Event:
        return Mixture.combine(values, self.batches(setting)[2])

    def query(self, problem: Problem, theta: np.ndarray, streams: Streams) -> np.ndarray:
        return self.centre(problem, streams)
