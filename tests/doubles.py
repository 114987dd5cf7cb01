"""Mechanisms with one mistake each, as they are found in real code. The auditor accuses each of them."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from dpviz.common.random import generator
from dpviz.mechanisms import Calibration, Fit, Mechanism, NoiseRecord, Training, knob
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.cms_output import CMSOutput
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import Rows, Setting
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget


def scaled(training: Training, factor: float) -> Training:
    less = [dataclasses.replace(c, noise_scale=c.noise_scale * factor) for c in training.calibrations]
    return dataclasses.replace(training, calibrations=less)


class Weak(Mechanism):
    """Adds `share` of the noise that it declares."""

    share: float

    def fit(self, training: Training) -> Fit:
        return super().fit(scaled(training, self.share))  # type: ignore[safe-super]


@dataclass(frozen=True)
class WeakNoise(Weak, OutputGaussian):
    """Output perturbation with too little noise."""

    id = "double-weak-noise"
    share: float = knob(0.8, "Share", "Of the declared noise.", low=0.01, high=1.0)


@dataclass(frozen=True)
class WeakDescent(Weak, DPGD):
    """Gradient descent with too little noise in every step."""

    id = "double-weak-descent"
    share: float = knob(0.8, "Share", "Of the declared noise.", low=0.01, high=1.0)


@dataclass(frozen=True)
class QuietlyWeakNoise(WeakNoise):
    """Output perturbation with too little noise, whose declared distribution has the noise that is fitting."""

    id = "double-quietly-weak-noise"

    def fit(self, training: Training) -> Fit:
        made = super().fit(training)
        return dataclasses.replace(
            made, distribution=dataclasses.replace(made.distribution, scale=made.distribution.scale / self.share)
        )


@dataclass(frozen=True)
class PlainDescent(DPGD):
    """DP-GD with a number of steps and a step size that do not depend on the budget."""

    steps: int = knob(50, "Steps", "Passes.", low=1, high=10_000)
    step_size: float = knob(1.9, "Step size", "Of a step.", low=0.01, high=10.0, unit="1/L")


@dataclass(frozen=True)
class ReusedNoise(PlainDescent):
    """One draw for all steps: the difference of two increments is free of noise."""

    id = "double-reused-noise"

    def fit(self, training: Training) -> Fit:
        problem, sigma = training.problem, training.calibrations[0].noise_scale
        draw = np.stack([generator(s).standard_normal(problem.m) for s in training.streams])
        theta = np.zeros_like(draw)
        for _ in range(self.steps):
            gradient = problem.model.sum_gradient(theta, problem.rows, clip_norm=self.clip(problem.setting)) / problem.n
            theta = theta - self.step_size * problem.setting.unit_step * (gradient + sigma * draw + problem.lam * theta)
        return Fit(theta[None], NoiseRecord(self.noise_enters))


@dataclass(frozen=True)
class FittedScaler(OutputGaussian):
    """Divides all rows by the longest one before training."""

    id = "double-fitted-scaler"

    def fit(self, training: Training) -> Fit:
        problem = training.problem
        rows = Rows(problem.rows.X / max(problem.rows.norms.max(), 1e-9), problem.rows.y)
        return super().fit(dataclasses.replace(training, problem=Problem(rows, problem.model, problem.lam)))


@dataclass(frozen=True)
class LocalSensitivity(OutputGaussian):
    """Noise in proportion to the longest gradient that occurs, instead of the longest that could."""

    id = "double-local-sensitivity"

    def fit(self, training: Training) -> Fit:
        problem = training.problem
        largest = float(problem.model.gradient_norms(problem.optimum[None], problem.rows).max())
        return super().fit(scaled(training, largest))


@dataclass(frozen=True)
class PerCoordinateLaplace(CMSOutput):
    """Laplace noise on every coordinate at the L2 sensitivity, where it needs the L1 sensitivity."""

    id = "double-per-coordinate-laplace"

    def fit(self, training: Training) -> Fit:
        problem = training.problem
        noise = np.stack([generator(s).laplace(size=problem.m) for s in training.streams])
        return Fit((problem.optimum + training.scales[0] * noise)[None], NoiseRecord(self.noise_enters))


@dataclass(frozen=True)
class FixedBatches(PlainDescent):
    """One pass over 20 batches in a fixed order, accounted as if every row were drawn by a coin at every step."""

    id = "double-fixed-batches"
    steps: int = knob(20, "Steps", "Batches.", low=1, high=20)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        # 1.75 is enough for 20 Poisson steps at q = 1/20 and (1, 1e-5), replace-one, by dp_accounting's PLD
        size = setting.n / 20
        return dataclasses.replace(
            super().calibrate(setting, budget),
            noise_scale=1.75 / size / budget.epsilon,
            accountant="Poisson subsampling, PLD",
            sensitivity=2 / size,
            details={},
        )

    def fit(self, training: Training) -> Fit:
        problem, streams = training.problem, training.streams
        sigma, n, m = training.scales[0], problem.n, problem.m
        generators = [generator(s) for s in streams]
        theta = np.zeros((len(streams), m))
        for batch in np.array_split(np.arange(n), 20)[: self.steps]:
            mask = np.zeros((n, 1))
            mask[batch] = 20 / n
            gradient = problem.model.sum_gradient(theta, problem.rows, weights=mask)
            draw = np.stack([g.standard_normal(m) for g in generators])
            theta = theta - self.step_size * problem.setting.unit_step * (gradient + sigma * draw + problem.lam * theta)
        return Fit(theta[None], NoiseRecord(self.noise_enters, visits=np.ones((1, len(streams), n))))
