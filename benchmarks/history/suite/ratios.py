"""What a step, a fit, a calibration and an influence pass cost, in units of one reference loop that is timed beside them.

asv keeps these numbers for every commit: `track_` functions return a number, and that number is a ratio, so that the history of
a busy machine, or of another machine, can still be read. Only names that `dpviz` exports are used, so that older commits run too.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

import dpviz

ROUNDS = 15
_ROWS, _COLUMNS, _REPLICAS = 20_000, 100, 10
_numbers = np.random.default_rng(0)
_TABLE = _numbers.normal(size=(_ROWS, _COLUMNS))
_WEIGHTS = _numbers.normal(size=(_COLUMNS, _REPLICAS)) / 10
#: a seed or a budget that no call had before, because results are kept
_fresh: Iterator[int] = count(1)


def reference() -> None:
    """One full gradient of logistic regression for 10 models on 20,000 x 100 numbers, in plain numpy."""
    slope = 1 / (1 + np.exp(_TABLE @ _WEIGHTS))
    _TABLE.T @ slope


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(work: Callable[[], object]) -> float:
    """Median over rounds of the work's time over the reference's time in the same round; both take turns."""
    reference()
    work()
    return statistics.median(seconds(work) / seconds(reference) for _ in range(ROUNDS))


def fit(mechanism: str, dataset: str = "census-20000", **params: object) -> None:
    dpviz.run(dpviz.RunSpec(dataset=dataset, mechanism=mechanism, seeds=10, seed=next(_fresh), params=params))


def step(mechanism: str, knob: str, few: float, many: float, steps: float) -> float:
    """Ratio of one step: a long training less a short one, over the steps between them."""
    long = ratio(lambda: fit(mechanism, **{knob: many}))
    short = ratio(lambda: fit(mechanism, **{knob: few}))
    return (long - short) / steps


class Ratios:
    """Each number is a multiple of the reference loop."""

    unit = "reference loops"
    timeout = 600

    def track_step_of_full_gradients(self) -> float:
        return step("dp-gd", "steps", 20, 120, 100)

    def track_step_of_batches(self) -> float:
        return step("dp-sgd", "epochs", 1, 11, 10 / dpviz.list_mechanisms()["dp-sgd"].defaults()["sampling_rate"])

    def track_fit_of_objective_perturbation(self) -> float:
        return ratio(lambda: fit("objective-tight"))

    def track_fit_of_averaged_restarts(self) -> float:
        return ratio(lambda: fit("rsgd-ar", "breast-cancer"))

    def track_calibration_by_loss_distribution(self) -> float:
        # another budget each time, because a calibration is kept
        return ratio(lambda: dpviz.calibrate("dp-sgd", n=45_222, d=109, epsilon=1 + 1e-6 * next(_fresh), delta=1e-6))

    def track_influence_of_all_rows(self) -> float:
        problem = dpviz.setup_for(dpviz.RunSpec(dataset="census-20000")).problem
        theta = np.full(problem.m, 0.1)
        return ratio(lambda: dpviz.influence_of(problem, theta + 1e-6 * next(_fresh)).newton_norm)
