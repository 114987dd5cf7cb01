"""How much faster Algorithm 2 of Chen, Lee, Kifer (2019) is in closed form than update by update.

    python benchmarks/sensitivity.py

Prints the ratio and the largest relative difference, for T = 200 epochs of m = 500 batches.
"""

import statistics
import time

import numpy as np

from dpviz.privacy.sensitivity.bounds import algorithm2, algorithm2_recursion

ROUNDS, CALLS = 5, 200


def main() -> None:
    """Times both ways in turn and prints the median ratio, with and without averaging."""
    for tau in (0, 5):
        arguments = (200, 500, 1.0, 4000, 1e-3, 0.251, 1.0, tau)
        ratios = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            slow = algorithm2_recursion(*arguments)
            middle = time.perf_counter()
            for _ in range(CALLS):
                fast = algorithm2(*arguments)
            ratios.append((middle - start) * CALLS / (time.perf_counter() - middle))
        deviation = np.max(np.abs(fast / slow - 1))
        print(f"tau = {tau}: {statistics.median(ratios):.0f} times faster, largest relative difference {deviation:.1e}")


if __name__ == "__main__":
    main()
