"""Gradient descent in which every row has its own privacy budget and leaves when that is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.mechanisms.base import Calibration, Fit, Mechanism, Monitor, NoiseRecord, Streams, knob, scales, silent
from dpviz.models import Setting
from dpviz.noise import generator, substreams
from dpviz.privacy.budget import Budget, Status
from dpviz.privacy.calibration import gaussian_mu
from dpviz.problem import Problem


@dataclass(frozen=True)
class RenyiFilter(Mechanism):
    """DP-GD in which a row takes part while the squares of its gradients sum to at most B = T0 C^2.

    Why this is (epsilon, delta)-DP under replace-one [ours; zCDP form: Feldman, Zrnic 2021; Gaussian form: Koskela,
    Tobaben, Honkela 2023]. Whether a row is active depends on that row and on earlier outputs only. Given those,
    replacing a row moves step t's sum by at most a_t + b_t, the lengths that the old and the new row contribute, and
    along every path sum a_t^2 <= B, sum b_t^2 <= B, so sum (a_t + b_t)^2 <= 4B. Let step t have mu_t = (a_t + b_t)/s,
    predictable from the past, and release once more with what is left of mu^2 = 4B/s^2. The privacy loss is then
    mu^2/2 + S with S = sum mu_t Z_t, and E exp(x S - x^2 mu^2/2) = 1 for every x, so S is exactly N(0, mu^2): the
    whole run is a post-processing of one Gaussian mechanism with parameter mu, however many steps it takes.
    """

    id = "renyi-filter"
    label = "Individually filtered DP-GD"
    family = "gradient"
    citation = "Feldman, Zrnic, NeurIPS 2021, Algorithm 3 and Theorem 4.5; Gaussian form: Koskela, Tobaben, Honkela, ICLR 2023"
    noise_enters = "Every full-batch gradient of the rows that still have budget: one Gaussian draw per step."
    guarantee = (
        "(ε, δ)-DP, proved: no row ever spends more than its budget, which costs exactly what DP-GD with that many "
        "full-length gradients costs."
    )

    full_steps: int = knob(
        50, "Budget per row", "How many gradients of clip-norm length every row can afford; sets the noise.",
        low=1, high=10_000, log=True, unit="full-length gradients",
    )  # fmt: skip
    steps: int = knob(100, "Steps", "Steps taken; they cost nothing beyond the budget per row.", low=1, high=10_000, log=True)
    step_size: float = knob(1.0, "Step size", "Length of a step.", low=0.01, high=10.0, log=True, unit="1/L")
    clip_norm: float = knob(
        1.0, "Clip norm", "Longest gradient a row may contribute; 1 clips nothing for linear models.",
        low=0.001, high=100.0, log=True,
    )  # fmt: skip
    when_spent: str = knob(
        "leave", "When spent", "A row whose next gradient is too dear leaves for good (as published), or gives what is left.",
        options=("leave", "give what is left"),
    )  # fmt: skip

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        bound = min(self.clip_norm, setting.G)
        mu = gaussian_mu(budget)
        # mu = 2 sqrt(B)/(n sigma), B = T0 C^2: the noise of DP-GD with T0 steps
        sigma = 2 * bound * math.sqrt(self.full_steps) / (setting.n * mu)
        notes = (
            "Each row's own spending depends on private data: the table of rows is for the data owner, not for release.",
            "Rows that leave are the ones that the model gets wrong, so long runs forget the hard rows; fewer steps or a "
            "larger budget per row keep them.",
        )
        return Calibration(
            budget=budget,
            sensitivity=2 * bound / setting.n,
            query="the mean gradient of the active rows in one step",
            sensitivity_source="one replaced row moves the mean by at most 2 min(C, G)/n, active or not",
            noise_scale=sigma,
            noise_family="gaussian",
            neighbouring=self.neighbouring,
            claimed=budget,
            proved=budget,
            status=Status.PROVED,
            accountant="individual Gaussian privacy filter",
            conversion="μ-GDP to (ε, δ), Balle & Wang 2018, Theorem 8",
            notes=notes,
            details={
                "mu": mu,
                "row_budget": self.full_steps * bound**2,
                "rho_add_remove": self.full_steps * bound**2 / (2 * (setting.n * sigma) ** 2),  # Feldman & Zrnic 2021
                "rho_replace_one": mu**2 / 2,
                "guaranteed_steps": float(self.full_steps),
            },
        )

    def fit(
        self, problem: Problem, calibrations: Sequence[Calibration], streams: Streams, *,
        record: bool = True, monitor: Monitor = silent,
    ) -> Fit:  # fmt: skip
        n, m, e, s = problem.n, problem.m, len(calibrations), len(streams)
        sigma = np.repeat(scales(calibrations), s)[:, None]
        sources = [substreams(stream, 2) for stream in streams]
        generators = [generator(noise) for _, noise in sources]
        theta = np.tile(problem.model.initial(m, [start for start, _ in sources]), (e, 1))
        row_filter = _Filter(n, e * s, self._row_budget(problem.setting), self.when_spent == "leave", record)
        step = self.step_size * problem.setting.unit_step
        timeline = np.zeros((e * s, self.steps))
        for t in range(self.steps):
            monitor(t / self.steps)
            draw = np.tile(np.stack([g.standard_normal(m) for g in generators]), (e, 1))
            gradient = problem.model.sum_gradient(theta, problem.rows, clip_norm=self.clip_norm, rule=row_filter) / n
            theta -= step * (gradient + sigma * draw + problem.lam * theta)  # Feldman & Zrnic 2021, Algorithm 3
            timeline[:, t] = row_filter.take_active()
        shape = (e, s, n)
        return Fit(
            theta.reshape(e, s, m),
            NoiseRecord(
                self.noise_enters + " The margin is a row's demand over its budget, minus 1; above 0 the row was stopped.",
                visits=row_filter.visits.T.reshape(shape) if record else None,
                rule_margin=(row_filter.demand / row_filter.budget - 1).T.reshape(shape) if record else None,
                timeline=timeline.reshape(e, s, self.steps),
            ),
        )

    def query(self, problem: Problem, theta: np.ndarray, streams: Streams) -> np.ndarray:
        return problem.model.sum_gradient(theta, problem.rows, clip_norm=self.clip_norm) / problem.n

    def _row_budget(self, setting: Setting) -> float:
        return self.full_steps * min(self.clip_norm, setting.G) ** 2


class _Filter:
    """A rule for `Model.sum_gradient`: weights that keep every row's sum of squared gradients within its budget.

    Attributes:
        budget: B.
        demand: (n, R) sum of squared clipped gradients, the unused ones included where rows leave for good.
        visits: (n, R) steps in which a row took part.
    """

    def __init__(self, n: int, replicas: int, budget: float, leave: bool, record: bool) -> None:
        self.budget = budget
        self.demand = np.zeros((n, replicas))
        self.visits: NDArray[np.int32] = np.zeros((n, replicas) if record else (0, 0), np.int32)
        self._leave, self._record = leave, record
        self._active = np.zeros(replicas)

    def __call__(self, block: slice, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        cost = norms * norms
        spent = self.demand[block]
        if self._leave:
            spent += cost
            # rounding may put T0 full-length gradients a hair above T0 C^2; the slack is far below the noise
            weights = (spent <= self.budget * (1 + 1e-12)).astype(float)
        else:
            left = np.maximum(self.budget - spent, 0.0)
            weights = np.sqrt(np.minimum(1.0, left / np.maximum(cost, 1e-300)))
            spent += np.minimum(cost, left)
        active = weights > 0
        self._active += active.sum(axis=0)
        if self._record:
            self.visits[block] += active
        return weights

    def take_active(self) -> NDArray[np.float64]:
        """(R,) rows that took part since the last call."""
        out, self._active = self._active, np.zeros_like(self._active)
        return out
