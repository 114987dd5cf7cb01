"""SGD with Poisson batches, clipped gradients and Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.mechanisms.base import Training, knob
from dpviz.mechanisms.gradient.shared import Plan, PoissonSGD


@dataclass(frozen=True)
class DPSGD(PoissonSGD):
    """theta <- theta - eta ((sum of clipped gradients + N(0, z^2 C^2 I))/(qn) + lam theta), Poisson batches."""

    id = "dp-sgd"
    label = "DP-SGD"
    citation = (
        "Abadi et al., CCS 2016, Algorithm 1; PLD: Doroshenko et al., PoPETs 2022; RDP: Mironov, Talwar, Zhang 2019. "
        "The paper's own noise (Theorem 1) leaves its constants open and is not used"
    )
    guarantee = "(ε, δ)-DP, proved: composition of Poisson-subsampled Gaussians, and two hops where a row is replaced."

    step_size: float = knob(1.0, "Step size", "Length of a step.", low=0.01, high=10.0, log=True, unit="1/L")

    def plan(self, training: Training) -> Plan:
        return self.poisson_plan(training.problem, np.full(self.steps, self.step_size * training.problem.setting.unit_step))
