"""The answers of the trade-off page: which of all methods is best at an ε, and which ε a wanted value needs."""

import math
from collections.abc import Sequence

import pandas as pd

from dpviz.dashboard.components import charts, panels
from dpviz.dashboard.frame import pinned, ranking
from dpviz.dashboard.trade_off import running
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.studies.guarantees import Measured
from dpviz.experiments.studies.majority_baseline import LEAST
from dpviz.experiments.sweeps import curves
from dpviz.mechanisms import list_mechanisms
from dpviz.privacy.budget import Status
from dpviz.reporting import words

_PROVED = (Status.PROVED.value, Status.PROVED_IF.value)


def headline(view: running.View, measured: Measured) -> None:
    """The best of all methods at this ε, and the ε that a wanted value needs."""
    measure, methods = view.choices.metric, ranking.lines(measured, view.choices.metric)
    top, floor = (float(measured.baselines.at[model, measure.column]) for model in ("non-private", "majority"))
    if math.isnan(top):
        why = words.NO_VALUE[measure.needs]
        panels.headline(f"{measure.label} has no value here: {why}. Choose another metric in the sidebar.", of=view.spec)
        return
    if measure.higher_is_better and top <= floor + LEAST:
        panels.headline(
            f"Nothing to compare: the non-private model has {measure.within} {words.metric_value(measure, top)}, no more "
            "than majority label.",
            "Choose another metric in the sidebar, for example ROC AUC, or lower λ.",
            of=view.spec,
        )
        return
    best = ranking.best(methods, measure, len(setup_for(view.spec).test))
    names, value = [one.label for one in best], best[0].mean if best else math.nan
    over = view.ranked.over
    panels.headline(
        words.best_method(names, value, view.spec.epsilon, floor, measure, len(methods), over), _wanted(view, top), of=view.spec
    )
    _compare_with_a(view, methods)


def _wanted(view: running.View, top: float) -> str:
    """The ε that a wanted value needs, in a sentence; "" where none is wanted or no curve is there yet."""
    target = view.choices.want
    if target is None or not len(view.table()):
        return ""
    least = next((one for one in view.needed(target) if one.status in _PROVED), None)
    interval = None if least is None else view.interval(least.mechanism, target)
    return words.needed_budget(least, target, labels(), interval, "", view.choices.metric, top)


def rank(view: running.View, measured: Measured) -> None:
    """All methods at this ε, ranked below the status of their guarantee."""
    measure, methods = view.choices.metric, ranking.lines(measured, view.choices.metric)
    picture, baselines = ranking.picture(methods, measured, measure, view.theme, view.overlay, narrow=True)
    if picture is None:
        return
    at = words.three(view.spec.epsilon)
    summary = f"Test {measure.within} of {len(methods)} methods at ε = {at}, by the status of their guarantee; {baselines}."
    table = pd.DataFrame([{"method": one.label, "status": one.status, "mean": one.mean, "error": one.error} for one in methods])
    charts.chart(picture, "ranked", summary, lambda: table)


def rows_at_budget(view: running.View) -> list[pd.Series]:
    """Each drawn method's row of the summary at the sidebar's budget, once it is computed: proved first, then by the metric."""
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


def _compare_with_a(view: running.View, methods: Sequence[ranking.Line]) -> None:
    """The difference of the best proved method from run A, in words."""
    a, measure = view.overlay, view.choices.metric
    if a is None or a.cost.metric.id != measure.id:
        return
    message = f"A is {words.title(a.spec)}: {words.metric_value(measure, a.cost.mean)}."
    first = next(iter(ranking.ranked(methods, measure)), None)
    if first is not None:
        change = pinned.difference_from(measure, first.mean, a.cost.mean)
        message += f" The best proved method here has {'the same' if change == 'the same' else f'{change} against A'}."
    panels.text(message)


def labels() -> dict[str, str]:
    """The names of mechanisms."""
    return {name: cls.label for name, cls in list_mechanisms().items()}
