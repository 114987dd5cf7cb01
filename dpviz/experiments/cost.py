"""What a private model's accuracy is lost to: noise, training, and preparation of the rows.

Three reference models stand between a private model and an ordinary one: the same training without noise (same seeds,
batches and starting point), the non-private optimum on the same rows, and an ordinary logistic regression on
standardised columns. Each difference between neighbours has one cause.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, silent
from dpviz.common.random import spawn
from dpviz.experiments.resolve import resolve
from dpviz.experiments.setup import setup_for
from dpviz.experiments.spec import RunSpec
from dpviz.mechanisms import Calibration, Fit
from dpviz.mechanisms.base import Training
from dpviz.models.problem import accuracy

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cost:
    """Test accuracies that a run's accuracy is compared with. S seeds.

    Attributes:
        private: (S,) of the private models.
        noiseless: (S,) of the same training without noise.
        non_private: of the non-private optimum on the same rows.
        ordinary: of an ordinary logistic regression on standardised columns; None where it was not computed.
    """

    private: Floats
    noiseless: Floats
    non_private: float
    ordinary: float | None

    @property
    def noise(self) -> float:
        """Accuracy lost to the noise alone, in [-1, 1]; below 0 where noise helped by chance."""
        return float(self.noiseless.mean() - self.private.mean())

    @property
    def noise_error(self) -> float:
        """Standard error of `noise`; NaN for one seed."""
        s = len(self.private)
        return float(np.std(self.noiseless - self.private, ddof=1) / s**0.5) if s > 1 else float("nan")

    @property
    def training(self) -> float:
        """Accuracy lost to what the method does beside noise: few or short steps, clipping, added regularisation."""
        return float(self.non_private - self.noiseless.mean())

    @property
    def preparation(self) -> float | None:
        """Accuracy lost to scaling the rows into the unit ball and to the regularised constant feature."""
        return None if self.ordinary is None else self.ordinary - self.non_private

    def table(self) -> pd.DataFrame:
        """One row for each part; private + noise + training + preparation is the ordinary model's accuracy."""
        rows = [("private", float(self.private.mean())), ("noise", self.noise), ("training", self.training)]
        if self.preparation is not None:
            rows.append(("preparation", self.preparation))
        return pd.DataFrame(rows, columns=["part", "accuracy"])


def train_without_noise(spec: RunSpec, calibration: Calibration, monitor: Monitor = silent) -> Fit:
    """A run's replicas trained with the same seeds, batches and starting points, but without noise.

    Args:
        calibration: of the run; its noise scale is set to 0.
    """
    problem = setup_for(spec).problem
    streams = spawn(spec.seed, spec.seeds)
    return spec.build().fit(Training(problem, [calibration.noiseless()], streams, record=False, monitor=monitor))


def split_cost(spec: RunSpec, private: Floats, calibration: Calibration | None = None, monitor: Monitor = silent) -> Cost:
    """Splits the cost of a run into noise, training and preparation.

    Args:
        spec: the run.
        private: (S,) its test accuracies (`Result.accuracy`).
        calibration: of the run, where it is known: finding it again takes long for composed releases.
    """
    run, setup = resolve(spec), setup_for(spec)
    if calibration is None:
        calibration = spec.build().calibrate(setup.problem.setting, run.budget)
    fit = train_without_noise(run.spec, calibration, monitor)
    if fit.constant_label is not None:
        noiseless = (setup.test.y[:, None] == fit.constant_label[0]).mean(axis=0)
    else:
        noiseless = accuracy(setup.problem.model, fit.theta[0], setup.test)
    return Cost(np.asarray(private, float), noiseless, setup.non_private.accuracy, setup.ordinary_accuracy)
