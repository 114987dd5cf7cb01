"""SGD with Poisson batches, clipped gradients and Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.mechanisms.base import Training
from dpviz.mechanisms.gradient.shared import EqualSteps, Plan


@dataclass(frozen=True)
class DPSGD(EqualSteps):
    """theta <- theta - eta ((sum of clipped gradients + N(0, z^2 C^2 I))/(qn) + lam theta), Poisson batches."""

    id = "dp-sgd"
    label = "DP-SGD"
    citation = (
        "Abadi et al., CCS 2016, Algorithm 1; PLD: Doroshenko et al., PoPETs 2022; RDP: Mironov, Talwar, Zhang 2019. "
        "The paper's own noise (Theorem 1) leaves its constants open and is not used"
    )
    guarantee = "(ε, δ)-DP, proved: composition of Poisson-subsampled Gaussians, and two hops where a row is replaced."

    def plan(self, training: Training) -> Plan:
        return self.poisson_plan(training.problem, self.equal_lengths(training))
