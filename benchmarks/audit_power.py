"""The share of audits that catch Gaussian noise that is too small: what is possible at all, and what is measured.

python benchmarks/audit_power.py [runs] [share] [games]
"""

import dataclasses
import sys

from dpviz.auditing import EXCEEDED, audit
from dpviz.auditing.pairs import make
from dpviz.mechanisms import Fit, Mechanism, Training
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model
from dpviz.privacy.audit_bounds import power
from dpviz.privacy.budget import Budget


def weaker(mechanism: Mechanism, share: float) -> Mechanism:
    """The mechanism with less noise than it is calibrated to."""
    base = type(mechanism)

    def fit(self: Mechanism, training: Training) -> Fit:
        less = [dataclasses.replace(c, noise_scale=share * c.noise_scale) for c in training.calibrations]
        return base.fit(self, dataclasses.replace(training, calibrations=less))

    return type("Weaker", (base,), {"fit": fit})(**dataclasses.asdict(mechanism))


def main(runs: int = 5000, share: float = 0.8, games: int = 20) -> None:
    pair = make("quiet", get_model("svm"), 20, 2, 0.2)
    print(f"{runs:,} runs a side, noise x {share:g}, {games} games, delta = 1e-5\n")
    print("                possible at most   caught              alarms, all noise added")
    print("confidence eps  free    counted    known   unknown     known   unknown")
    for confidence in (0.95, 0.99):
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            budget = Budget(epsilon, 1e-5)
            free, counted = power(budget, runs, share, confidence)
            caught = []
            for part in (share, 1.0):
                for mechanism in (OutputGaussian(), DPGD(steps=2, step_size=0.1)):
                    verdicts = [
                        audit(weaker(mechanism, part), pair.first, pair.second, budget, runs, k, confidence=confidence).verdict
                        for k in range(games)
                    ]
                    caught.append(sum(v == EXCEEDED for v in verdicts))
            print(
                f"{confidence:<10g} {epsilon:<4g} {free:<7.4f} {counted:<10.4f} "
                + " ".join(f"{c:>2} / {games:<4}" for c in caught),
                flush=True,
            )


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((int, float, int), sys.argv[1:], strict=False)))
