"""SGD with Poisson batches or with batches of a fresh order every epoch, clipped gradients and Gaussian noise.

Why a fresh order costs as much as one full batch an epoch: fix the orders, which are drawn without regard to the data. The one
row that is replaced lies in one batch of every epoch. The other batches are the same functions of earlier releases on both
sides, so E epochs are E adaptive Gaussian releases of sensitivity 2C, and sqrt(E) 2C/sigma-GDP (Dong, Roth, Su 2022,
Corollary 2). The hockey-stick divergence is jointly convex, so the mixture over all orders costs no more. Conversely the pair
of datasets in which nothing else has a gradient reaches this for an observer who knows the orders. That a secret order
amplifies is known in part only, and accounting for it as for Poisson batches is wrong (Chua et al., ICML 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpviz.common.random import Batches, shuffled_batches
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms.base import Calibration, Floats, NoiseRecord, Training, knob
from dpviz.mechanisms.conditions import CLIPPED_OR_BOUNDED, PUBLIC_N, SINGLE_PRECISION
from dpviz.mechanisms.gradient.noisy_sgd import ROUNDING, Plan
from dpviz.mechanisms.gradient.poisson_sgd import EqualSteps
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.accounting.methods import Method
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.individual import IndividualEpsilon


@dataclass(frozen=True)
class DPSGD(EqualSteps):
    """theta <- theta - eta ((sum of clipped gradients + N(0, z^2 C^2 I))/(qn) + lam theta), Poisson or shuffled batches."""

    id = "dp-sgd"
    label = "DP-SGD"
    weighted = True
    citation = (
        "Abadi et al., CCS 2016, Algorithm 1; PLD: Doroshenko et al., PoPETs 2022; RDP: Mironov, Talwar, Zhang 2019. "
        "The paper's own noise (Theorem 1) leaves its constants open and is not used"
    )
    guarantee = (
        "(ε, δ)-DP, proved: composition of Poisson-subsampled Gaussians, and two hops where a row is replaced. Batches of a "
        "fresh order every epoch: proved for replaced rows, by exact composition of one Gaussian release an epoch."
    )
    supposes = (CLIPPED_OR_BOUNDED, PUBLIC_N, SINGLE_PRECISION)

    batches: str = knob(
        "poisson",
        "Batches",
        "poisson: every row is in a batch by chance; reshuffled: a fresh order every epoch, cut into batches, whole epochs.",
        options=("poisson", "reshuffled"),
    )

    @property
    def _reshuffled(self) -> bool:
        return self.batches == "reshuffled"

    @property
    def _per_epoch(self) -> int:
        """Batches of a shuffled epoch."""
        return max(1, round(1 / self.sampling_rate))

    @property
    def _epochs(self) -> int:
        """Whole epochs, at least one."""
        return max(1, round(self.epochs))

    @property
    def batch_share(self) -> float:
        return 1 / self._per_epoch if self._reshuffled else super().batch_share

    @property
    def steps(self) -> int:
        return self._epochs * self._per_epoch if self._reshuffled else super().steps

    @property
    def method(self) -> Method:
        if not self._reshuffled:
            return super().method
        if self.relation != Neighbouring.REPLACE_ONE.value:
            raise InvalidInput(
                "relation", "a row that is added moves the others to other batches of the order", 'Choose "replace-one".'
            )
        return Method("gaussian" if self.accountant == "pld" else self.accountant, Neighbouring.REPLACE_ONE)

    def drawing(self, n: int) -> Batches:
        if not self._reshuffled:
            return super().drawing(n)
        # sizes differ by at most one row; all are divided by the same public number
        return shuffled_batches(np.linspace(0, n, self._per_epoch + 1).astype(np.intp))

    def noisy_sums(self, contribution: float, sigma: float = 1.0) -> Event:
        if not self._reshuffled:
            return super().noisy_sums(contribution, sigma)
        return Repeated(Gaussian.of_rows(contribution, sigma), self._epochs)

    def noise_multiplier(self, budget: Budget) -> float:
        if self._reshuffled and self.method.accountant == "gaussian":
            return 2 * math.sqrt(self._epochs) / gaussian_mu(budget)
        return super().noise_multiplier(budget)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        base = super().calibrate(setting, budget)
        if not self._reshuffled:
            return base
        # a row moves a sum by at most twice what it contributes, and the noise is on that sum
        mu = math.sqrt(self._epochs) * base.sensitivity / base.noise_scale
        exact = self.method.accountant == "gaussian"
        return replace(
            base,
            query="the sum of clipped gradients of one batch of a shuffled order, divided by qn",
            sensitivity_source="a replaced row is in one batch of every epoch and moves its sum by at most 2 min(C, G)",
            conversion="μ-GDP to (ε, δ), Balle & Wang 2018, Theorem 8" if exact else base.conversion,
            notes=(
                f"{self._epochs:,} epochs of {self._per_epoch:,} batches cost as much as {self._epochs:,} full batches: that the "
                "order is secret is not counted on.",
                "Every iterate may be published, and the orders too.",
                ROUNDING,
            ),
            mu=mu,
        )

    def individual(
        self, problem: Problem, calibration: Calibration, theta: Floats, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        # which batch of an epoch a row was in is not part of the record
        return None if self._reshuffled else super().individual(problem, calibration, theta, record)

    def plan(self, training: Training) -> Plan:
        return self.batch_plan(training.problem, self.equal_lengths(training))
