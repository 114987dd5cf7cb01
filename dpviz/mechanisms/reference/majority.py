"""The most frequent label, with and without privacy."""

from dataclasses import dataclass

import numpy as np

from dpviz.common.random import generator
from dpviz.mechanisms.base import Calibration, Fit, NoiseRecord, Streams, Training, knob
from dpviz.mechanisms.calibration import BOUNDED_LABELS
from dpviz.mechanisms.capabilities import DeclaresEvent, ProtectsQuery
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, PureEpsilon
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import LAPLACE, NO_NOISE


@dataclass(frozen=True)
class Majority(ProtectsQuery, DeclaresEvent):
    """Predicts the most frequent training label for everyone (the floor in Chen, Lee, Kifer 2019, section 5)."""

    id = "majority"
    label = "Majority"
    family = "reference"
    citation = "Baseline of Chen, Lee, Kifer, AISTATS 2019, section 5; the private count is ours"
    noise_enters = "Nowhere by default; the private version adds Laplace noise to the difference of the label counts."
    guarantee = "None by default; ε-DP with the private switch on (Laplace noise of scale 2/ε on a count of sensitivity 2)."
    supposes = (BOUNDED_LABELS,)
    pure = True
    releases_label = True

    private: bool = knob(False, "Private count", "Add Laplace noise to the difference of the label counts, for pure ε-DP.")

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        query: str = "number of +1 labels minus number of -1 labels"
        source: str = "one replaced label moves the difference of counts by 2"  # [ours]
        if not self.private:
            return Calibration.unprotected(
                budget,
                sensitivity=2.0,
                query=query,
                sensitivity_source=source,
                noise_scale=0.0,
                noise_family=NO_NOISE,
                accountant="none",
                notes=("The papers' floor is not private; switch on the private count for ε-DP.",),
            )
        return Calibration.proved(
            budget,
            sensitivity=2.0,
            query=query,
            sensitivity_source=source,
            noise_scale=2.0 / budget.epsilon,
            noise_family=LAPLACE,
            proves=Budget(budget.epsilon),
            claims="nothing",
            accountant="Laplace mechanism",
        )

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        return PureEpsilon(2.0 / calibration.noise_scale) if self.private else None

    def fit(self, training: Training) -> Fit:
        problem, streams = training.problem, training.streams
        standard = np.array([generator(s).laplace() for s in streams])
        votes = problem.rows.y.sum() + np.outer(training.scales, standard)
        theta = np.zeros((len(training.calibrations), len(streams), problem.m))
        visits = np.ones((1, 1, problem.n))
        return Fit(theta, NoiseRecord(self.noise_enters, visits=visits), constant_label=np.where(votes >= 0, 1.0, -1.0))

    def query(self, problem: Problem, theta: np.ndarray, streams: Streams) -> np.ndarray:
        return np.full((len(streams), 1), problem.rows.y.sum())
