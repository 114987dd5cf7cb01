"""Claims of Bagdasaryan, Poursaeed and Shmatikov: DP-SGD costs small groups more accuracy than large ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.common.random import spawn
from dpviz.experiments.run.measure import train
from dpviz.experiments.studies.groups import SMALL, Grouping, columns, group, measure_groups
from dpviz.mechanisms import Training, protection
from dpviz.papers import sets
from dpviz.papers.checks import MARGIN, NOTHING
from dpviz.papers.claims.context import Context
from dpviz.papers.claims.tables import lines, span
from dpviz.papers.numbers import LEVEL, paired_mean
from dpviz.papers.verdict import Comparison, Picture, Scope, Verdict, combine, summary
from dpviz.privacy.budget import Budget

BUDGETS = (0.3, 1.0, 3.0)


@dataclass(frozen=True, eq=False)
class Pair:
    """The smallest and the largest group of a column.

    Attributes:
        column: how rows are put into groups.
        small, large: names of the groups.
        sizes: their test rows.
        lost: (2, E, S) accuracy that each loses: non-private minus private.
        non_private: their accuracies without privacy.
    """

    column: str
    small: str
    large: str
    sizes: tuple[int, int]
    lost: Floats
    non_private: tuple[float, float]


def pairs(context: Context, dataset: str, budgets: Sequence[float], seeds: int) -> list[Pair]:
    """The cost of DP-SGD for the smallest and the largest group of every column of text, from the same models."""
    shared, delta = context.setup(dataset)
    problem, test = shared.problem, shared.test
    mechanism = context.build("dp-sgd")
    calibrations = [protection.calibrate(mechanism, problem.setting, Budget(e, delta)) for e in budgets]
    training = Training(problem, calibrations, spawn(context.seed, seeds), record=False, monitor=context.monitor)
    theta = train(mechanism, training, keep_diverged=True).fit.theta
    private = problem.model.scores(theta.reshape(-1, problem.m), test).T
    best = problem.model.scores(problem.optimum[None], test).T
    made = []
    for column, number in columns(shared.dataset).items():
        groups = group(shared.dataset, Grouping(column))
        index, count = groups.index[shared.split.test], len(groups.names)
        sizes = np.bincount(index, minlength=count)
        large_enough = np.flatnonzero(sizes >= SMALL)
        if number or len(large_enough) < 2:
            continue
        ends = [large_enough[sizes[large_enough].argmin()], large_enough[sizes[large_enough].argmax()]]
        before = measure_groups(best, test.y, index, count)["accuracy"][0, ends]
        after = measure_groups(private, test.y, index, count)["accuracy"][:, ends].reshape(len(budgets), seeds, 2)
        made.append(
            Pair(
                column,
                groups.names[ends[0]],
                groups.names[ends[1]],
                (int(sizes[ends[0]]), int(sizes[ends[1]])),
                np.moveaxis(before - after, 2, 0),
                (float(before[0]), float(before[1])),
            )
        )
    return made


def small_groups_lose_more(context: Context) -> Verdict:
    """DP-SGD costs the smaller group more accuracy than the larger one, in every column of text and at every budget."""
    names = context.data(("census-10000",), ("census-10000", "census-45000"))
    seeds = context.choose(30, 100)
    comparisons: list[Comparison] = []
    numbers: list[tuple[str, str]] = []
    tables: list[pd.DataFrame] = []
    for k, name in enumerate(names):
        measured = context.hook("pairs", pairs)(context.part(k, len(names)), name, BUDGETS, seeds)
        for pair in measured:
            more = pair.lost[0] - pair.lost[1]
            for e, epsilon in enumerate(BUDGETS):
                lead = paired_mean(more[e])
                way = f"{100 * abs(lead.mean):.2f} points {'more' if lead.mean >= 0 else 'less'}"
                message = f"“{pair.small}” loses {way} than “{pair.large}” at ε = {epsilon:g}"
                lost = bool(np.abs(pair.lost[:, e].mean(axis=1)).max() >= NOTHING)
                message += "" if lost else ", where neither loses anything"
                comparisons.append(
                    Comparison(f"{pair.column} on {name}", lead.leads(MARGIN) if lost else None, message, -lead.mean)
                )
            title = f"{pair.column} on {name}: “{pair.small}” ({pair.sizes[0]:,} test rows), “{pair.large}” ({pair.sizes[1]:,})"
            numbers.append((f"Lost more by the smaller group, {title}", span([float(m) for m in more.mean(axis=1)])))
            before = " and ".join(f"{100 * share:.1f} %" for share in pair.non_private)
            numbers.append((f"Accuracy without privacy, {pair.column} on {name}", before))
            panel = f"{name}, {pair.column}"
            for words, values in zip((f"smallest: {pair.small}", f"largest: {pair.large}"), pair.lost, strict=True):
                tables.append(lines(panel, words, "dp-sgd", BUDGETS, 100 * values))
    return Verdict(
        combine(comparisons, Scope.MOST),
        f"{summary(comparisons, Scope.MOST)} The loss is to the non-private optimum of the same linear model; the publication "
        "trains deep networks, whose small groups need more updates.",
        f"Both groups are measured on the same models. More means by at least {100 * MARGIN:g} points, significant by the "
        f"{LEVEL:.0%} interval of the mean difference of the losses (paired, over noise draws and not over test rows); not more "
        f"that the interval lies below {100 * MARGIN:g} points. Undecided where both lose less than {100 * NOTHING:g} point. "
        f"Of every column of text the smallest group of at least {SMALL} test rows is set beside the largest. Holds if it loses "
        "more in most of these comparisons, fails if not more in at least half. DP-SGD has its automatic hyperparameters. "
        f"{_clipping()}",
        tuple(numbers),
        "",
        pd.concat(tables) if tables else pd.DataFrame(),
        Picture("ε", "accuracy lost, points", log_x=True, limit=0.0, limit_label="nothing lost"),
        f"{seeds} noise draws per point, seed {context.seed}, split 0.",
    )


def _clipping() -> str:
    """A sentence on clipping, one of the publication's reasons."""
    clip_norm = sets.pinned_values("dp-sgd")["clip_norm"]
    none = ", so that clipping, one of the publication's reasons, changes none" if clip_norm >= 1 else ""
    return f"Its clip norm is {clip_norm:g}; gradients of logistic regression on rows in the unit ball are at most 1 long{none}."
