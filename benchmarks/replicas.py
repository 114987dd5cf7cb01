"""Cost of a replica among others: 100 DP-GD models in one call against one by one, on Adult's shape.

    python benchmarks/replicas.py

Prints a ratio from one run; the matrix is random with Adult's shape (39,073 x 108).
"""

import statistics
import time
from collections.abc import Callable

import numpy as np

from dpviz.common.random import spawn
from dpviz.mechanisms import Training, get_mechanism
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget

REPLICAS, STEPS, ROUNDS = 100, 20, 5


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Times both ways in turn and prints the median ratio."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((39_073, 108))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    problem = Problem(Rows(x, np.where(x[:, 0] > 0, 1.0, -1.0)), get_model("logistic"), 1e-3)
    mechanism = get_mechanism("dp-gd").from_params({"steps": STEPS})
    calibration = [mechanism.calibrate(problem.setting, Budget(1.0, 1e-6))]
    streams = spawn(0, REPLICAS)
    mechanism.fit(Training(problem, calibration, streams[:1]))  # warm
    ratios = []
    for _ in range(ROUNDS):
        together = seconds(lambda: mechanism.fit(Training(problem, calibration, streams)))
        alone = seconds(lambda: [mechanism.fit(Training(problem, calibration, [s])) for s in streams])
        ratios.append(alone / together)
        print(f"together {together:.2f} s, one by one {alone:.2f} s, ratio {alone / together:.1f}")
    print(f"a replica is {statistics.median(ratios):.1f} times cheaper among others (median of {ROUNDS})")


if __name__ == "__main__":
    main()
