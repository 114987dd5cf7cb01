"""Audits every mechanism on the pair that should be its worst: claimed, proved and audited epsilon in one row.

python benchmarks/audit_board.py [runs] [epsilon]
"""

import sys
import time

import dpviz
from dpviz.auditing import audit, worst_case
from dpviz.models import get_model
from dpviz.privacy.budget import Budget


def main(runs: int = 400, epsilon: float = 2.0) -> None:
    budget = Budget(epsilon, 1e-5)
    print(
        f"{'mechanism':20} {'pair':9} {'claimed':>8} {'proved':>8} {'audited':>8} {'Gaussian':>8} {'score':10} {'s':>5}  verdict"
    )
    for name, cls in dpviz.list_mechanisms().items():
        begun = time.perf_counter()
        try:
            mechanism = cls()
            pair = worst_case(mechanism, get_model("svm"), budget, n=60, d=2, lam=0.1)
            result = audit(mechanism, pair.first, pair.second, budget, runs, seed=1, confidence=0.99)
        except (dpviz.InvalidInput, FloatingPointError) as error:
            print(f"{name:20} {error}")
            continue
        cal, gauss = result.calibration, result.gaussian_epsilon_lower
        shown = [f"{b.epsilon:8.3g}" if b else f"{'none':>8}" for b in (cal.claimed_budget, cal.proved_budget)]
        seconds = time.perf_counter() - begun
        print(
            f"{name:20} {pair.name:9} {shown[0]} {shown[1]} {result.epsilon_lower:8.3f} "
            f"{'' if gauss is None else format(gauss, '.3f'):>8} {result.score:10} {seconds:5.1f}  {result.verdict}",
            flush=True,
        )


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((int, float), sys.argv[1:], strict=False)))
