"""Claims of Bagdasaryan, Poursaeed and Shmatikov: DP-SGD costs small groups more accuracy than large ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.datasets import load_dataset
from dpviz.experiments.studies.groups import SMALL, Grouping, columns, report
from dpviz.experiments.studies.releases import releases
from dpviz.papers import sets
from dpviz.papers.checks import MARGIN, NOTHING
from dpviz.papers.claims.context import Context
from dpviz.papers.claims.tables import lines, percent, span
from dpviz.papers.numbers import LEVEL, paired_mean
from dpviz.papers.verdict import Comparison, Picture, Scope, Verdict, combine, summary

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
    spec = replace(context.spec(dataset), mechanism="dp-sgd", params=sets.pinned_values("dp-sgd"), seed=context.seed, seeds=seeds)
    trained, made = releases(spec, budgets, context.monitor), []
    for column in (name for name, number in columns(load_dataset(dataset)).items() if not number):
        groups = report(trained, Grouping(column))
        sizes = groups.sizes.loc[groups.compared, "test"]
        if len(sizes) > 1:
            small, large = sizes.idxmin(), sizes.idxmax()
            before = groups.baseline("non-private")[[small, large]].to_numpy()
            after = groups.draws.pivot(index=["epsilon", "seed"], columns="group", values="accuracy")[[small, large]]
            lost = np.moveaxis(before - after.to_numpy().reshape(len(budgets), seeds, 2), 2, 0)
            made.append(
                Pair(column, small, large, (int(sizes[small]), int(sizes[large])), lost, (float(before[0]), float(before[1])))
            )
    return made


def small_groups_lose_more(context: Context) -> Verdict:
    """DP-SGD costs the smaller group more accuracy than the larger one, in every column of text and at every budget."""
    names = context.data(("census-10000",), ("census-10000", "census-45000"))
    seeds = context.choose(30, 100)
    comparisons, numbers, tables = [], [], []
    for here, name in context.parts(names):
        measured = context.hook("pairs", pairs)(here, name, BUDGETS, seeds)
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
            numbers += [
                (f"Lost more by the smaller group, {title}", span([float(m) for m in more.mean(axis=1)])),
                (f"Accuracy without privacy, {pair.column} on {name}", " and ".join(map(percent, pair.non_private))),
            ]
            for words, values in zip((f"smallest: {pair.small}", f"largest: {pair.large}"), pair.lost, strict=True):
                tables.append(lines(f"{name}, {pair.column}", words, "dp-sgd", BUDGETS, 100 * values))
    return Verdict(
        combine(comparisons, Scope.MOST),
        f"{summary(comparisons, Scope.MOST)} The loss is to the non-private optimum of the same linear model; the publication "
        "trains deep networks, whose small groups need more updates.",
        f"Both groups are measured on the same models. More means by at least {100 * MARGIN:g} points, significant by the "
        f"{LEVEL:.0%} interval of the mean difference of the losses (paired, over noise draws and not over test rows); not more "
        f"that the interval lies below {100 * MARGIN:g} points. Undecided where both lose less than {100 * NOTHING:g} point. "
        f"Of every column of text the smallest group of at least {SMALL} test rows is set beside the largest. Holds if it loses "
        "more in most of these comparisons, fails if not more in at least half. DP-SGD has its automatic hyperparameters, but "
        f"for a clip norm of {sets.pinned_values('dp-sgd')['clip_norm']:g}, at which no gradient of a linear model on rows in "
        "the unit ball is clipped: clipping, one of the publication's reasons, changes none.",
        tuple(numbers),
        "",
        pd.concat(tables) if tables else pd.DataFrame(),
        Picture("ε", "accuracy lost, points", log_x=True, limit=0.0, limit_label="nothing lost"),
        f"{seeds} noise draws per point, seed {context.seed}, split 0.",
    )
