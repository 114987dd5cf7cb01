"""Output and objective perturbation of a network, as Kang et al. train it: noise by the published formulas, no guarantee.

The formulas follow from strong convexity and from bounds on slope and curvature, which a network has not. The paper names no
constants in their place; `WithoutGuarantee` has ours. Both methods are in no list of mechanisms: panels of figures alone have
them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.mechanisms import Calibration, Fit, Mechanism, NoiseRecord, Training
from dpviz.mechanisms.objective.kst_objective import KSTObjective
from dpviz.mechanisms.objective.perturbed_objective import Regularised
from dpviz.mechanisms.output.minimiser_noise import release
from dpviz.mechanisms.output.outpert_gd import OutPertGD
from dpviz.models import Setting
from dpviz.models.solvers.network_training import polish
from dpviz.papers.claims.context import Context
from dpviz.papers.figures.catalogue import Setup
from dpviz.privacy.budget import Budget, Status


class WithoutGuarantee(Mechanism):
    """Base: the noise of a published formula at G = 1, L = 1/step and mu = lambda, none of which is true of a network."""

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        nominal = replace(setting, G=1.0, beta=1 / setting.unit_step - setting.lam, convex=True)
        return replace(
            super().calibrate(nominal, budget),  # type: ignore[safe-super]
            status=Status.NONE,
            proved_budget=None,
            claimed_budget=None,
            conditions=(),
        )


class NetworkOutput(WithoutGuarantee, OutPertGD):
    """The non-private network + N(0, sigma^2 I)."""

    def fit(self, training: Training) -> Fit:
        return release(training, training.problem.optimum, NoiseRecord(self.noise_enters))


class NetworkObjective(WithoutGuarantee, KSTObjective):
    """Descent on F + <b, theta>/n + Delta/(2n) |theta|^2 from random starts, as far as the work allowed a network goes."""

    def fit(self, training: Training) -> Fit:
        problem, n = training.problem, training.problem.n
        draws = training.calibrations[0].noise_family.sample(training.streams, problem.m)
        pairs = [*zip(problem.model.initial(problem.m, training.streams), draws, strict=True)]

        def descend(calibration: Calibration, start: Floats, draw: Floats) -> Floats:
            linear, lam = calibration.noise_scale * draw / n, calibration.values(Regularised).Lam / n

            def objective(theta: Floats) -> tuple[Floats, Floats]:
                value, gradient = problem.model.value_and_gradient(theta, problem.rows, lam)  # type: ignore[attr-defined]
                return value + theta @ linear, gradient + linear

            return polish(objective, n, start, lambda: training.monitor(0.0))

        ends = [[descend(calibration, *pair) for pair in pairs] for calibration in training.calibrations]
        return Fit(np.array(ends), NoiseRecord(self.noise_enters))


DESCENTS = 3  # draws of objective perturbation at a budget: each is a training of its own, of up to a minute
METHODS: dict[str, type[WithoutGuarantee]] = {"outpert-gd": NetworkOutput, "kst-objective": NetworkObjective}


def measure(panel: Setup, epsilons: Sequence[float]) -> list[pd.DataFrame]:
    """A sweep's table of each method of a panel that is trained here because it refuses the panel's model."""
    values = {name: panel.values[name] for name in ("dataset", "model", "lam", "delta")}
    return [
        Context()
        .measure(
            cls(**panel.figure.knobs[name]),
            epsilons=epsilons,
            seeds=panel.values["seeds"] if cls is NetworkOutput else DESCENTS,
            stream=name,
            **values,
        )
        .rows(name)
        for name, cls in METHODS.items()
        if name in panel.figure.methods and name not in panel.values["mechanisms"]
    ]
