"""Claims about running time, and about a curve's shape."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from dpviz.common.random import spawn
from dpviz.mechanisms import Training, list_mechanisms
from dpviz.papers.claims.base import Lab, Outcome, Picture, Verdict, constant, lines, percent
from dpviz.privacy.budget import Budget

RACERS = ("kst-objective", "rsgd-ar", "nsgd", "outpert-gd", "dp-sgd", "dp-agd")
TIE = 1.25  # times that are nearer than this are the same


def objective_fastest(lab: Lab) -> Verdict:
    """Objective perturbation is the fastest."""
    sizes = lab.choose((5000, 20000), (5000, 20000, 100000, 250000))
    racers = [name for name in RACERS if name in list_mechanisms()]
    times = np.empty((len(sizes), len(racers)))
    for k, size in enumerate(sizes):
        shared, delta = lab.setup(f"census-{size}")
        problem, budget = shared.problem, Budget(1.0, delta)
        assert np.isfinite(problem.optimum).all()  # what all share is made before the clock starts
        for r, name in enumerate(racers):
            built = lab.build(name)
            calibration = built.calibrate(problem.setting, budget)
            best = np.inf
            for repeat in range(5):
                lab.monitor((k + (r + repeat / 5) / len(racers)) / len(sizes))
                begun = time.perf_counter()
                built.fit(Training(problem, [calibration], spawn(lab.seed, 1), record=False))
                best = min(best, time.perf_counter() - begun)
            times[k, r] = best
    first = times[:, 0]
    ratio = first[:, None] / times[:, 1:]
    fastest = [bool((row <= TIE).all()) for row in ratio]
    outcome = Outcome.HOLDS if all(fastest) else (Outcome.UNDER if any(fastest) else Outcome.FAILS)
    slower = sorted({list_mechanisms()[racers[1 + c]].label for c in np.unique(np.nonzero(ratio > TIE)[1])})
    x = [int(0.8 * s) for s in sizes]
    return Verdict(
        outcome,
        f"Holds if at every size no other method is more than {TIE:g} times faster; fails if one is at every size. "
        f"One model at ε = 1 "
        "with default knobs, best of five, on this computer and with this engine's solvers: times differ from run to run.",
        tuple(
            (list_mechanisms()[name].label, ", ".join(f"{1000 * t:.1f} ms" for t in times[:, r])) for r, name in enumerate(racers)
        ),
        "Nothing is faster."
        if all(fastest)
        else f"Faster at some size: {', '.join(slower)}. Speed is a matter of "
        f"solvers, steps and "
        "vectorisation more than of where the noise goes.",
        "n = " + ", ".join(f"{s:,}" for s, good in zip(x, fastest, strict=True) if good) if outcome is Outcome.UNDER else "",
        pd.concat([lines("time", list_mechanisms()[n].label, n, x, 1000 * times[:, r : r + 1]) for r, n in enumerate(racers)]),
        Picture("training rows", "milliseconds for one model", log_x=True, log_y=True),
        f"Measured times; noise seed {lab.seed}.",
    )


SURGE = 0.5
DELTA = 1e-8


def surges(lab: Lab) -> Verdict:
    """The accuracy of SGD with the moments accountant jumps at one epsilon."""
    budgets = np.geomspace(0.02, 2.0, lab.choose(12, 24))
    name, seeds = "census-10000", lab.choose(5, 20)
    # batches of sqrt(n) rows and delta = 1e-8 as in the paper; 10,000 people are 8,000 training rows
    rate = lab.setup(name)[0].problem.n ** -0.5
    grid = [{"epochs": e, "accountant": "rdp", "relation": "add-remove", "sampling_rate": float(rate)} for e in (1.0, 5.0, 20.0)]
    measured, chosen = lab.best("dp-sgd", grid, name, list(budgets), seeds, delta=DELTA)
    mean = measured.accuracy.mean(axis=1)
    rise = mean.max() - mean.min()
    step = np.diff(mean)
    at = int(step.argmax())
    share = float(step[at] / rise) if rise > 0 else 0.0
    enough = rise >= 0.05
    outcome = Outcome.UNTESTABLE if not enough else (Outcome.HOLDS if share >= SURGE else Outcome.FAILS)
    table = pd.concat(
        [
            lines(name, "best of three run lengths", "dp-sgd", budgets, 100 * measured.accuracy),
            constant(name, "no privacy", "non-private", budgets, 100 * measured.non_private),
            constant(name, "majority", "majority", budgets, 100 * measured.majority),
        ]
    )
    return Verdict(
        outcome,
        f"A surge is a step between neighbouring budgets (a factor of {budgets[1] / budgets[0]:.2f}) that covers at "
        f"least {SURGE:.0%} of "
        "the whole rise in accuracy. Not testable if the whole rise is below 5 points.",
        (
            ("Whole rise", f"{100 * rise:.1f} points"),
            ("Largest step", f"{percent(share)} of it, from ε = {budgets[at]:.3g} to {budgets[at + 1]:.3g}"),
            ("Epochs chosen", ", ".join(f"{c['epochs']:g}" for c in chosen)),
        ),
        "The curve jumps where longer runs become affordable."
        if outcome is Outcome.HOLDS
        else "The curve rises evenly: run lengths are "
        "chosen afresh at each budget, by an accountant that can handle every budget.",
        "",
        table,
        Picture("ε", "test accuracy, %", log_x=True),
        f"{seeds} noise draws per point, seed {lab.seed}, split 0; δ = {DELTA:g} and batches of √n rows as in the paper.",
    )
