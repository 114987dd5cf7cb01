"""Claims about running time, and about a curve's shape."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.common.random import spawn
from dpviz.common.threads import one_blas_thread
from dpviz.mechanisms import Training, list_mechanisms
from dpviz.papers.checks import Check
from dpviz.papers.claims.context import Context, Test
from dpviz.papers.claims.tables import constant, lines
from dpviz.papers.times import TimeCheck
from dpviz.papers.verdict import Picture, Verdict
from dpviz.privacy.budget import Budget

RACERS = ("kst-objective", "rsgd-ar", "nsgd", "outpert-gd", "dp-sgd", "dp-agd")
TURNS = 9


def turns(context: Context, size: int) -> pd.DataFrame:
    """Columns mechanism, rows, turn, seconds: processor time of training in turns on a synthetic census.

    One model at epsilon = 1. The first turn warms caches up and is not counted.
    """
    shared, delta = context.setup(f"census-{size}")
    problem, budget = shared.problem, Budget(1.0, delta)
    assert np.isfinite(problem.optimum).all()  # what all share is made before the clock starts
    racers = [(name, context.build(name)) for name in RACERS if name in list_mechanisms()]
    ready = [(name, built, built.calibrate(problem.setting, budget)) for name, built in racers]
    rows = []
    with one_blas_thread():  # threads of a product wait for each other busily, which is no work
        for turn in range(TURNS + 1):
            for r, (name, built, calibration) in enumerate(ready):
                context.monitor((turn + r / len(ready)) / (TURNS + 1))
                begun = time.process_time()
                built.fit(Training(problem, [calibration], spawn(context.seed, 1), record=False))
                rows.append((name, problem.n, turn, time.process_time() - begun))
    table = pd.DataFrame(rows, columns=["mechanism", "rows", "turn", "seconds"])
    return table[table["turn"] > 0]


def objective_fastest(check: TimeCheck) -> Test:
    """Objective perturbation is the fastest."""

    def test(context: Context) -> Verdict:
        sizes = context.choose((5000, 20000), (5000, 20000, 100000, 250000))
        tidy = pd.concat([turns(context.part(k, len(sizes)), size) for k, size in enumerate(sizes)])
        times = tidy.pivot_table(index="rows", columns="mechanism", values="seconds", aggfunc="median")
        n = list(times.index)
        labels = {name: list_mechanisms()[name].label for name in times}
        verdict = check(tidy)
        return replace(
            verdict,
            because=f"{verdict.because} Speed is a matter of solvers, steps and vectorisation more than of where the noise goes.",
            rule=f"{check.rule} One model at ε = 1 with default hyperparameters, {TURNS} turns; the picture shows medians.",
            numbers=tuple((labels[name], ", ".join(f"{1000 * t:.1f} ms" for t in times[name])) for name in times),
            table=pd.concat([lines("time", labels[name], name, n, 1000 * times[[name]].to_numpy()) for name in times]),
            picture=Picture("training rows", "milliseconds for one model", log_x=True, log_y=True),
            seeds=f"Measured times; noise seed {context.seed}.",
        )

    return test


DELTA = 1e-8


def surges(check: Check) -> Test:
    """The accuracy of SGD with the moments accountant jumps at one epsilon."""

    def test(context: Context) -> Verdict:
        budgets = list(np.geomspace(0.02, 2.0, context.choose(12, 24)))
        name, seeds = "census-10000", context.choose(5, 20)
        # batches of sqrt(n) rows and delta = 1e-8 as in the paper; 10,000 people are 8,000 training rows
        rate = float(context.setup(name)[0].problem.n ** -0.5)
        base = {"accountant": "rdp", "relation": "add-remove", "sampling_rate": rate}
        measured, chosen = context.best(
            "dp-sgd", [base | {"epochs": e} for e in (1.0, 5.0, 20.0)], name, budgets, seeds, delta=DELTA
        )
        table = pd.concat(
            [
                lines(name, "best of three run lengths", "dp-sgd", budgets, 100 * measured.accuracy),
                constant(name, "non-private", "non-private", budgets, 100 * measured.non_private),
                constant(name, "majority", "majority", budgets, 100 * measured.majority),
            ]
        )
        verdict = check(measured.rows("dp-sgd"))
        return replace(
            verdict,
            because=f"{verdict.because} Run lengths are chosen afresh at each budget; the accountant can handle every one.",
            rule=f"{check.rule} Neighbouring budgets differ by a factor of {budgets[1] / budgets[0]:.2f}.",
            numbers=(("Epochs chosen", ", ".join(f"{c['epochs']:g}" for c in chosen)),),
            table=table,
            picture=Picture("ε", "test accuracy, %", log_x=True),
            seeds=f"{seeds} noise draws per point, seed {context.seed}, split 0; δ = {DELTA:g} and batches of √n rows "
            "as in the paper.",
        )

    return test
