"""Noisy SGD on Poisson-sampled batches: its knobs, calibration and protected query."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dpviz.common.random import Batches, generator, poisson_batches, substreams
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Streams, Training, knob
from dpviz.mechanisms.calibration import StepSize
from dpviz.mechanisms.capabilities import BoundsSensitivity, CountsSteps, IndividualBudget, ProtectsQuery, ReleasesGaussians
from dpviz.mechanisms.gradient.clip_count import ClipsRows
from dpviz.mechanisms.gradient.noisy_sgd import ROUNDING, Plan, train
from dpviz.mechanisms.individual import path_epsilon, room_for_path
from dpviz.mechanisms.knobs import clip_norm_knob, relation_knob, step_size_knob
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting import account
from dpviz.privacy.accounting.accountants.base import get_accountant, list_accountants
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated, Sampled
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.individual import IndividualEpsilon, PoissonPath
from dpviz.privacy.sensitivity.bounds import Bound

MOST_STEPS = 200_000
_ACCOUNTANTS = tuple(name for name, known in reversed(list_accountants().items()) if "poisson" in known.samplings)
LONGEST_STEP = 10.0  # that may be set, in units of 1/L


def sampling_rate_knob(default: float = 0.1, automatic: str = "") -> Any:
    """The probability that a row is in a batch; 0 where it follows from a rule."""
    words = "Probability that a row is in a batch; the mean batch size is this times n."
    return knob(default, "Sampling rate", words, low=1e-4, high=1.0, log=True, automatic=automatic)


@dataclass(frozen=True)
class PoissonSGD(ClipsRows, ProtectsQuery, BoundsSensitivity, ReleasesGaussians, IndividualBudget, CountsSteps):
    """Shared parts of the Poisson-sampled forms: knobs, calibration and the protected query."""

    noise_enters = (
        "The mean gradient of every mini-batch: each step adds one Gaussian draw to it. "
        "No noise is added to single rows, so rows count as visited and not as receiving noise."
    )

    sampling_rate: float = sampling_rate_knob()
    epochs: float = knob(
        20.0, "Epochs", "Steps times sampling rate: how often a row is visited on average.", low=0.1, high=1000.0, log=True
    )
    clip_norm: float = clip_norm_knob(0.0, rules.CLIP_NORM)
    accountant: str = knob("pld", "Accountant", "Adds up the costs of the steps; pld is tighter.", options=_ACCOUNTANTS)
    relation: str = relation_knob("replace-one moves a sum twice as far, and needs more noise.")

    def fix_batches(self, *calibrations: Calibration) -> Self:
        """The same method with the batches that the noise was computed for, whatever the number of rows is now."""
        return self

    def batch_share(self, setting: Setting) -> float:
        """q, the share of the rows that a batch holds on average."""
        return float(self.value("sampling_rate", setting))

    def step_count(self, setting: Setting) -> int:
        """T, the number of steps that is nearest to the epochs asked for."""
        return max(1, round(self.epochs / self.batch_share(setting)))

    def drawing(self, problem: Problem) -> Batches:
        """The sampling of batches."""
        return poisson_batches(len(problem.rows), self.batch_share(problem.setting))

    def noise_multiplier(self, setting: Setting, budget: Budget) -> float:
        """z, the noise on a batch's sum over what one row contributes to it."""
        return account.noise_for(self.noisy_sums(setting, 1.0), self.method, budget)

    def noise_scale(self, setting: Setting, budget: Budget) -> float:
        """Standard deviation per coordinate of the noise on a batch's mean gradient."""
        return self.noise_multiplier(setting, budget) * self.bound(setting) / (self.batch_share(setting) * setting.n)

    @property
    def method(self) -> account.Method:
        """The accounting method for the steps."""
        return account.Method(self.accountant, Neighbouring(self.relation))

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        rate, steps = self.batch_share(setting), self.step_count(setting)
        if steps > MOST_STEPS:
            raise InvalidInput(
                "epochs",
                f"{self.epochs:g} epochs at sampling rate {self.value('sampling_rate', setting):g} are {steps:,} steps",
                f"At most {MOST_STEPS:,} steps: lower the epochs or raise the sampling rate.",
            )
        bound = self.bound(setting)
        sigma = self.noise_scale(setting, budget)
        replace_one = self.method.relation is Neighbouring.REPLACE_ONE
        one_row = bound / (rate * setting.n)  # Abadi et al. 2016, Algorithm 1, with the public q n
        how = "the whole batch counts twice a removal, exactly" if rate == 1 else "a row and its opposite are furthest apart"
        return Calibration.proved(
            budget,
            sensitivity=(2 if replace_one else 1) * one_row,
            query="the sum of clipped gradients of one Poisson batch, divided by qn",
            sensitivity_source=(
                "a row contributes at most min(C, G)/(qn), a replaced one moves the sum by at most twice that"
                if replace_one
                else "a row contributes at most min(C, G)/(qn)"
            ),
            noise_scale=sigma,
            neighbouring=self.method.relation,
            accountant=account.describe(self.method),
            conversion=get_accountant(self.accountant).conversion_words,
            notes=(
                *((f"Replace-one: {how}.",) if replace_one else ("Add-remove: the divisor qn stays at its public value.",)),
                "Every iterate may be published.",
                ROUNDING,
            ),
            details={
                "noise_multiplier": sigma / one_row,
                "sampling_rate": rate,
                "steps": float(steps),
                "mean_batch": rate * setting.n,
            },
        )

    def sensitivity_bounds(self, setting: Setting) -> tuple[Bound, ...]:
        bound = self.bound(setting)
        value = 2 * bound / (self.batch_share(setting) * setting.n)
        return (Bound("clipped gradients", value, r"\frac{2\min(C,G)}{qn}", "one row, if its batch is drawn at all"),)

    def noisy_sums(self, setting: Setting, contribution: float, sigma: float = 1.0) -> Event:
        """All steps: noisy sums of Poisson batches to which one row contributes at most `contribution`."""
        return Repeated(Sampled(Gaussian.of_rows(contribution, sigma), self.batch_share(setting)), self.step_count(setting))

    def releases(self, setting: Setting) -> Event | None:
        if self.method.relation is not Neighbouring.REPLACE_ONE:
            return None
        return self.noisy_sums(setting, self.sensitivity_bounds(setting)[0].value / 2)

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        drawn = self.fix_batches(calibration)
        contribution = self.bound(setting) / (drawn.batch_share(setting) * setting.n)
        return drawn.noisy_sums(setting, contribution, calibration.noise_scale)

    @abstractmethod
    def plan(self, training: Training) -> Plan:
        """The training plan of this method."""

    def batch_plan(self, problem: Problem, step_sizes: Floats, **more: object) -> Plan:
        """A plan with this method's batches and the given step sizes."""
        steps = self.step_count(problem.setting)
        return Plan(
            batches=self.drawing(problem),
            divisor=np.full(steps, self.batch_share(problem.setting) * problem.n),
            step_sizes=step_sizes,
            noise_factor=np.ones(steps),
            clip_norm=self.clip(problem.setting),
            **more,  # type: ignore[arg-type]
        )

    def fit(self, training: Training) -> Fit:
        plan = self.fix_batches(*training.calibrations).plan(training)
        path = room_for_path(training, plan.steps) if training.record else None
        theta, visits, clipped = train(training, plan, path)
        return Fit(theta, NoiseRecord(self.noise_enters, visits=visits, clipped=clipped, path=path))

    def individual(
        self, problem: Problem, calibration: Calibration, theta: Floats, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        if record.path is None or calibration.noise_scale <= 0:
            return None
        bound = self.bound(problem.setting)
        drawn, setting = self.fix_batches(calibration), problem.setting
        z = calibration.noise_scale * drawn.batch_share(setting) * problem.n / bound
        one_row = PoissonPath(Sampled(Gaussian.of_rows(1.0, z), drawn.batch_share(setting)))

        def divergence(norms: Floats, path: Floats) -> Floats:
            return one_row.divergence(np.minimum(norms, bound) / bound)

        worst = account.epsilon(drawn.noisy_sums(setting, 1.0, z), account.Method(self.accountant), calibration.budget.delta)
        return path_epsilon(problem, calibration, record.path, len(theta), divergence, worst)

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        draw = self.drawing(problem)
        batches = (draw(generator(substreams(stream, 2)[0]))(0) for stream in streams)
        return self.sums_over(problem, theta, batches) / (self.batch_share(problem.setting) * problem.n)


@dataclass(frozen=True)
class EqualSteps(PoissonSGD):
    """Poisson-sampled SGD whose steps all have one size, which follows from the noise where it is automatic."""

    step_size: float = step_size_knob("Size of a step.", rules.STEP_SIZE, high=LONGEST_STEP)

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        return self.by_noise(setting, 0.0 if budget is None else self.noise_scale(setting, budget))

    def by_noise(self, setting: Setting, noise_scale: float) -> float:
        """The rule's step size for this noise, in units of 1/L."""
        return rules.step_size(setting, self.step_count(setting), noise_scale, clip=self.clip(setting))

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        base = super().calibrate(setting, budget)
        return replace(base, for_training=StepSize(self.step_size or self.by_noise(setting, base.noise_scale)))

    def equal_step_sizes(self, training: Training) -> Floats:
        """(E, T) step sizes."""
        return np.repeat(training.step_sizes[:, None], self.step_count(training.problem.setting), axis=1)
