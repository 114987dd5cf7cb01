"""Privacy curves of Gaussian releases as tables: Rényi divergence, delta over epsilon, composition, relations.

Every function takes an event, which is what a mechanism releases with its noise, and returns numbers to draw or to save.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from dpviz.privacy.accounting import account, curves, mixture, rdp
from dpviz.privacy.accounting.account import TWO_HOP, Method, tightest
from dpviz.privacy.accounting.accountants.registry import list_accountants
from dpviz.privacy.accounting.events import CannotAccount, Event, Gaussian, Repeated, Sampled, only_step, scaled
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.accounting.side_by_side import Option
from dpviz.privacy.budget import Neighbouring

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
        relation: the neighbouring relation of `divergence`.
        best: conversion -> (order, epsilon) at its minimum over the orders.
        epsilon: proved at the same delta under replace-one without Rényi divergences.
    """

    table: pd.DataFrame
    relation: Neighbouring
    best: dict[str, tuple[float, float]]
    epsilon: float


def renyi_curve(event: Event, delta: float) -> RenyiCurve:
    """Rényi divergence at each order, and what it gives at `delta` by each conversion.

    Args:
        delta: in (0, 1).
    """
    orders, divergence, relation = curves.renyi(event)
    table = pd.DataFrame({"alpha": orders, "divergence": divergence})
    for name in CONVERSIONS:
        table[name] = mixture.rdp_to_epsilon(orders, divergence, delta, name)
    best = {name: curves.best_order(event, delta, name) for name in CONVERSIONS}
    return RenyiCurve(table, relation, best, account.epsilon(event, tightest(event), delta))


@lru_cache(maxsize=REMEMBERED)
def delta_curve(event: Event, delta: float, points: int = 25) -> pd.DataFrame:
    """delta over epsilon at one noise, around the epsilon that is proved at `delta`.

    Returns:
        Columns epsilon, delta (tightest proof, replace-one), mironov and improved (through Rényi divergences; NaN where
        these are known under add-remove only, as for Poisson batches).
    """
    proved = max(account.epsilon(event, tightest(event), delta), 1e-3)
    grid = np.geomspace(proved / 12, proved * 4, points)
    tight = np.array([account.log_delta(event, tightest(event), float(e)) for e in grid])
    table = pd.DataFrame({"epsilon": grid, "delta": np.exp(tight)})
    orders, divergence, relation = curves.renyi(event)
    for name in CONVERSIONS:
        table[name] = np.nan
        if relation is Neighbouring.REPLACE_ONE:
            table[name] = np.exp([rdp.log_delta(divergence, float(e), mixture.CONVERSIONS[name], tuple(orders)) for e in grid])
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
    route = "two-hop" if relation is Neighbouring.REPLACE_ONE and rate < 1 else "none"
    plans = {
        name: Method(accountant.name, relation, route, conversion)
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
    """The epsilon of one noise under each neighbouring relation, and two readings of it that are common and not proved.

    Returns:
        Columns relation (in words), epsilon, proved, in_use (what this package means by replace-one).
    """
    there, other = "add-remove: a row is there or not", "replace-one: one row becomes another"
    rows: list[tuple[str, float, bool, bool]]
    step = only_step(event)
    if step.sampling == "full":
        # the whole batch is in every release: a removal moves a sum of gradients by exactly half of what a replacement does
        half = float(gaussian_epsilon(delta, step.mu / 2))
        sums = step.count > 1
        rows = [
            (there + ("" if sums else ", if half the distance is proved"), half, sums, False),
            (other, account.epsilon(event, tightest(event), delta), True, True),
        ]
    else:
        add_remove, opposite = Method("pld", Neighbouring.ADD_REMOVE), Method("pld", Neighbouring.REPLACE_ONE, "opposite")
        cases = (
            (there, event, add_remove, True, False),
            ("replace-one as remove and add", event, TWO_HOP, True, True),
            ("opposite pair: not proved", event, opposite, False, False),
            ("z halved, add-remove: not replace-one", scaled(event, 0.5), add_remove, False, False),
        )
        rows = [(name, account.epsilon(taken, method, delta), proved, used) for name, taken, method, proved, used in cases]
    return pd.DataFrame(rows, columns=["relation", "epsilon", "proved", "in_use"])


def delta_at(event: Event, epsilon: float) -> float:
    """delta that is proved at an epsilon, under replace-one."""
    return math.exp(account.log_delta(event, tightest(event), epsilon))
