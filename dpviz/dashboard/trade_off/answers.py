"""The answers of the trade-off page in sentences: which method is best at an ε, and which ε an accuracy needs."""

import math

import pandas as pd

from dpviz.dashboard.components import panels
from dpviz.dashboard.frame import pinned
from dpviz.dashboard.trade_off import running
from dpviz.experiments.studies.majority_baseline import LEAST, useless_methods
from dpviz.experiments.sweeps import curves
from dpviz.mechanisms import list_mechanisms
from dpviz.privacy.budget import Status
from dpviz.reporting import words

_PROVED = (Status.PROVED.value, Status.PROVED_IF.value)


def headline(view: running.View) -> None:
    """The answers to both questions, a sentence each."""
    table = view.table()
    target = view.wanted(table)
    if not len(table):
        panels.headline("The first numbers are on their way.", of=view.spec)
        return
    measure = view.choices.metric
    if no_value(view, table):
        why = words.NO_VALUE[measure.needs]
        panels.headline(f"{measure.label} has no value here: {why}. Choose another metric in the sidebar.", of=view.spec)
        return
    (top, floor), names = view.baselines(table), labels()
    if measure.higher_is_better and top <= floor + LEAST:
        panels.headline(
            f"Nothing to compare: the non-private model has {measure.within} {words.metric_value(measure, top)}, no more "
            "than majority label.",
            "Choose another metric in the sidebar, for example ROC AUC, or lower λ.",
            of=view.spec,
        )
        return
    first, least = best_row(view), smallest_need(view, target)
    interval = None if least is None else view.interval(least.mechanism, target)
    panels.headline(
        words.best_method(first, names, floor, measure, len(rows_at_budget(view)), view.status().state.over),
        words.needed_budget(least, target, names, interval, "" if first is None else str(first["mechanism"]), measure, top),
        of=view.spec,
    )


def best_row(view: running.View) -> pd.Series | None:
    """The summary's row of the best method at the sidebar's budget whose guarantee is proved; None for none."""
    sign = 1 if view.choices.metric.higher_is_better else -1
    rows = [row for row in rows_at_budget(view) if row["status"] in _PROVED and math.isfinite(row["mean"])]
    return max(rows, key=lambda row: sign * float(row["mean"]), default=None)


def smallest_need(view: running.View, target: float) -> curves.Needed | None:
    """The smallest need of a proved method for the target value; None where none is proved."""
    return next((one for one in view.needed(target) if one.status in _PROVED), None)


def rows_at_budget(view: running.View) -> list[pd.Series]:
    """Each method's row of the summary at the sidebar's budget, once it is computed: proved first, then by the metric."""
    name = ("at budget", view.choices.metric, view.spec.epsilon)
    return view.job.once(name, lambda: _at_budget(view))


def _at_budget(view: running.View) -> list[pd.Series]:
    summary, sign = view.summary(band="mean"), -1 if view.choices.metric.higher_is_better else 1
    rows = (curves.row_at(summary, str(m), view.spec.epsilon) for m in dict.fromkeys(summary["mechanism"]))
    rank = {status.value: k for k, status in enumerate((Status.PROVED, Status.PROVED_IF, Status.CLAIM, Status.NONE))}
    return sorted(
        (one for one in rows if one is not None and one["epsilon"] == view.spec.epsilon),
        key=lambda one: (rank[one["status"]], math.isnan(one["mean"]), sign * one["mean"]),
    )


def no_value(view: running.View, table: pd.DataFrame) -> bool:
    """True where the metric has no value for this data and model, whatever the method."""
    return math.isnan(view.baselines(table)[0])


def guessing(view: running.View) -> None:
    """The methods that are no better than the majority label, with the largest such epsilon and the cause."""
    table = view.table()
    if not len(table) or no_value(view, table):
        return
    metric = view.choices.metric
    poor = view.job.once(("no better", metric), lambda: useless_methods(table, metric))
    if not len(poor):
        return
    named = list_mechanisms()
    parts = [
        f"{named[row['mechanism']].label if row['mechanism'] in named else row['mechanism']} up to ε = {row['up_to']:.3g} "
        f"({row['cause']})"
        for row in poor.to_dict("records")
    ]
    panels.note(f"No better than the majority label: {'; '.join(parts)}.")


def other_run(view: running.View) -> None:
    """The difference of the best proved method at the sidebar's budget from run A, in words."""
    a = view.overlay
    if a is None or a.cost.metric.id != view.choices.metric.id:
        return
    measure, message = a.cost.metric, f"A is {words.title(a.spec)}: {words.metric_value(a.cost.metric, a.cost.mean)}."
    first = best_row(view) if len(view.table()) else None
    if first is not None:
        change = pinned.difference_from(measure, float(first["mean"]), a.cost.mean)
        message += f" The best proved method here has {'the same' if change == 'the same' else f'{change} against A'}."
    panels.text(message)


def labels() -> dict[str, str]:
    """The names of mechanisms."""
    return {name: cls.label for name, cls in list_mechanisms().items()}
