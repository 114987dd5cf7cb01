"""Claims about running time, and about a curve's shape."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpviz.common.progress import part
from dpviz.datasets import load_dataset
from dpviz.mechanisms import list_mechanisms
from dpviz.models.problem import Problem
from dpviz.papers import sets, timing
from dpviz.papers.checks import Check
from dpviz.papers.claims.accuracy import TUNED
from dpviz.papers.claims.context import ByCheck, Context, Measured, Test
from dpviz.papers.claims.tables import constant, lines
from dpviz.papers.figures import base
from dpviz.papers.times import TimeCheck
from dpviz.papers.verdict import Picture, Verdict
from dpviz.privacy.budget import Budget

RACERS = ("kst-objective", "rsgd-ar", "nsgd", "outpert-gd", "dp-sgd", "dp-agd")
TURNS = 9
USUAL = (5000, 20000)  # rows of the synthetic census


def problems(context: Context) -> Iterator[tuple[Problem, float, float]]:
    """(problem, delta, share of the rows of all): the synthetic census; in full what the paper's figure of times is measured on.

    That is random rows of the paper's set where it is on this machine, and of a large census elsewhere.
    """
    if not context.full:
        for size in USUAL:
            shared, delta = context.setup(f"census-{size}")
            yield shared.problem, delta, size / sum(USUAL)
        return
    figure = base.times()
    name, own, _ = sets.choose((figure.dataset, figure.instead), {})
    context.trained_on.append(own or name)
    dataset = load_dataset(name)
    sizes = timing.sizes_of(figure, dataset.n)
    for size in sizes:
        yield timing.drawn(figure, dataset, size), figure.delta, size / sum(sizes)


def turns(context: Context, problem: Problem, delta: float) -> pd.DataFrame:
    """Columns mechanism, rows, turn, seconds: processor time of training in turns.

    One model at epsilon = 1. The first turn warms caches up and is not counted.
    """
    assert np.isfinite(problem.optimum).all()  # what all share is made before the clock starts
    racers = [(name, context.build(name)) for name in RACERS if name in list_mechanisms()]
    measured = timing.in_turns(problem, racers, Budget(1.0, delta), turns=TURNS, seed=context.seed, monitor=context.monitor)
    table = pd.concat(measured)
    return table[table["turn"] > 0]


def objective_fastest(check: TimeCheck) -> Test:
    """Objective perturbation is the fastest."""

    def test(context: Context) -> Verdict:
        done, measured = 0.0, []
        for problem, delta, share in problems(context):
            measured.append(turns(replace(context, monitor=part(context.monitor, done, share)), problem, delta))
            done += share
        tidy = pd.concat(measured)
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

    return ByCheck(check, test)


DELTA = 1e-8
SURGES_ON = "census-10000"


def _tuned(context: Context, name: str, budgets: list[float], seeds: int) -> tuple[Measured, list[dict[str, Any]]]:
    """DP-SGD with the best of three run lengths at each budget; batches of sqrt(n) rows and delta = 1e-8 as in the paper."""
    rate = float(context.setup(name)[0].problem.n ** -0.5)
    base = {"accountant": "rdp", "relation": "add-remove", "sampling_rate": rate}
    return context.best("dp-sgd", [base | {"epochs": e} for e in (1.0, 5.0, 20.0)], name, budgets, seeds, delta=DELTA)


def surges(check: Check) -> Test:
    """The accuracy of SGD with the moments accountant jumps at one epsilon."""

    def test(context: Context) -> Verdict:
        budgets = list(np.geomspace(0.02, 2.0, context.choose(12, 24)))
        names, seeds = context.data((SURGES_ON,), (SURGES_ON,)), context.choose(5, 20)
        parts, rows, epochs = [], [], []
        for k, name in enumerate(names):
            measured, chosen = _tuned(context.part(k, len(names)), name, budgets, seeds)
            rows.append(measured.rows("dp-sgd"))
            epochs.append((f"Epochs chosen, {name}", ", ".join(f"{c['epochs']:g}" for c in chosen)))
            parts += [
                lines(name, "best of three run lengths", "dp-sgd", budgets, 100 * measured.accuracy),
                constant(name, "non-private", "non-private", budgets, 100 * measured.non_private),
                constant(name, "majority", "majority", budgets, 100 * measured.majority),
            ]
        verdict = check(pd.concat(rows, ignore_index=True))
        return replace(
            verdict,
            because=f"{verdict.because} Run lengths are chosen afresh at each budget; the accountant can handle every one.",
            rule=f"{check.rule} {TUNED} Neighbouring budgets differ by a factor of {budgets[1] / budgets[0]:.2f}.",
            numbers=tuple(epochs),
            table=pd.concat(parts),
            picture=Picture("ε", "test accuracy, %", log_x=True),
            seeds=f"{seeds} noise draws per point, seed {context.seed}, split 0; δ = {DELTA:g} and batches of √n rows "
            "as in the paper.",
        )

    return ByCheck(check, test)
