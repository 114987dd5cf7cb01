"""What influence, leverage and Newton step of every row cost beside the two products they need, on Adult's shape.

    python benchmarks/influence.py

The two products are X'WX, with the weighting, and X H^{-1}. Prints ratios from one run; the matrix is random with
Adult's shape (39,073 x 109). The minimiser is found before the clock starts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from dpviz.influence import influence_of
from dpviz.models import Rows, get_model
from dpviz.problem import Problem

ROUNDS = 9


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Times both in turn and prints the median ratio."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((39_073, 109))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    problem = Problem(Rows(x, np.where(x[:, 0] > 0, 1.0, -1.0)), get_model("logistic"), 1e-3)
    weight = problem.model.slopes(problem.optimum, problem.rows)[1][:, None]
    inverse = np.linalg.inv(problem.model.hessian(problem.optimum, problem.rows, problem.lam))

    def products() -> object:
        return (x * weight).T @ x, x @ inverse

    def influence() -> object:
        found = influence_of(problem)
        return found.norm, found.leverage, found.newton_norm

    products(), influence()  # warm
    ratios = []
    for _ in range(ROUNDS):
        two, all_rows = seconds(products), seconds(influence)
        ratios.append(all_rows / two)
        print(f"products {1e3 * two:.0f} ms, influence {1e3 * all_rows:.0f} ms, ratio {all_rows / two:.2f}")
    print(f"influence of all rows takes {statistics.median(ratios):.2f} times the two products (median of {ROUNDS})")
    found = influence_of(problem)
    top = np.argsort(-found.newton_norm)[:256]
    took = seconds(lambda: found.leave_one_out(top))
    print(f"exact leave-one-out: {1e3 * took / len(top):.1f} ms a row over {len(top)} rows")


if __name__ == "__main__":
    main()
