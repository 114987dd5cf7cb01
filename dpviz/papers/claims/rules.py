"""Claims about which rows receive noise: whether that follows the budget, and the influence of a row."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from dpviz.common.random import spawn
from dpviz.influence import influence_of
from dpviz.mechanisms import HasRule, NoisesRows, protection
from dpviz.papers.claims.context import Context, Floats, Test
from dpviz.papers.claims.tables import lines, percent, tenths
from dpviz.papers.verdict import Comparison, Outcome, Picture, Verdict, combine, counts, summary
from dpviz.privacy.budget import Budget

GRID = (0.01, 0.03, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
DECREASE, INCREASE, FEW, HALF, MANY = 0.01, 0.001, 0.01, 0.5, 0.99
LEAST_AUC = 0.9
_ROWS_OF = ("breast-cancer", "census-10000", "census-45000")
_LINKED = 500  # published rows that are looked for among the original ones


def noise_chance(context: Context, mechanism: str, dataset: str, **knobs: Any) -> tuple[Floats, Floats]:
    """(E, n) chance that the rule in use puts noise on a row before the first step, and (n,) the rows' published influence."""
    shared, delta = context.setup(dataset)
    built, problem = context.build(mechanism, **knobs), shared.problem
    assert isinstance(built, HasRule), f"{mechanism} has no rule"
    chance = np.empty((len(GRID), problem.n))
    for k, e in enumerate(GRID):
        context.monitor(k / len(GRID))
        views = built.rule_views(problem, protection.calibrate(built, problem.setting, Budget(e, delta)))
        view = next(v for v in views if v.used)
        chance[k] = 1.0 - view.passes if view.log10_pass is None else -np.expm1(view.log10_pass * np.log(10))
    return chance, influence_of(problem).published_norm


def noise_rows_test(mechanism: str) -> Test:
    """More budget, fewer rows that receive noise."""

    def test(context: Context) -> Verdict:
        names = context.data(("census-10000",), ("census-10000", "breast-cancer", "census-45000"))
        shares, tables, numbers = [], [], []
        for here, name in context.parts(names):
            share = noise_chance(here, mechanism, name)[0].mean(axis=1)
            shares.append(share)
            tables.append(lines(name, "rows that receive noise", mechanism, GRID, 100 * share[:, None]))
            inside = int(((share > FEW) & (share < MANY)).sum())
            ends = f"Share of rows that receive noise on {name}, at ε = {GRID[0]:g} and {GRID[-1]:g}"
            numbers += [
                (ends, f"{percent(share[0])} and {percent(share[-1])}"),
                (f"Budgets with a share between 1 % and 99 % on {name}", f"{inside} of {len(GRID)}"),
            ]
        outcome, condition, because = _monotone(shares)
        return Verdict(
            outcome,
            because,
            f"Holds if the share of rows that receive noise falls by at least {100 * DECREASE:g} point from the smallest to the "
            f"largest ε, never rises by more than {100 * INCREASE:g} points between neighbours, and lies between 1 % and 99 % "
            "somewhere; holds only if two budgets lie on either side of a step if it falls from all rows to none at once; "
            "fails otherwise.",
            tuple(numbers),
            condition,
            pd.concat(tables),
            Picture("ε", "rows that receive noise, %", log_x=True),
            "No randomness: chances over the rule's own noise are exact, before the first step.",
        )

    return test


def _monotone(shares: list[Floats]) -> tuple[Outcome, str, str]:
    """(outcome, condition, why) for (E,) shares of rows that receive noise on each dataset."""
    monotone = all(s[0] - s[-1] >= DECREASE and np.diff(s).max() <= INCREASE for s in shares)
    if not monotone:
        alike = max(float(np.ptp(s)) for s in shares) < DECREASE
        why = (
            "The share of rows that receive noise does not fall: the rule decides the same at every budget."
            if alike
            else "The share rises somewhere, or ends no lower than it began."
        )
        return Outcome.FAILS, "", why
    if all(((s > FEW) & (s < MANY)).any() for s in shares):
        return Outcome.HOLDS, "", "The share falls step by step as the budget grows."
    last = max(GRID[int(np.flatnonzero(s >= MANY)[-1])] for s in shares)
    first = min(GRID[int(np.flatnonzero(s <= FEW)[0])] for s in shares)
    why = "The share jumps from all to none at one budget: the rule compares a number that hardly differs between rows."
    return (
        Outcome.ONLY_IF,
        f"a budget of at most ε = {last:g} (all rows receive noise) is compared with one of at least ε = {first:g} (none do)",
        why,
    )


def separation(influence: Floats, chance: Floats) -> float:
    """Chance that a row with noise has more influence than one trained without it, ties half; rows weighted by chance."""
    order = np.argsort(influence, kind="stable")
    value, up, down = influence[order], chance[order], 1 - chance[order]
    start = np.unique(value, return_index=True)[1]
    noise, passing = np.add.reduceat(up, start), np.add.reduceat(down, start)
    below = np.concatenate([[0.0], np.cumsum(passing)[:-1]])
    return float((noise * (below + passing / 2)).sum() / (chance.sum() * (1 - chance).sum()))


