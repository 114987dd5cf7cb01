"""Privacy curves of Gaussian releases as tables: Rényi divergence, delta over epsilon, composition, relations.

Every function takes an event, which is what a mechanism releases with its noise, and returns numbers to draw or to save.

The noise that every accountant asks for, for the same release: how much is privacy and how much is the proof.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd

from dpviz.privacy.accounting import account, curves, rdp
from dpviz.privacy.accounting.accountants.base import list_accountants
from dpviz.privacy.accounting.events import (
    CannotAccount,
    Event,
    Gaussian,
    Mixture,
    Repeated,
    Sampled,
    Step,
    scale_noise,
    single_step,
)
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.budget import Budget, Neighbouring, Status


@dataclass(frozen=True)
class Option:
    """The noise that one accountant asks for.

    Attributes:
        name: for people.
        sigma: standard deviation per coordinate; NaN where the accountant gives none.
        status: how far it is proved for this release and this budget.
        formula: LaTeX.
        source: author, year, number.
        note: why there is no number, why it is not proved, or what it equals; "" for none.
    """

    name: str
    sigma: float
    status: Status
    formula: str
    source: str
    note: str = ""


def options(event: Event, budget: Budget) -> list[Option]:
    """The noise that every accountant asks for under replace-one, largest proof first: from classical to exact.

    Args:
        event: Gaussian releases of one kind; its own noise does not count.

    Raises:
        InvalidInput: delta = 0, which no Gaussian noise can meet.
        CannotAccount: the event holds other releases.
    """
    gaussian_mu(budget)  # refuses delta = 0
    step = single_step(event)
    return _unsampled(step, budget) if step.sampling == "full" else _sampled(step, budget)


def _unsampled(step: Step, budget: Budget) -> list[Option]:
    total, small = step.total, budget.epsilon < 1
    classical = Option(
        "Classical Gaussian",
        total * math.sqrt(2 * math.log(1.25 / budget.delta)) / budget.epsilon,
        Status.PROVED if small else Status.CLAIM,
        rf"\sigma={step.formula}\sqrt{{2\ln(1.25/\delta)}}/\varepsilon",
        "Dwork, Roth 2014, Theorem A.1",
        "" if small else f"proved for ε < 1 only; here ε = {budget.epsilon:.3g}",
    )
    if isinstance(step.event, Mixture):  # first as if every draw were the worst one
        worst = replace(step, event=Gaussian(step.sensitivity))
        unit = scale_noise(step.event, 1 / step.event.sigma)
        return [classical, *_lines(worst, worst.event, 1.0, budget), *_lines(step, unit, 1.0, budget)]
    assert isinstance(step.event, Gaussian)
    one = Repeated(replace(step.event, sigma=1.0), step.count)
    return [classical, *_lines(step, one, 1.0, budget)]


def _sampled(step: Step, budget: Budget) -> list[Option]:
    if not isinstance(step.event, Gaussian):
        raise CannotAccount("event", "batches are accounted for with Gaussian noise only", "Use another accountant.")
    ignored = Option(
        "Sampling ignored, exact Gaussian",
        step.total / gaussian_mu(budget),
        Status.PROVED,
        r"\sigma=\sqrt T\,\Delta/\mu^*",
        "Balle, Wang 2018; every step is at worst a full one",
        "leaves out that batches are sampled",
    )
    unit = Repeated(Sampled(Gaussian.of_rows(1.0), step.rate, step.sampling), step.count)
    return [ignored, *_lines(step, unit, step.event.sigma / step.event.noise_multiplier, budget)]


def _lines(step: Step, unit: Event, scale: float, budget: Budget) -> Iterator[Option]:
    """The values of all accountants for a step; `unit` is the same releases, 1/scale the size, with standard deviation 1."""
    able = [accountant for accountant in list_accountants().values() if isinstance(step.event, accountant.kinds)]
    for accountant in able:
        for line in accountant.lines(step):
            note, status = line.note, Status.PROVED
            method = account.Method(accountant.name, Neighbouring.REPLACE_ONE, line.conversion)
            try:
                sigma = scale * account.noise_for(unit, method, budget) if line.sigma is None else line.sigma(budget)
            except CannotAccount as refused:
                sigma, note, status = math.nan, line.note or refused.cause, Status.NONE
            yield Option(line.name, sigma, status, line.formula, line.source, note)


#: how a Rényi curve is turned into (epsilon, delta): id -> name
CONVERSIONS = {"mironov": "Mironov's conversion", "improved": "improved conversion"}
#: steps at which a composition is evaluated
STEP_COUNTS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)
REMEMBERED = 256  # tables of each kind; with many releases of small batches one takes seconds


@dataclass(frozen=True, eq=False)
class RenyiCurve:
    """The Rényi curve of all releases together, and the epsilon that each order gives.

    Attributes:
        table: columns alpha (order, > 1), divergence, and one column of epsilon for each key of `CONVERSIONS`.
        best: conversion -> (order, epsilon) at its minimum over the orders.
        epsilon: proved at the same delta under replace-one without Rényi divergences.
    """

    table: pd.DataFrame
    best: dict[str, tuple[float, float]]
    epsilon: float


def renyi_curve(event: Event, delta: float) -> RenyiCurve:
    """Rényi divergence at each order, and what it gives at `delta` by each conversion.

    Args:
        delta: in (0, 1).
    """
    orders, divergence = curves.renyi(event)
    table = pd.DataFrame({"alpha": orders, "divergence": divergence})
    for name in CONVERSIONS:
        table[name] = rdp.convert(divergence, orders, delta, name)
    best = {name: curves.best_order(event, delta, name) for name in CONVERSIONS}
    return RenyiCurve(table, best, account.epsilon(event, account.tightest(event), delta))


@lru_cache(maxsize=REMEMBERED)
def delta_curve(event: Event, delta: float, points: int = 25) -> pd.DataFrame:
    """delta over epsilon at one noise, around the epsilon that is proved at `delta`.

    Returns:
        Columns epsilon, delta (tightest proof), mironov and improved (through Rényi divergences), all under replace-one.
    """
    proved = max(account.epsilon(event, account.tightest(event), delta), 1e-3)
    grid = np.geomspace(proved / 12, proved * 4, points)
    tight = np.array([account.log_delta(event, account.tightest(event), float(e)) for e in grid])
    table = pd.DataFrame({"epsilon": grid, "delta": np.exp(tight)})
    orders, divergence = curves.renyi(event)
    for name in CONVERSIONS:
        table[name] = np.exp([rdp.log_delta(divergence, float(e), name, tuple(orders)) for e in grid])
    return table


@dataclass(frozen=True, eq=False)
class Composition:
    """epsilon after T subsampled Gaussian steps, by several accountants.

    Attributes:
        table: column steps, then one column of epsilon for each accountant that has a proof.
        single: name of the column that adds up epsilon and delta of single steps, "" where there is none.
        refused: accountant -> why it has no number.
    """

    table: pd.DataFrame
    single: str
    refused: dict[str, str]


def composition(
    noise_multiplier: float, rate: float, delta: float, relation: Neighbouring, steps: Sequence[int] = STEP_COUNTS
) -> Composition:
    """epsilon over the number of steps at one noise multiplier and Poisson sampling rate (1 for full batches)."""
    plans = {
        name: account.Method(accountant.name, relation, conversion)
        for accountant in reversed(list_accountants().values())
        for name, conversion in reversed(accountant.columns)
    }
    one = Sampled(Gaussian.of_rows(1.0, noise_multiplier), rate)
    values: dict[str, list[float]] = {}
    refused: dict[str, str] = {}
    for name, method in plans.items():
        try:
            values[name] = [account.epsilon(Repeated(one, t), method, delta) for t in steps]
        except CannotAccount as problem:
            refused[name] = problem.cause
    single = ""
    if "PLD" in values and account.epsilon(one, plans["PLD"], delta) > 0:
        single = "adding up ε and δ of single steps"
        values[single] = [t * account.epsilon(one, plans["PLD"], delta / t) for t in steps]
    return Composition(pd.DataFrame({"steps": list(steps), **values}), single, refused)


def accountants(options: Sequence[Option]) -> pd.DataFrame:
    """One row for the noise that each accountant asks for: columns accountant, sigma, status, source and note."""
    rows = [(o.name, o.sigma, o.status.value, o.source, o.note) for o in options]
    return pd.DataFrame(rows, columns=["accountant", "sigma", "status", "source", "note"])


@lru_cache(maxsize=REMEMBERED)
def relations(event: Event, delta: float) -> pd.DataFrame:
    """The epsilon of one noise under each neighbouring relation, and a reading of it that is common and not proved.

    Returns:
        Columns relation (in words), epsilon, proved, in_use (what this package means by replace-one).
    """
    there, other = "add-remove: a row is there or not", "replace-one: one row becomes another"
    rows: list[tuple[str, float, bool, bool]]
    step = single_step(event)
    if step.sampling == "full":
        # the whole batch is in every release: a removal moves a sum of gradients by exactly half of what a replacement does
        half = float(gaussian_epsilon(delta, step.mu / 2))
        sums = step.count > 1
        rows = [
            (there + ("" if sums else ", if half the distance is proved"), half, sums, False),
            (other, account.epsilon(event, account.tightest(event), delta), True, True),
        ]
    else:
        add_remove = account.Method("pld", Neighbouring.ADD_REMOVE)
        cases = (
            (there, event, add_remove, True, False),
            (other, event, account.tightest(event), True, True),
            ("z halved, add-remove: not replace-one", scale_noise(event, 0.5), add_remove, False, False),
        )
        rows = [(name, account.epsilon(taken, method, delta), proved, used) for name, taken, method, proved, used in cases]
    return pd.DataFrame(rows, columns=["relation", "epsilon", "proved", "in_use"])


def delta_at(event: Event, epsilon: float) -> float:
    """delta that is proved at an epsilon, under replace-one."""
    return math.exp(account.log_delta(event, account.tightest(event), epsilon))
