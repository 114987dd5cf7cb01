"""What influence, leverage and Newton step of every row cost beside the two products they need, on Adult's shape.

    python benchmarks/influence.py

The two products are X'WX, with the weighting, and X H^{-1}. Prints ratios from one run; the matrix is random with
Adult's shape (39,073 x 109). The minimiser is found before the clock starts. Processor time on one thread does not
depend on what else the machine does, as far as anything does; the clock's time with all threads needs an idle machine.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np

from dpviz.common.threads import one_blas_thread
from dpviz.influence import influence_of
from dpviz.models import Rows, derivatives_of, get_model
from dpviz.models.problem import Problem

ROUNDS = 9


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Time of one call."""
    start = clock()
    work()
    return clock() - start


def report(what: str, products: Callable[[], object], influence: Callable[[], object], clock: Callable[[], float]) -> None:
    """Times both in turn and prints the ratio of the medians and that of the shortest times."""
    pairs = [(seconds(products, clock), seconds(influence, clock)) for _ in range(ROUNDS)]
    two, everything = zip(*pairs, strict=True)
    middle = statistics.median(everything) / statistics.median(two)
    print(
        f"{what}: influence of all rows takes {middle:.2f} times the two products "
        f"({1e3 * statistics.median(everything):.0f} and {1e3 * statistics.median(two):.0f} ms, medians of {ROUNDS}; "
        f"shortest {min(everything) / min(two):.2f})"
    )


def main() -> None:
    """Times influence beside the two products, and exact leave-one-out."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((39_073, 109))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    problem = Problem(Rows(x, np.where(x[:, 0] > 0, 1.0, -1.0)), get_model("logistic"), 1e-3)
    weight = derivatives_of(problem.model).slopes(problem.optimum, problem.rows)[1][:, None]
    inverse = np.linalg.inv(derivatives_of(problem.model).hessian(problem.optimum, problem.rows, problem.lam))

    def products() -> object:
        return (x * weight).T @ x, x @ inverse

    def influence() -> object:
        found = influence_of(problem)
        return found.norm, found.leverage, found.newton_norm

    products(), influence()  # warm
    with one_blas_thread():
        report("processor time, one thread", products, influence, time.process_time)
    report("the clock's time, all threads", products, influence, time.perf_counter)
    found = influence_of(problem)
    top = np.argsort(-found.newton_norm)[:256]
    took = seconds(lambda: found.leave_one_out(top))
    print(f"exact leave-one-out: {1e3 * took / len(top):.1f} ms a row over {len(top)} rows")


if __name__ == "__main__":
    main()
