"""Training step by step: the iterates of a run whose guarantee covers all of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.random import spawn
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.metrics import measure_models
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import calibration_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import PublicSteps, Training

MOST_FRAMES = 40


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The iterates of S replicas after K numbers of steps; m parameters.

    Attributes:
        spec: the run, its dataset under its canonical name.
        steps: (K,) numbers of steps, rising, from 0 to `total`.
        total: T, the steps of the whole run.
        theta: (K, S, m) iterates.
    """

    spec: RunSpec
    steps: NDArray[np.intp]
    total: int
    theta: Floats

    def measure(self, metric: str) -> Floats:
        """(K, S) values of a metric (an id of `get_metric`) on the test rows; NaN where it has none."""
        shared, (k, s, m) = setup_for(self.spec), self.theta.shape
        table = measure_models(shared.problem.model, self.theta.reshape(k * s, m), shared.test, None, [metric])
        return table.to_numpy(float).reshape(k, s)


def trajectory(spec: RunSpec, frames: int = MOST_FRAMES) -> Trajectory | None:
    """A run's iterates, more of them early, where the model moves most; None where not every iterate is public.

    A run of k steps with the noise of the whole run is its beginning (`PublicSteps`), so each iterate is trained anew.

    Args:
        frames: at most so many iterates, the start and the end among them; at least 2.
    """
    mechanism, problem = spec.build(), setup_for(spec).problem
    if not isinstance(mechanism, PublicSteps):
        return None
    total, calibration = mechanism.step_count(problem.setting), calibration_of(spec)
    steps = np.unique(np.r_[0, np.geomspace(1, total, frames - 1).round().astype(int)])
    start = problem.model.initial(problem.m, spawn(spec.seed, spec.seeds))
    theta: list[Floats] = [np.array(np.broadcast_to(start, (spec.seeds, problem.m)))]
    for k in steps[1:]:
        stopped = mechanism.stopped_after(int(k))
        training = Training(problem, [calibration], spawn(spec.seed, spec.seeds), record=False)
        theta.append(train(stopped, training).fit.theta[0])
    return Trajectory(resolve(spec).spec, steps, total, np.stack(theta))
