"""SGD with Poisson batches or with random reshuffling, clipped gradients and Gaussian noise.

Why random reshuffling costs as much as one full batch an epoch: fix the orders, which are drawn without regard to the data. The
one row that is replaced lies in one batch of every epoch. The other batches are the same functions of earlier releases on both
sides, so E epochs are E adaptive Gaussian releases of sensitivity 2C, and sqrt(E) 2C/sigma-GDP (Dong, Roth, Su 2022,
Corollary 2). The hockey-stick divergence is jointly convex, so the mixture over all orders costs no more. Conversely the pair
of datasets in which nothing else has a gradient reaches this for an observer who knows the orders. That a secret order
amplifies is known in part only, and accounting for it as for Poisson batches is wrong (Chua et al., ICML 2024).

Why persons who are drawn cost as much as rows [ours]: a person is in a batch with chance q, independently of all others, with all
rows, and adds the mean of their clipped gradients to its sum, which is no longer than C. So a batch is a Poisson batch of Abadi
et al. 2016, Algorithm 1, with a person in the place of each row (as in McMahan et al., ICLR 2018, Algorithm 1), and replacing a
person is replacing one of these. The theorems of the accountants ask nothing else of what is drawn. Without the mean it would be
k C. Drawing rows, and then all rows of their persons, would draw a person of k rows with chance 1 - (1 - q)^k, above q.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpviz.common.random import Batches, person_batches, shuffled_batches
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, Streams, Training, knob
from dpviz.mechanisms.calibration import StepSize
from dpviz.mechanisms.gradient.noisy_sgd import ROUNDING, Plan
from dpviz.mechanisms.gradient.poisson_sgd import EqualSteps, sampling_rate_knob
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.account import Method
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.individual import IndividualEpsilon


@dataclass(frozen=True)
class SampledSteps(StepSize):
    """The step size, and the share of the rows that a batch holds on average.

    Attributes:
        sampling_rate: q, at which batches are drawn because the noise was computed for it.
    """

    sampling_rate: float


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
        "(ε, δ)-DP, proved: composition of Poisson-subsampled Gaussians. "
        "Random reshuffling: proved for replaced rows, by exact composition of one Gaussian release an epoch."
    )

    sampling_rate: float = sampling_rate_knob(0.0, rules.SAMPLING_RATE)
    batches: str = knob(
        "poisson",
        "Batches",
        "Poisson sampling (poisson): every row is in a batch with the same probability. Random reshuffling (reshuffled): a new "
        "order every epoch, cut into batches, whole epochs. Poisson sampling of persons (persons), where ε is for a person: "
        "every person is in a batch with the same probability, with the mean of all their rows.",
        options=("poisson", "reshuffled", "persons"),
        names={"poisson": "Poisson sampling", "reshuffled": "random reshuffling", "persons": "Poisson sampling of persons"},
    )

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        if knob != "sampling_rate":
            return super().automatic(knob, setting, budget)
        # the sum of a shuffled batch needs the same noise however small the batch is
        return rules.SHARE if self._reshuffled else rules.sampling_rate(setting)

    def fix_batches(self, *calibrations: Calibration) -> Self:
        rates = sorted({one.values(SampledSteps).sampling_rate for one in calibrations})
        if len(rates) > 1:  # all replicas of a seed share their batches
            cause = f"these were made for batches of different sampling rates: {', '.join(f'{rate:g}' for rate in rates)}"
            raise InvalidInput("calibrations", cause, "Train each by itself, or set the sampling rate.")
        return replace(self, sampling_rate=rates[0])

    @property
    def _reshuffled(self) -> bool:
        return self.batches == "reshuffled"

    @property
    def draws_persons(self) -> bool:
        return self.batches == "persons"

    def _of_persons(self, problem: Problem) -> Problem:
        """The problem in which all rows of one person count as one, where persons are drawn."""
        whole = self.draws_persons and problem.rows.person_rows > 1
        return replace(problem, rows=problem.rows.average_persons()) if whole else problem

    def _per_epoch(self, setting: Setting) -> int:
        """Batches of a shuffled epoch."""
        return max(1, round(1 / super().batch_share(setting)))

    @property
    def _epochs(self) -> int:
        """Whole epochs, at least one."""
        return max(1, round(self.epochs))

    def batch_share(self, setting: Setting) -> float:
        return 1 / self._per_epoch(setting) if self._reshuffled else super().batch_share(setting)

    def step_count(self, setting: Setting) -> int:
        return self._epochs * self._per_epoch(setting) if self._reshuffled else super().step_count(setting)

    @property
    def method(self) -> Method:
        if not self._reshuffled:
            return super().method
        if self.relation != Neighbouring.REPLACE_ONE.value:
            raise InvalidInput(
                "relation", "a row that is added moves the others to other batches of the order", 'Choose "replace-one".'
            )
        return Method("gaussian" if self.accountant == "pld" else self.accountant, Neighbouring.REPLACE_ONE)

    def drawing(self, problem: Problem) -> Batches:
        rows = problem.rows
        if self.draws_persons and rows.person_rows > 1:
            assert rows.persons is not None  # `Rows.averaged` asked for them
            return person_batches(rows.persons, self.batch_share(problem.setting))
        if not self._reshuffled:
            return super().drawing(problem)
        # sizes differ by at most one row; all are divided by the same public number
        return shuffled_batches(np.linspace(0, len(rows), self._per_epoch(problem.setting) + 1).astype(np.intp))

    def noisy_sums(self, setting: Setting, contribution: float, sigma: float = 1.0) -> Event:
        if not self._reshuffled:
            return super().noisy_sums(setting, contribution, sigma)
        return Repeated(Gaussian.of_rows(contribution, sigma), self._epochs)

    def noise_multiplier(self, setting: Setting, budget: Budget) -> float:
        if self._reshuffled and self.method.accountant == "gaussian":
            return 2 * math.sqrt(self._epochs) / gaussian_mu(budget)
        return super().noise_multiplier(setting, budget)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        base = super().calibrate(setting, budget)
        base = replace(base, for_training=SampledSteps(base.values(StepSize).step_size, self.batch_share(setting)))
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
                f"{self._epochs:,} epochs of {self._per_epoch(setting):,} batches cost as much as {self._epochs:,} full batches: "
                "that the order is secret is not counted on.",
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

    def fit(self, training: Training) -> Fit:
        return super().fit(replace(training, problem=self._of_persons(training.problem)))

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        return super().query(self._of_persons(problem), theta, streams)

    def plan(self, training: Training) -> Plan:
        return self.batch_plan(training.problem, self.equal_step_sizes(training))
