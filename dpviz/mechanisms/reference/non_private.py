"""The minimiser without privacy."""

from dataclasses import dataclass

import numpy as np

from dpviz.mechanisms.base import Calibration, Fit, Mechanism, NoiseRecord, Training
from dpviz.models import Setting
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import NO_NOISE


@dataclass(frozen=True)
class NonPrivate(Mechanism):
    """Newton's method to gradient norm <= 1e-10; the line that every private method is measured against."""

    id = "non-private"
    label = "Non-private"
    weighted = True
    family = "reference"
    citation = "Regularised empirical risk minimisation, no privacy"
    noise_enters = "Nowhere: no noise is added."
    guarantee = "None. The model can reveal any row."

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        return Calibration.unprotected(
            budget,
            query="nothing",
            sensitivity_source="not bounded",
            noise_scale=0.0,
            noise_family=NO_NOISE,
            accountant="none",
            notes=("ε does not matter here: nothing is protected.",),
        )

    def fit(self, training: Training) -> Fit:
        problem = training.problem
        theta = np.broadcast_to(problem.optimum, (len(training.calibrations), len(training.streams), problem.m)).copy()
        return Fit(theta, NoiseRecord(self.noise_enters))
