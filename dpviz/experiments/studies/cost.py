"""Costs of privacy by part: accuracy, or another metric, that is lost to noise, to training, and to preparation of the rows.

Three reference models stand between a private model and an ordinary one: the same training without noise (same seeds,
batches and starting point), the non-private optimum on the same rows, and an ordinary logistic regression on
standardised columns. Each difference between neighbours has one cause.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, silent
from dpviz.common.random import spawn
from dpviz.experiments.run.metrics import METRICS, Metric, get_metric, measure, measure_models
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.run import NoiselessRun
from dpviz.experiments.run.setup import Setup, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration, Fit, protection
from dpviz.mechanisms.base import Training


@dataclass(frozen=True, eq=False)
class Cost:
    """Values of one metric on the test rows that a run's values are compared with. S seeds; NaN where it has no value.

    Attributes:
        private: (S,) of the private models.
        noiseless: (S,) of the same training without noise.
        non_private: of the non-private optimum on the same rows.
        ordinary: of an ordinary logistic regression on standardised columns; None where it was not computed.
        majority: of the majority label for everyone.
        metric: what is measured.
        noiseless_run: the trained models without noise, for other metrics.
        expected: mean of the private models' values over all noise draws in closed form; None where there is none.
    """

    private: Floats
    noiseless: Floats
    non_private: float
    ordinary: float | None
    majority: float = float("nan")
    metric: Metric = METRICS["accuracy"]
    noiseless_run: NoiselessRun | None = None
    expected: float | None = None

    @property
    def mean(self) -> float:
        """The private value that pages and curves show: in closed form where there is one, else over the seeds."""
        return float(self.private.mean()) if self.expected is None else self.expected

    @property
    def _better(self) -> int:
        return 1 if self.metric.higher_is_better else -1

    @property
    def there(self) -> bool:
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
    def preparation(self) -> float | None:
        """The loss by scaling the rows into the unit ball and by the regularised constant feature."""
        return None if self.ordinary is None else self._better * (self.ordinary - self.non_private)

    def table(self) -> pd.DataFrame:
        """One row for each part; private + noise + training + preparation is the ordinary model's accuracy.

        For losses, which are better where they are lower, the parts are taken away instead.
        """
        rows = [("private", self.mean), ("noise", self.noise), ("training", self.training)]
        if self.preparation is not None:
            rows.append(("preparation", self.preparation))
        return pd.DataFrame(rows, columns=["part", self.metric.column])


def train_without_noise(spec: RunSpec, calibration: Calibration, monitor: Monitor = silent) -> Fit:
    """A run's replicas trained with the same seeds, batches and starting points, but without noise.

    Args:
        calibration: of the run; its noise scale is set to 0.
    """
    problem = setup_for(spec).problem
    streams = spawn(spec.seed, spec.seeds)
    return spec.build().fit(Training(problem, [calibration.noiseless()], streams, record=False, monitor=monitor))


def split_cost(
    spec: RunSpec,
    private: Floats,
    calibration: Calibration | None = None,
    *,
    expected: float | None = None,
    noiseless_run: NoiselessRun | None = None,
) -> Cost:
    """Splits the cost of a run into noise, training and preparation.

    Args:
        spec: the run.
        private: (S,) its test accuracies (`Result.accuracy`).
        calibration: of the run, where it is known: finding it again takes long for composed releases.
        expected: its test accuracy over all noise draws (`Result.expected_accuracy`).
        noiseless_run: its training without noise, where that is there (`Result.noiseless_run`).
    """
    run, setup = resolve(spec), setup_for(spec)
    if noiseless_run is None:
        if calibration is None:
            calibration = protection.calibrate(spec.build(), setup.problem.setting, run.budget)
        noiseless_run = NoiselessRun.of(train_without_noise(run.spec, calibration), 0)
    accuracy = METRICS["accuracy"]
    return _compared(setup, accuracy, np.asarray(private, float), noiseless_run, setup.ordinary_scores, expected)


def _compared(
    setup: Setup, metric: Metric, private: Floats, noiseless_run: NoiselessRun, ordinary: Floats | None, expected: float | None
) -> Cost:
    """Values of private models beside all that they are compared with.

    Args:
        ordinary: scores of the ordinary model, None to leave it out.
    """
    base = setup.baselines_in([metric.id])[metric.column]
    return Cost(
        private,
        _measured(setup, metric, noiseless_run.theta, noiseless_run.labels),
        float(base["non-private"]),
        None if ordinary is None else float(measure(ordinary[None], setup.test.y, [metric.id])[metric.id][0]),
        float(base["majority"]),
        metric,
        noiseless_run,
        expected,
    )


def _measured(setup: Setup, metric: Metric, theta: Floats, labels: Floats | None) -> Floats:
    return measure_models(setup.problem.model, theta, setup.test, labels, [metric.id])[metric.column].to_numpy(float)


def in_metric(spec: RunSpec, cost: Cost, theta: Floats, labels: Floats | None, metric: str) -> Cost:
    """A run's cost in another metric, from models that are trained already.

    Args:
        spec: the run.
        cost: from `split_cost`, with its noiseless run.
        theta: (S, m) released parameters.
        labels: (S,) labels where a label was released in the place of a model.
        metric: an id (`get_metric`).
    """
    wanted = get_metric(metric)
    if cost.metric == wanted or cost.noiseless_run is None:
        return cost
    setup = setup_for(spec)
    ordinary = None if cost.ordinary is None else setup.ordinary_scores
    return _compared(setup, wanted, _measured(setup, wanted, theta, labels), cost.noiseless_run, ordinary, None)
