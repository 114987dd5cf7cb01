"""Cost of privacy: a metric of the same model, weights, columns and ranges without privacy, minus that of the private model.

The same training without noise (same seeds, batches and starting point) stands between both: what is lost up to it is lost to the
method's training (few or short steps, clipping, added regularisation), the rest to noise.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore
from dpviz.common.random import spawn
from dpviz.experiments.run.metrics import METRICS, Metric, get_metric, measure_models
from dpviz.experiments.run.run import NoiselessRun, Result
from dpviz.experiments.run.setup import Setup, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration, Fit, Training


@dataclass(frozen=True, eq=False)
class Cost:
    """Values of one metric on the test rows that a run's values are compared with. S seeds; NaN where it has no value.

    Attributes:
        private: (S,) of the private models.
        noiseless: (S,) of the same training without noise.
        non_private: of the model without privacy.
        majority: of the majority label for everyone.
        metric: what is measured.
        noiseless_run: the trained models without noise, for other metrics.
        expected: mean of the private models' values over all noise draws in closed form; None where there is none.
        error: half the width of the 95 % interval of `total`, over test rows and noise draws.
        floor_error: the same of the model without privacy against the majority label, over test rows.
    """

    private: Floats
    noiseless: Floats
    non_private: float
    majority: float = float("nan")
    metric: Metric = METRICS["accuracy"]
    noiseless_run: NoiselessRun | None = None
    expected: float | None = None
    error: float = 0.0
    floor_error: float = 0.0

    @property
    def mean(self) -> float:
        """The private value that pages and curves show: in closed form where there is one, else over the seeds."""
        return float(self.private.mean()) if self.expected is None else self.expected

    @property
    def _better(self) -> int:
        return 1 if self.metric.higher_is_better else -1

    @property
    def has_value(self) -> bool:
        """True where the metric has a value for this method and model."""
        return bool(np.isfinite([*self.private, *self.noiseless, self.non_private]).all())

    @property
    def noise(self) -> float:
        """The loss by noise alone; below 0 where noise helped by chance."""
        return self._better * float(self.noiseless.mean() - self.mean)

    @property
    def noise_error(self) -> float:
        """Standard error of `noise`; NaN for one seed."""
        s = len(self.private)
        return float(np.std(self.noiseless - self.private, ddof=1) / s**0.5) if s > 1 else float("nan")

    @property
    def training(self) -> float:
        """The loss by what the method does beside noise: few or short steps, clipping, added regularisation."""
        return self._better * float(self.non_private - self.noiseless.mean())

    @property
    def total(self) -> float:
        """The cost of privacy; below 0 where the private models are better."""
        return self._better * (self.non_private - self.mean)

    @property
    def measurable(self) -> bool:
        """True where these test rows and noise draws tell the cost from 0."""
        return abs(self.total) > max(self.error, 0.0005)

    def table(self) -> pd.DataFrame:
        """One row for each part; private + noise + training is the value without privacy (minus them for losses)."""
        rows = [("private", self.mean), ("noise", self.noise), ("training", self.training)]
        return pd.DataFrame(rows, columns=["part", self.metric.column])


def train_without_noise(spec: RunSpec, calibration: Calibration, monitor: Monitor = ignore) -> Fit:
    """A run's replicas trained with the same seeds, batches and starting points, but without noise.

    Args:
        calibration: of the run; its noise scale is set to 0.
    """
    problem = setup_for(spec).problem
    streams = spawn(spec.seed, spec.seeds)
    return spec.build().fit(Training(problem, [calibration.noiseless()], streams, record=False, monitor=monitor))


def split_cost(result: Result) -> Cost:
    """Splits the cost of a run in accuracy into noise and training; what was not trained without noise yet is now."""
    noiseless_run = result.noiseless_run or NoiselessRun.select(train_without_noise(result.spec, result.calibration), 0)
    return _compared(result, METRICS["accuracy"], result.accuracy, noiseless_run)


def _compared(result: Result, metric: Metric, private: Floats, noiseless_run: NoiselessRun) -> Cost:
    """Values (S,) of private models beside all that they are compared with."""
    setup = result.setup
    base = setup.baselines_in([metric.id])[metric.column]
    return Cost(
        private,
        _measured(setup, metric, noiseless_run.theta, noiseless_run.labels),
        float(base["non-private"]),
        float(base["majority"]),
        metric,
        noiseless_run,
        result.expected_value(metric.id),
        uncertainty(setup, metric, result.theta, result.labels),
        floor_error=uncertainty(setup, metric, setup.reference.optimum[None], setup.majority_label),
    )


def uncertainty(setup: Setup, metric: Metric, theta: Floats, labels: Floats | None) -> float:
    """Half the width of the paired 95 % interval of the model without privacy minus the mean of R others.

    Rows and noise draws are independent: the variances of the mean over rows and over draws add up. Only accuracy and balanced
    accuracy are means over rows; of other metrics the draws alone count, and one draw says nothing.

    Args:
        theta: (R, m).
        labels: (R,) labels released in the place of models, or None.
    """
    y, model = setup.test.y, setup.problem.model
    if metric.id not in ("accuracy", "balanced-accuracy"):
        values = _measured(setup, metric, theta, labels)
        return 1.96 * float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0
    called = model.scores(theta, setup.test) >= 0 if labels is None else np.broadcast_to(labels > 0, (len(y), len(theta)))
    base = model.scores(setup.reference.optimum[None], setup.test) >= 0
    better = (base == (y > 0)[:, None]).astype(float) - (called == (y > 0)[:, None])  # (rows, R)
    groups = [np.ones(len(y), bool)] if metric.id == "accuracy" else [y > 0, y < 0]
    means = np.stack([better[rows].mean(axis=0) for rows in groups if rows.any()])
    of_rows = sum(better[rows].mean(axis=1).var() / rows.sum() for rows in groups if rows.any()) / len(means) ** 2
    of_draws = means.mean(axis=0).var(ddof=1) / len(theta) if len(theta) > 1 else 0.0
    return 1.96 * float((of_rows + of_draws) ** 0.5)


def _measured(setup: Setup, metric: Metric, theta: Floats, labels: Floats | None) -> Floats:
    return measure_models(setup.problem.model, theta, setup.test, labels, [metric.id])[metric.column].to_numpy(float)


def cost_in_metric(result: Result, cost: Cost, metric: str) -> Cost:
    """A run's cost in another metric, from models that are trained already.

    Args:
        result: the run.
        cost: from `split_cost`, with its noiseless run.
        metric: an id (`get_metric`).
    """
    wanted = get_metric(metric)
    if cost.metric == wanted or cost.noiseless_run is None:
        return cost
    return _compared(result, wanted, _measured(result.setup, wanted, result.theta, result.labels), cost.noiseless_run)
