"""Claims about accuracy and optimality gap: trains both sides and compares means over noise draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import get_mechanism, list_mechanisms
from dpviz.models import MODELS, LinearModel, get_model
from dpviz.papers.claims.base import (
    LEVEL,
    Lab,
    Measured,
    Outcome,
    Picture,
    Test,
    Verdict,
    by_points,
    constant,
    difference,
    lines,
    points,
)

MARGIN = 0.005  # a win is at least half a point
CLOSE = 0.01
SMALL_GAP = 0.01  # of what there is to be learned

Grid = Sequence[dict[str, Any]]
STEPS: Grid = tuple({"step_size": s} for s in (1.0, 0.1, 0.01))
DP_SGD: Grid = tuple({"epochs": e, "step_size": s} for e in (5.0, 20.0) for s in (1.0, 0.3))
TUNED = "Knobs are the best of a small grid at every budget, chosen by test accuracy for both sides, as publications tune"


def accuracy_lines(panel: str, sides: dict[str, tuple[str, Measured]], x: Sequence[float]) -> pd.DataFrame:
    """Both sides and the two baselines as lines, in percent."""
    tables = [lines(panel, name, mechanism, x, 100 * m.accuracy) for name, (mechanism, m) in sides.items()]
    first = next(iter(sides.values()))[1]
    tables += [
        constant(panel, "no privacy", "non-private", x, 100 * first.non_private),
        constant(panel, "majority", "majority", x, 100 * first.majority),
    ]
    return pd.concat(tables)


def _grid_of(mechanism: str, grid: Grid) -> Grid:
    """The grid without knobs that this mechanism does not have."""
    known = get_mechanism(mechanism).knobs()
    cut = [{k: v for k, v in knobs.items() if k in known} for knobs in grid]
    return [g for k, g in enumerate(cut) if g not in cut[:k]]


def span(values: Sequence[float]) -> str:
    return f"{points(min(values))} to {points(max(values))}"


def _untestable(model: str, methods: Sequence[str]) -> Verdict | None:
    """The verdict where the model is not here, or one of the methods does not run on it."""
    try:
        trained = get_model(model)
    except InvalidInput as problem:
        return Verdict(
            Outcome.UNTESTABLE,
            "Testable once the engine has this model.",
            (("Models", ", ".join(MODELS)), ("Model asked for", model)),
            f"No model {model!r} here: {problem.cause}.",
        )
    setting = trained.setting(1000, 5, 1e-3)
    refusals = [r for m in methods if (r := get_mechanism(m).refusal(setting))]
    if refusals:
        return Verdict(Outcome.UNTESTABLE, "Testable once all methods run on this model.", (), "; ".join(refusals) + ".")
    return None


def _usual(model: str) -> tuple[str, ...]:
    """Data that takes seconds; a network takes as long for a tenth of the rows."""
    return ("breast-cancer", "census-10000") if isinstance(get_model(model), LinearModel) else ("breast-cancer",)


def beats(mechanism: str, other: str, other_grid: Grid, full_model: str = "logistic", quick_model: str = "") -> Test:
    """A method that starts at the non-private model is more accurate than `other`, which does not.

    Args:
        full_model: the publication's.
        quick_model: a smaller one for the quick test where the publication's takes minutes.
    """

    def test(lab: Lab) -> Verdict:
        model = lab.choose(quick_model or full_model, full_model)
        missing = _untestable(model, (mechanism, other))
        if missing is not None:
            return missing
        names = lab.choose(_usual(model), ("breast-cancer", "census-10000", "census-45000"))
        # a rule on influences inverts a network's Hessian for every draw and round
        light = isinstance(get_model(model), LinearModel)
        grid = (0.05, 0.2, 1.0, 5.0) if light else lab.choose((0.2, 5.0), (0.05, 0.2, 1.0, 5.0))
        seeds = lab.choose(10, 30) if light else lab.choose(8, 10)
        nowhere = "zero" if get_model(model).convex else "a random point"
        unclear = 0
        wins: dict[str, dict[tuple[str, float], bool]] = {"non-private": {}, "zero": {}}
        gaps: dict[str, list[float]] = {"non-private": [], "zero": []}
        tables, numbers = [], []
        if model != full_model:
            numbers.append(("Model", f"{get_model(model).label}; the full test takes the publication's"))
        for k, name in enumerate(names):
            here = lab.part(k, len(names))
            sides = {"": here.part(0, 3).best(other, _grid_of(other, other_grid), name, grid, seeds, model=model)[0]}
            for s, start in enumerate(wins):
                knobs = [g | {"start": start} for g in _grid_of(mechanism, STEPS)] if start_knob(mechanism) else [{}]
                sides[start] = here.part(s + 1, 3).best(mechanism, knobs, name, grid, seeds, model=model)[0]
                for e, value in enumerate(grid):
                    mean, half = difference(sides[start].accuracy[e], sides[""].accuracy[e])
                    wins[start][f"on {name}", value] = mean - half > 0 and mean >= MARGIN
                    gaps[start].append(mean)
                    unclear += start == "non-private" and not wins[start][f"on {name}", value] and mean + half >= MARGIN
                numbers.append(
                    (
                        f"Ahead on {name}, started at {'the non-private model' if s == 0 else nowhere}",
                        span(gaps[start][-len(grid) :]),
                    )
                )
            label, other_label = list_mechanisms()[mechanism].label, list_mechanisms()[other].label
            tables.append(
                accuracy_lines(
                    name,
                    {
                        f"{label}, non-private start": (mechanism, sides["non-private"]),
                        f"{label}, start at {nowhere}": (mechanism, sides["zero"]),
                        other_label: (other, sides[""]),
                    },
                    grid,
                )
            )
        published, won = by_points(wins["non-private"])
        alone, alone_won = by_points(wins["zero"])
        outcome: Outcome
        if published is Outcome.FAILS and unclear:
            outcome, condition = Outcome.UNTESTABLE, ""
            because = f"It wins nowhere, but for {unclear} of {len(wins['zero'])} comparisons the draws do not suffice to tell."
        elif published is Outcome.FAILS:
            outcome, condition, because = Outcome.FAILS, "", "It is nowhere ahead by what noise could not explain."
        elif published is Outcome.HOLDS and alone is Outcome.HOLDS:
            outcome, condition, because = Outcome.HOLDS, "", "It is ahead everywhere, from a start without data too."
        else:
            count = sum(wins["zero"].values())
            outcome = Outcome.UNDER
            condition = "the start at the non-private model" + ("" if published is Outcome.HOLDS else f", at {won}")
            condition += f" (from {nowhere} only at {alone_won})" if count else ""
            because = (
                f"Started at the non-private model it wins {sum(wins['non-private'].values())} of {len(wins['zero'])} "
                f"comparisons, "
                f"started at {nowhere} {count}. That start has seen all data without noise, and no ε covers it."
            )
        return Verdict(
            outcome,
            f"A comparison is won where the mean test accuracy is at least {100 * MARGIN:g} points higher and the {LEVEL:.0%} "
            "interval of the difference (Welch, over noise draws) excludes 0. Holds if all are won from the published start and "
            f"from {nowhere}; “under” if only some are; fails if none is and none might be; not testable if none is but the "
            f"interval of one still reaches {100 * MARGIN:g} points. {TUNED}.",
            tuple(numbers),
            because,
            condition,
            pd.concat(tables),
            Picture("ε", "test accuracy, %", log_x=True),
            f"{seeds} noise draws per point, seed {lab.seed}, split 0.",
        )

    return test


def start_knob(mechanism: str) -> bool:
    """Whether the method can be started elsewhere."""
    return "start" in get_mechanism(mechanism).knobs()


def gap_is_zero(mechanism: str) -> Test:
    """The optimality gap is almost zero; with the published start, and without it."""

    def test(lab: Lab) -> Verdict:
        names = lab.choose(("breast-cancer", "census-10000"), ("breast-cancer", "census-10000", "census-45000"))
        grid, seeds = (0.1, 1.0, 5.0), lab.choose(10, 30)
        small: dict[str, dict[tuple[str, float], bool]] = {"non-private": {}, "zero": {}}
        numbers, tables = [], []
        for k, name in enumerate(names):
            for s, start in enumerate(small):
                here = lab.part(2 * k + s, 2 * len(names))
                runs = [
                    here.part(i, len(STEPS)).measure(self_start(here, mechanism, start, knobs), name, grid, seeds)
                    for i, knobs in enumerate(STEPS)
                ]
                share = np.array([r.gap / r.scale for r in runs])  # (grid, E, S)
                best = share.mean(axis=2).argmin(axis=0)
                chosen = share[best, np.arange(len(grid))]
                for e, value in enumerate(grid):
                    small[start][f"on {name}", value] = bool(chosen[e].mean() <= SMALL_GAP)
                words = "at the non-private model" if start == "non-private" else "at zero"
                numbers.append((f"Gap on {name}, started {words}", ", ".join(f"{100 * v:.2g} %" for v in chosen.mean(axis=1))))
                tables.append(lines(name, f"started {words}", mechanism, grid, 100 * np.minimum(chosen, 1e6)))
        published, where = by_points(small["non-private"])
        alone = sum(small["zero"].values())
        if published is Outcome.HOLDS and alone == len(small["zero"]):
            outcome, condition = Outcome.HOLDS, ""
        elif published is Outcome.FAILS:
            outcome, condition = Outcome.FAILS, ""
        else:
            outcome = Outcome.UNDER
            condition = "the start at the non-private model" + ("" if published is Outcome.HOLDS else f", at {where}")
        because = (
            f"The published start is the minimiser itself, whose gap is 0 before training; from zero, {alone} of "
            f"{len(small['zero'])} budgets come as close. What makes the gap small is "
            + ("not the private training." if alone < len(small["zero"]) else "the training: the start is not needed.")
        )
        return Verdict(
            outcome,
            f"“Almost zero” is a mean gap of at most {100 * SMALL_GAP:g} % of F(0) − F(θ*), all that there is to be "
            f"learned, with the "
            "best of three step sizes. Holds if so at every budget from the published start and from zero; “under” if only from "
            "the published start; fails if not there either.",
            tuple(numbers),
            because,
            condition,
            pd.concat(tables),
            Picture("ε", "gap, % of F(0) − F(θ*)", log_x=True, log_y=True, limit=100 * SMALL_GAP, limit_label="almost zero"),
            f"{seeds} noise draws per point, seed {lab.seed}, split 0.",
        )

    return test


def self_start(lab: Lab, mechanism: str, start: str, knobs: dict[str, Any]) -> Any:
    """The method with a start, where it has one."""
    return lab.build(mechanism, **(knobs | ({"start": start} if start_knob(mechanism) else {})))


def alike(
    mechanism: str, grid: Grid, others: Sequence[tuple[str, Grid]], budgets: Sequence[float], model: str = "logistic"
) -> Test:
    """As accurate as each of `others`, or better, to one point."""

    def test(lab: Lab) -> Verdict:
        missing = _untestable(model, (mechanism, *(other for other, _ in others)))
        if missing is not None:
            return missing
        names, seeds = lab.choose(_usual(model), ("breast-cancer", "census-10000")), lab.choose(40, 200)
        close: dict[tuple[str, float], bool] = {}
        lost = 0
        numbers, tables = [], []
        for k, name in enumerate(names):
            here, parts = lab.part(k, len(names)), len(others) + 1
            mine = here.part(0, parts).best(mechanism, grid, name, budgets, seeds, model=model)[0]
            sides = {list_mechanisms()[mechanism].label: (mechanism, mine)}
            for o, (other, other_grid) in enumerate(others):
                theirs = here.part(o + 1, parts).best(other, other_grid, name, budgets, seeds, model=model)[0]
                label = list_mechanisms()[other].label
                sides[label] = (other, theirs)
                gaps = [difference(mine.accuracy[e], theirs.accuracy[e]) for e in range(len(budgets))]
                for value, (mean, half) in zip(budgets, gaps, strict=True):
                    close[f"on {name} beside {label}", value] = mean - half >= -CLOSE
                    lost += mean + half < -CLOSE
                numbers.append((f"{list_mechanisms()[mechanism].label} minus {label} on {name}", span([g[0] for g in gaps])))
            tables.append(accuracy_lines(name, sides, budgets))
        outcome, condition = by_points(close)
        kept = sum(close.values())
        unclear = len(close) - kept - lost
        if not kept and not lost:
            outcome = Outcome.UNTESTABLE  # the draws do not suffice to say anything
        return Verdict(
            outcome,
            f"The {LEVEL:.0%} interval of the difference in mean test accuracy (Welch, over noise draws) decides: “almost the "
            f"same or better” where all of it lies above −{100 * CLOSE:g} point, worse where all lies below, undecided where it "
            f"holds −{100 * CLOSE:g} point itself. Holds if every comparison is as good, fails if none is and some are worse, is "
            f"not testable if all are undecided; otherwise “under” those that are as good. {TUNED}.",
            (("Comparisons as good, worse, undecided", f"{kept}, {lost}, {unclear}"), *numbers),
            f"{kept} of {len(close)} comparisons are as good to a point, {lost} are worse"
            + (f", and for {unclear} the draws do not suffice to tell" if unclear else "")
            + ". All sides are given the same claimed ε; what the claim is worth is another question, and another card.",
            condition,
            pd.concat(tables),
            Picture("ε", "test accuracy, %", log_x=True),
            f"{seeds} noise draws per point, seed {lab.seed}, split 0.",
        )

    return test
