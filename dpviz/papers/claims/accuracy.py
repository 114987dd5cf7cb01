"""Claims about accuracy and optimality gap: trains both sides and applies the check that the paper's figure has too."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dpviz.mechanisms import ChoosesStart, get_mechanism, list_mechanisms
from dpviz.models import Setting, get_model
from dpviz.papers import sets
from dpviz.papers.checks import ALMOST_ZERO, Check
from dpviz.papers.claims.context import TRIALS, ByCheck, Context, Measured, Test
from dpviz.papers.claims.tables import lines, span
from dpviz.papers.sentences import STARTED
from dpviz.papers.verdict import Outcome, Picture, Verdict

Grid = Sequence[dict[str, Any]]
DP_SGD: Grid = tuple({"epochs": e, "step_size": s} for e in (5.0, 20.0) for s in (1.0, 0.3))
STEP_COUNTS, STEP_SIZES = (50, 500, 5000), (1.0, 0.1, 0.01)
TUNED = (
    "Hyperparameters are the best of a small grid at every budget, for every method alike: by "
    f"up to {TRIALS} noise draws on a quarter of each split's training rows. Test rows choose nothing."
)
STARTS = ("non-private", "zero")
QUICK, FULL = ("breast-cancer", "census-10000"), ("breast-cancer", "census-10000", "census-45000")
ACCURACY = Picture("ε", "test accuracy, %", log_x=True)


def accuracy_lines(panel: str, sides: dict[str, tuple[str, Measured]]) -> pd.DataFrame:
    """Both sides and the two baselines as lines, in percent."""
    tables = [lines(panel, name, mechanism, m.epsilons, 100 * m.accuracy) for name, (mechanism, m) in sides.items()]
    _, first = next(iter(sides.values()))
    for name in ("non-private", "majority"):
        level = first.baselines[f"{name.replace('-', '_')}_accuracy"].mean()
        tables.append(lines(panel, name, name, first.epsilons, np.full((len(first.epsilons), 1), 100 * level)))
    return pd.concat(tables)


def best_sides(
    context: Context, methods: Sequence[tuple[str, Grid]], dataset: str, budgets: Sequence[float], seeds: int, **more: Any
) -> dict[str, tuple[str, Measured]]:
    """Label -> (id, best of its grid at each budget) for every method; `more` as of `Context.best`."""
    out = {}
    for here, (name, grid) in context.parts(methods):
        best, _ = here.best(name, grid, dataset, budgets, seeds, **more)
        out[list_mechanisms()[name].label] = name, best
    return out


def leads(one: Measured, other: Measured) -> str:
    """Smallest and largest difference of the mean accuracies over the budgets."""
    return span([float(d) for d in one.accuracy.mean(axis=1) - other.accuracy.mean(axis=1)])


#: hyperparameters for T steps on n rows; Kang et al. take T/10 rounds in DBDP-ERM PI and leave their number open in PIDP-SGD
_KNOBS_OF_STEPS: Mapping[str, Callable[[int, int], dict[str, Any]]] = {
    "dbdp": lambda steps, n: {"steps": steps},
    "dbdp-pi": lambda steps, n: {"rounds": steps // 10, "local_steps": 10},
    "pidp-sgd": lambda steps, n: {"rounds": 5, "local_steps": steps // 5},
    "dp-sgd": lambda steps, n: {"sampling_rate": n**-0.5, "epochs": steps * n**-0.5},
}


def tuning_grid(mechanism: str, model: str, n: int) -> Grid:
    """Settings that a method is tuned over: the same numbers of steps and step sizes for all; batches have about √n rows."""
    counts = STEP_COUNTS if get_model(model).convex else STEP_COUNTS[:2]  # more steps of a network take minutes
    return [_KNOBS_OF_STEPS[mechanism](steps, n) | {"step_size": size} for steps in counts for size in STEP_SIZES]


def start_knobs(mechanism: str, start: str) -> dict[str, Any]:
    """Knobs for one of `STARTS`; none where a method has only one start."""
    cls = get_mechanism(mechanism)
    return cls.starting(start != STARTS[0]) if issubclass(cls, ChoosesStart) else {}


def judge_starts(check: Check, rows: Mapping[str, Sequence[pd.DataFrame]], elsewhere: str) -> Verdict:
    """The joint finding of two starts: where only the published one reaches it, that start is the condition."""
    published, alone = (check(pd.concat(rows[start])) for start in STARTS)
    because = f"Started at the non-private model: {published.because} Started at {elsewhere}: {alone.because}"
    if published.outcome is Outcome.HOLDS and alone.outcome is not Outcome.HOLDS:
        published = published.add_condition(STARTED)
        because += " No ε covers what that start has seen."
    return replace(published, because=because)


def accuracy_test(check: Check, mechanism: str, other: str, model: str = "logistic", quick: str = "", why: str = "") -> Test:
    """A method that starts at the non-private model is more accurate than another, which does not.

    Args:
        model: the publication's.
        quick: a smaller one for the quick test where the publication's takes minutes.
        why: what explains a lead, beside the start.
    """

    def test(context: Context) -> Verdict:
        chosen = context.choose(quick or model, model)
        convex = get_model(chosen).convex  # a network takes as long for a tenth of the rows
        names = context.data(QUICK if convex else QUICK[:1], FULL)
        # a rule on influences inverts a network's Hessian for every draw and round
        grid = (0.05, 0.2, 1.0, 5.0) if convex else context.choose((0.2, 5.0), (0.05, 0.2, 1.0, 5.0))
        seeds = context.choose(10, 30) if convex else context.choose(8, 10)
        nowhere = "zero" if convex else "a random point"
        words = dict(zip(STARTS, ("the non-private model", nowhere), strict=True))
        numbers = [] if chosen == model else [("Model", f"{get_model(chosen).label}; the full test takes the publication's")]
        rows: dict[str, list[pd.DataFrame]] = {start: [] for start in STARTS}
        tables = []
        for here, name in context.parts(names):
            setting = here.setup(name, chosen)[0].problem.setting
            theirs, ends = here.part(0, 3).best(other, tuning_grid(other, chosen, setting.n), name, grid, seeds, model=chosen)
            numbers.append((f"Steps of {list_mechanisms()[other].label} on {name}, first split", _steps(other, ends, setting)))
            label = list_mechanisms()[mechanism].label
            sides = {}
            for s, start in enumerate(STARTS):
                knobs = [g | start_knobs(mechanism, start) for g in tuning_grid(mechanism, chosen, setting.n)]
                mine, ends = here.part(s + 1, 3).best(mechanism, knobs, name, grid, seeds, model=chosen)
                rows[start] += [mine.rows(mechanism), theirs.rows(other)]
                sides[f"{label}, {'non-private start' if s == 0 else f'start at {nowhere}'}"] = (mechanism, mine)
                numbers += [
                    (f"Ahead on {name}, started at {words[start]}", leads(mine, theirs)),
                    (f"Steps of {label} on {name}, first split, started at {words[start]}", _steps(mechanism, ends, setting)),
                ]
            tables.append(accuracy_lines(name, sides | {list_mechanisms()[other].label: (other, theirs)}))
        verdict = judge_starts(check, rows, nowhere)
        return replace(
            verdict,
            because=f"{verdict.because} {why}".rstrip(),
            rule=f"{check.rule} {TUNED}",
            numbers=tuple(numbers),
            table=pd.concat(tables),
            picture=ACCURACY,
            seeds=context.seeds,
        )

    return ByCheck(check, test)


def gap_almost_zero(check: Check, mechanism: str) -> Test:
    """The optimality gap is almost zero; with the published start, and without it."""

    def test(context: Context) -> Verdict:
        names, grid, seeds = context.data(QUICK, FULL), (0.1, 1.0, 5.0), context.choose(10, 30)
        rows: dict[str, list[pd.DataFrame]] = {start: [] for start in STARTS}
        numbers, tables = [], []
        for here, (name, start) in context.parts([*product(names, STARTS)]):
            setup, _ = here.setup(name)
            knobs = [g | start_knobs(mechanism, start) for g in tuning_grid(mechanism, "logistic", setup.problem.n)]
            best, ends = here.best(mechanism, knobs, name, grid, seeds, by="gap")
            rows[start].append(best.rows(mechanism))
            # F(0) of the same problem: the objective of a model that says nothing
            scale = setup.problem.objective(np.zeros((1, setup.problem.m))) - best.baselines["optimum"].to_numpy()
            share = 100 * best.gap / scale
            where = f"started at {'the non-private model' if start == STARTS[0] else 'zero'}"
            numbers += [
                (f"Gap on {name}, {where}", ", ".join(f"{v:.2g} %" for v in share.mean(axis=1))),
                (f"Steps on {name}, first split, {where}", _steps(mechanism, ends, setup.problem.setting)),
            ]
            tables.append(lines(name, where, mechanism, grid, np.minimum(share, 1e8)))
        return replace(
            judge_starts(check, rows, "zero"),
            rule=f"{check.rule} {TUNED} The least gap of the model that they give counts.",
            numbers=tuple(numbers),
            table=pd.concat(tables),
            picture=Picture(
                "ε", "gap, % of F(0) − F(θ*)", log_x=True, log_y=True, limit=100 * ALMOST_ZERO, limit_label="almost zero"
            ),
            seeds=context.seeds,
        )

    return ByCheck(check, test)


def _steps(mechanism: str, chosen: Sequence[dict[str, Any]], setting: Setting) -> str:
    """Numbers of steps and step sizes that were chosen, one for each budget."""
    built = [sets.build(mechanism, knobs) for knobs in chosen]
    return ", ".join(f"{one.step_count(setting):,} of {one.step_size:g}/L" for one in built)  # type: ignore[attr-defined]


def comparison_test(
    check: Check,
    mechanism: str,
    grid: Grid,
    others: Sequence[tuple[str, Grid]],
    budgets: Sequence[float],
    model: str = "logistic",
) -> ByCheck:
    """A method beside others at the same claimed budgets, each at its best hyperparameters."""

    def test(context: Context) -> Verdict:
        names = context.choose(QUICK if get_model(model).convex else QUICK[:1], QUICK)
        seeds = context.choose(40, 200)
        rows, numbers, tables = [], [], []
        for here, name in context.parts(names):
            sides = best_sides(here, [(mechanism, grid), *others], name, budgets, seeds, model=model)
            rows += [measured.rows(of) for of, measured in sides.values()]
            (own, (_, mine)), *rest = sides.items()
            numbers += [(f"{own} minus {label} on {name}", leads(mine, theirs)) for label, (_, theirs) in rest]
            tables.append(accuracy_lines(name, sides))
        verdict = check(pd.concat(rows))
        return replace(
            verdict,
            because=f"{verdict.because} All sides are given the same claimed ε; what the claim is worth is another card.",
            rule=f"{check.rule} {TUNED}",
            numbers=tuple(numbers),
            table=pd.concat(tables),
            picture=ACCURACY,
            seeds=context.seeds,
        )

    return ByCheck(check, test)
