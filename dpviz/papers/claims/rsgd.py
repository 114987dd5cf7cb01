"""Claims about RSGD-AR's accuracy: beside every baseline, and beside itself without averaging."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model
from dpviz.papers.checks import MARGIN, NOTHING, Check
from dpviz.papers.claims.accuracy import ACCURACY, TUNED, Grid, accuracy_lines, leads
from dpviz.papers.claims.context import ByCheck, Context, Measured, Test
from dpviz.papers.numbers import LEVEL, difference
from dpviz.papers.verdict import Comparison, Outcome, Verdict, combine, summary

DELTA = 1e-8  # as in the paper's experiments
RSGD_AR: Grid = tuple({"step_size": s, "epochs": e} for s in (0.5, 1.5) for e in (5, 20))
#: the calibrations that the methods were published with, where they are not the default here
PUBLISHED: Mapping[str, dict[str, Any]] = {
    "rsgd-ar": {"accounting": "published"},
    "nsgd": {"accounting": "published"},
    "outpert-gd": {"calibration": "published"},
    "dp-sgd": {"accountant": "rdp", "relation": "add-remove"},
    "dp-agd": {"relation": "add-remove"},
}
READINGS = ("calibrated as published", "with the best known calibrations")
MODELS = ("logistic", "svm")


def competitive(check: Check, mechanism: str, others: Sequence[tuple[str, Grid]]) -> Test:
    """At least as accurate as every baseline, for logistic regression and SVM, as published and as well as it can be done."""

    def test(context: Context) -> Verdict:
        names, seeds = context.data(("census-10000",), ("census-10000", "census-45000")), context.choose(20, 50)
        cells = [(reading, name, model) for reading in READINGS for name in names for model in MODELS]
        rows: dict[str, list[pd.DataFrame]] = {reading: [] for reading in READINGS}
        numbers, tables = [], []
        for k, (reading, name, model) in enumerate(cells):
            panel = f"{name}, {get_model(model).label}, {reading}"
            sides = _measured(context.part(k, len(cells)), reading, name, model, seeds, [(mechanism, RSGD_AR), *others])
            rows[reading] += [measured.rows(of) for of, measured in sides.values()]
            (_, mine), *rest = sides.values()
            numbers += [(f"Ahead of {list_mechanisms()[of].label}, {panel}", leads(mine, theirs)) for of, theirs in rest]
            tables.append(accuracy_lines(panel, sides))
        comparisons = {reading: check.comparisons(pd.concat(parts)) for reading, parts in rows.items()}
        outcome, condition = _by_reading({reading: combine(each) for reading, each in comparisons.items()})
        return Verdict(
            outcome,
            " ".join(f"{reading[:1].upper()}{reading[1:]}: {summary(each)}" for reading, each in comparisons.items())
            + " Accountants have become tighter since 2019, which helps the methods that add noise at every step most.",
            f"{check.rule} All methods are calibrated once as they were published and once as tightly as is known here. {TUNED}",
            tuple(numbers),
            condition,
            pd.concat(tables),
            ACCURACY,
            f"{context.seeds} δ = {DELTA:g} as in the paper.",
        )

    return ByCheck(check, test)


def _by_reading(outcomes: Mapping[str, Outcome]) -> tuple[Outcome, str]:
    """One outcome from both calibrations, and the calibration that is needed where only one of them is enough."""
    if len(set(outcomes.values())) == 1:
        return next(iter(outcomes.values())), ""
    good = [reading for reading, outcome in outcomes.items() if outcome is Outcome.HOLDS]
    if good:
        return Outcome.ONLY_IF, f"all methods are {good[0]}" if good[0] == READINGS[0] else f"all methods run {good[0]}"
    return Outcome.FAILS, ""


def _measured(
    context: Context, reading: str, dataset: str, model: str, seeds: int, methods: Sequence[tuple[str, Grid]]
) -> dict[str, tuple[str, Measured]]:
    """Label -> (id, best of its grid at each budget) for every method."""
    budgets = (0.05, 0.1, 0.5, 1.0, 2.0)
    out = {}
    for k, (name, grid) in enumerate(methods):
        knobs = [g | PUBLISHED.get(name, {}) for g in grid] if reading == READINGS[0] else grid
        here = context.part(k, len(methods))
        out[list_mechanisms()[name].label] = name, here.best(name, knobs, dataset, budgets, seeds, model=model, delta=DELTA)[0]
    return out


def averaging_helps(context: Context) -> Verdict:
    """Periodic averaging raises accuracy: RSGD-AR with averaging against itself without, and against RSGD."""
    names = context.data(("census-10000",), ("census-10000", "census-45000"))
    budgets, seeds = (0.1, 0.3, 1.0, 3.0), context.choose(40, 200)
    comparisons: list[Comparison] = []
    numbers: list[tuple[str, str]] = []
    tables = []
    contests = {
        "averaging and restarts": ("rsgd-ar", RSGD_AR),
        "restarts without averaging": ("rsgd-ar", [g | {"averaging": False} for g in RSGD_AR]),
        "RSGD without either": ("rsgd", RSGD_AR),
    }
    for k, name in enumerate(names):
        here = context.part(k, len(names))
        sides: dict[str, tuple[str, Measured]] = {}
        for c, (words, (mechanism, grid)) in enumerate(contests.items()):
            measured, chosen = here.part(c, 3).best(mechanism, grid, name, budgets, seeds, delta=DELTA)
            sides[words] = mechanism, measured
            # a run no longer than tau = 5 epochs never restarts, so that both contestants may be the same
            numbers.append((f"Epochs chosen, {words}, on {name}", ", ".join(f"{g['epochs']:g}" for g in chosen)))
        (_, mine), *_ = sides.values()
        for words, (_, theirs) in list(sides.items())[1:]:
            for e, epsilon in enumerate(budgets):
                lead = difference(mine.accuracy[e], theirs.accuracy[e])
                means = [mine.accuracy[e].mean(), theirs.accuracy[e].mean(), mine.non_private, mine.majority]
                gain = max(means) - min(means) >= NOTHING
                message = f"{100 * lead.mean:+.2f} points at ε = {epsilon:g}" + (
                    "" if gain else ", where there is nothing to gain"
                )
                comparisons.append(Comparison(f"{words} on {name}", lead.leads(MARGIN) if gain else None, message, -lead.mean))
            numbers.append((f"Averaging minus {words} on {name}", leads(mine, theirs)))
        tables.append(accuracy_lines(name, sides))
    return Verdict(
        combine(comparisons),
        f"{summary(comparisons)} Averaging lowers the noise that restarts cost; whether it also beats plain decay depends on how "
        "much noise is added at all.",
        f"Better means by at least {100 * MARGIN:g} points of mean test accuracy, significant by the {LEVEL:.0%} interval "
        f"(Welch, over noise draws); no better that the interval lies below {100 * MARGIN:g} points. Undecided where both, "
        f"majority and the non-private model lie within {100 * NOTHING:g} point. Holds if better at every budget beside both, "
        f"fails if no better at one. {TUNED}",
        tuple(numbers),
        "",
        pd.concat(tables),
        ACCURACY,
        f"{context.seeds} δ = {DELTA:g} as in the paper.",
    )