def follows_influence(mechanism: str) -> Test:
    """Rows that receive noise are those of large influence."""

    def test(context: Context) -> Verdict:
        names = context.data(("census-10000",), ("census-10000", "breast-cancer", "census-45000"))
        tables, numbers, separations = [], [], {}
        for here, name in context.parts(names):
            chance, influence = noise_chance(here, mechanism, name)
            share = chance.mean(axis=1)
            mixed = [e for e in range(len(GRID)) if FEW < share[e] < MANY]
            values = {GRID[e]: separation(influence, chance[e]) for e in mixed}
            separations[name] = values
            numbers.append(
                (
                    f"Budgets that treat rows differently on {name}",
                    "ε = " + ", ".join(f"{e:g}" for e in values) if values else "none",
                )
            )
            if values:
                numbers.append(
                    (f"Smallest and largest separation on {name}", f"{min(values.values()):.3f} and {max(values.values()):.3f}")
                )
            for e in mixed or [0, len(GRID) - 1]:
                by = np.array([[100 * chance[e, rows].mean()] for rows in tenths(influence)])
                tables.append(lines(name, f"ε = {GRID[e]:g}", mechanism, range(1, 11), by))
        judged = [
            Comparison(f"ε = {e:g} on {name}", v >= LEAST_AUC, f"separation {v:.2f}", -v)
            for name, values in separations.items()
            for e, v in values.items()
        ]
        # with one decision for all rows at every budget there is nothing that could follow an influence
        outcome = combine(judged) if judged else Outcome.FAILS
        because = (
            "At every budget one decision is made for practically all rows, so it cannot follow their influence."
            if not judged
            else f"It is that large at {counts(judged)[0]} of {len(judged)} budgets. A row that receives noise has more "
            "influence than one without, with chance "
            f"{-max(c.severity for c in judged):.2f} to {-min(c.severity for c in judged):.2f}; "
            "a rule on the influence itself would give 1."
        )
        return Verdict(
            outcome,
            because,
            "Separation is the chance that a row that receives noise has more influence (Kang-PIDP, eq. (11)) than one trained "
            f"without noise. Holds if it is at least {LEAST_AUC:g} at every budget whose share of rows that receive noise lies "
            "between 1 % and 99 %, and there is such a budget; fails otherwise.",
            tuple(numbers),
            "",
            pd.concat(tables),
            Picture("tenths of the rows by influence", "rows that receive noise, %"),
            "No randomness: chances over the rule's own noise are exact, before the first step.",
        )

    return test


def decisions_change(context: Context) -> Verdict:
    """The Hessian changes in training, so that a row receives noise at first and none later (Kang-PIDP, Remark 7).

    Training leads from one of its two starts towards the other at most: what does not differ between them does not change.
    """
    name, steps = "census-10000", 10
    ends = [noise_chance(here, "pidp-sgd", name, start=start)[0] for here, start in context.parts(("zero", "non-private"))]
    changed = np.mean(np.abs(ends[1] - ends[0]) > HALF, axis=1)
    n = ends[0].shape[1]
    return Verdict(
        Outcome.HOLDS if changed.max() >= FEW else Outcome.FAILS,
        f"Between the model of zeros and the non-private one at most {percent(changed.max())} of the rows change sides. "
        f"And the order matters only to rows that are drawn twice: with T = {steps} steps on {n:,} rows that is one pair in "
        f"{2 * n / (steps * (steps - 1)):,.0f} trainings. That privacy still holds is the claim of Theorem 5.",
        f"Holds if the chance of noise of at least {100 * FEW:g} % of the rows differs by more than {HALF:g} between both models "
        "at some ε; fails otherwise.",
        (("Rows that change sides, most at any ε", percent(changed.max())), ("Steps and rows", f"{steps} and {n:,}")),
        "",
        lines(name, "rows that change sides", "pidp-sgd", GRID, 100 * changed[:, None]),
        Picture("ε", "rows that change sides, %", log_x=True),
        "No randomness: chances over the rule's own noise are exact.",
    )


def changed_rows(original: Floats, published: Floats) -> np.ndarray:
    """Published rows that differ from the original ones: an unchanged row is published in clear."""
    return np.any(published != original, axis=1)


def unlinked_rows(original: Floats, published: Floats) -> np.ndarray:
    """Published rows that are nearer to another original row than to their own, of some that are spread over the table."""
    some = np.linspace(0, len(original) - 1, min(_LINKED, len(original))).astype(int)
    away = cdist(published[some], original)
    return away.min(axis=1) < away[np.arange(len(some)), some]


def published_rows(
    mechanism: str, budgets: tuple[float, ...], hidden: Callable[[Floats, Floats], np.ndarray], words: str
) -> Test:
    """Rows with noise protect the original ones, at the budgets of the paper's figures.

    Args:
        hidden: (original, published) rows -> which of the published ones are protected.
        words: what these do.
    """

    def test(context: Context) -> Verdict:
        built, tables, comparisons = context.build(mechanism), [], []
        assert isinstance(built, NoisesRows), f"{mechanism} has no rows with noise"
        for name in context.data(_ROWS_OF, _ROWS_OF):
            shared, delta = context.setup(name)
            problem, found = shared.problem, np.empty((len(budgets), 1))
            for k, epsilon in enumerate(budgets):
                (stream,) = spawn(context.seed, 1)
                calibration = protection.calibrate(built, problem.setting, Budget(epsilon, delta))
                published = np.asarray(built.noisy_rows(problem, calibration, stream), float)
                found[k] = share = float(np.mean(hidden(problem.rows.X, published)))
                holds = True if share >= MANY else False if share < HALF else None
                message = f"{percent(share)} of the rows {words} at ε = {epsilon:g}"
                comparisons.append(Comparison(name, holds, message, -share))
            tables.append(lines(name, f"published rows that {words}", mechanism, budgets, 100 * found))
        return Verdict(
            combine(comparisons),
            f"{summary(comparisons)} All others can be told by whoever has the original rows to compare them with.",
            f"Holds if at least {100 * MANY:g} % of the published rows {words} at every ε, fails if fewer than half do at one.",
            tuple((f"On {one.what}", one.numbers) for one in comparisons),
            "",
            pd.concat(tables),
            Picture("ε", f"rows that {words}, %", log_x=True),
            f"1 draw of the noise, seed {context.seed}; default hyperparameters.",
        )

    return test
