"""The answers of the trade-off page, the numbers behind them, and cross validation, the way papers report accuracy."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import charts, panels, repeat, tables
from dpviz.dashboard.frame import links, pinned, ranking, sidebar
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.trade_off import running, settings
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import calibration_of, setup_for
from dpviz.experiments.studies.guarantees import Measured
from dpviz.experiments.studies.majority_baseline import LEAST
from dpviz.experiments.sweeps import curves
from dpviz.experiments.sweeps.cells import CellStore
from dpviz.experiments.sweeps.folds import cross_validate, summarise_splits
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model
from dpviz.privacy.budget import Status
from dpviz.reporting import words
from dpviz.reporting.calls import sweep_call, sweep_shell_call

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
            "than the majority label.",
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
    least = next((one for one in view.needed_budgets(target) if one.status in _PROVED), None)
    interval = None if least is None else view.interval(least.mechanism, target)
    return words.needed_budget(least, target, labels(), interval, "", view.choices.metric, top)


def ranked_picture(view: running.View, measured: Measured) -> tuple[Any, str]:
    """`ranking.picture` of all methods at this ε."""
    methods = ranking.lines(measured, view.choices.metric)
    return ranking.picture(methods, measured, view.choices.metric, view.theme, view.overlay, narrow=True)


def rank(view: running.View, measured: Measured) -> None:
    """All methods at this ε, ranked below the status of their guarantee."""
    measure, methods = view.choices.metric, ranking.lines(measured, view.choices.metric)
    picture, baselines = ranked_picture(view, measured)
    if picture is None:
        return
    at = words.three(view.spec.epsilon)
    summary = f"Test {measure.within} of {len(methods)} methods at ε = {at}, by the status of their guarantee; {baselines}."
    table = pd.DataFrame([{"method": one.label, "status": one.status, "mean": one.mean, "error": one.error} for one in methods])
    charts.chart(picture, "ranked", summary, lambda: table)


def _at_budget(view: running.View) -> list[pd.Series]:
    summary, sign = view.summary(band="mean"), -1 if view.choices.metric.higher_is_better else 1
    rows = (curves.row_at(summary, str(m), view.spec.epsilon) for m in dict.fromkeys(summary["mechanism"]))
    rank = {status.value: k for k, status in enumerate((Status.PROVED, Status.PROVED_IF, Status.CLAIM, Status.NONE))}
    return sorted(
        (one for one in rows if one is not None and one["epsilon"] == view.spec.epsilon),
        key=lambda one: (rank[one["status"]], math.isnan(one["mean"]), sign * one["mean"]),
    )


def _compare_with_a(view: running.View, methods: Sequence[ranking.Line]) -> None:
    """The difference of the best proved method from run A, in words."""
    a, measure = view.overlay, view.choices.metric
    if a is None or a.cost.metric.id != measure.id:
        return
    message = f"A is {words.title(a.spec)}: {words.metric_value(measure, a.cost.mean)}."
    first = next(iter(ranking.rank_methods(methods, measure)), None)
    if first is not None:
        change = pinned.difference_from(measure, first.mean, a.cost.mean)
        message += f" The best proved method here has {'the same' if change == 'the same' else f'{change} against A'}."
    panels.text(message)


def labels() -> dict[str, str]:
    """The names of mechanisms."""
    return {name: cls.label for name, cls in list_mechanisms().items()}


def method_table(view: running.View) -> None:
    """One row per method, sorted by guarantee and metric at the chosen budget."""
    table = view.table()
    if not len(table) or math.isnan(view.baselines(table)[0]):
        return
    measure = view.choices.metric
    a = view.overlay if view.overlay is not None and view.overlay.cost.metric.id == measure.id else None
    name = "at budget", measure.id, view.spec.epsilon
    # first: what is asked for later may know more methods, and never fewer
    methods = view.job.compute_once(name, lambda: _at_budget(view))
    gaps, draws = view.summary("optimality_gap"), view.summary()
    target, (best, floor) = view.choices.want, view.baselines(table)
    budgets = {} if target is None else {one.mechanism: one for one in view.needed_budgets(target)}
    convex = get_model(view.spec.model).convex
    rows = []
    for here in methods:
        mechanism = str(here["mechanism"])
        gap, some = (curves.row_at(one, mechanism, view.spec.epsilon) for one in (gaps, draws))
        assert gap is not None
        assert some is not None
        run = view.sweep.run(mechanism, view.spec.epsilon)
        label, sign, _ = words.label(calibration_of(run), run.build())
        below = " ⚠ worse than guessing" if measure.higher_is_better and words.is_worse(float(here["mean"]), floor) else ""
        rows.append(
            (
                labels()[mechanism],
                f"{sign} {label}",
                words.three(here["epsilon"]),
                f"{words.metric_value(measure, float(here['mean']))}{below}",
                words.metric_range(measure, float(some["low"]), float(some["high"])),
                *([] if target is None else [_needed(view, budgets.get(mechanism), target)]),
                words.three(max(gap["mean"], 0.0) if convex else gap["mean"]),
                str(here["draws"]),
                *([] if a is None else [pinned.difference_from(measure, float(here["mean"]), a.cost.mean)]),
            )
        )
    wanted = () if target is None else (f"ε for {words.metric_value(measure, target)}",)
    columns = ("Method", "Guarantee", "At ε", measure.label, "10–90 % of draws", *wanted, "Optimality gap", "Draws")
    tables.table(rows, columns if a is None else (*columns, f"Against A: {words.metric_value(measure, a.cost.mean)}"))
    delta = words.three(resolve(view.spec).budget.delta)
    panels.note(
        f"{sidebar.dataset_label(view.spec.dataset)}, {get_model(view.spec.model).label.lower()}, "
        f"{_regularised(view)}, δ = {delta}; non-private "
        f"{words.metric_value(measure, best)}, majority label {words.metric_value(measure, floor)}, both on the test rows. "
        f"{words.OUTSIDE}"
    )
    if not convex:
        st.caption(f"The gap is to {words.minimum(convex)}. {words.NO_MINIMUM}")


def _needed(view: running.View, one: curves.Needed | None, target: float) -> str:
    """The ε that a method needs for a value, in words."""
    return "no value" if one is None else words.read_off(one, view.interval(one.mechanism, target))


def _regularised(view: running.View) -> str:
    """λ of all methods that are compared, which the rule sets for each method and ε where it is left automatic."""
    values = {resolve(view.sweep.run(name, view.spec.epsilon)).lam for name in view.sweep.named}
    if len(values) == 1:
        return f"λ = {words.three(*values)} at this ε"
    return f"λ by each method’s rule, {words.three(min(values))} to {words.three(max(values))} at this ε"


def downloads(view: running.View) -> None:
    """Downloads: the curve, every draw, and the spec that repeats it in a shell."""
    with st.container(horizontal=True):
        tables.download(view.table, "draws", "Save every draw (CSV)")
        st.download_button(
            "Save the settings (TOML)",
            view.sweep.to_toml,  # made when pressed: a file made now is gone with the next run of the page
            "dpviz-sweep.toml",
            "application/toml",
            type="tertiary",
            icon=":material/download:",
            on_click="ignore",
        )


def section(view: running.View) -> None:
    """The numbers of the methods that are drawn, downloads, formulas, sources and calls."""
    with st.expander("Numbers of these curves, and how they are computed"):
        running.draw_live(view, method_table, every=running.PICTURES)
        downloads(view)
        links.examine(view.spec.mechanism)
        st.markdown(
            "Every method trains all its noise draws at all budgets together; draw *s* uses the same standard noise at every "
            "ε. The mean is exact where the distribution of the released parameters is known (mean of Φ(margin / (σ‖x‖)) over "
            "the test rows); where training itself is random it is exact over the noise and averaged over the trainings. "
            "Intervals of the mean are percentile bootstrap intervals (Efron 1979) over the draws. ε for a value is read off the "
            "isotonic regression of the means, linearly in log ε; nothing is extrapolated."
        )
        if view.choices.odds:
            st.latex(
                r"\Pr[\text{right guess}] \le \tfrac12(1 + \mathrm{TV}) \le "
                r"\tfrac12\Bigl(1 + \tfrac{e^{\varepsilon} - 1 + 2\delta}{e^{\varepsilon} + 1}\Bigr)"
            )
            st.markdown(
                "TV is the total variation between the outputs on two neighbours. Where the distribution of the noise bounds it, "
                "the axis shows the first bound, otherwise the second (Kairouz, Oh, Viswanath 2015). It is that of the sidebar’s "
                "method and is drawn only where its ε is proved."
            )
        st.markdown("The same numbers from a shell; `dpviz sweep dpviz-sweep.toml` takes the settings saved above:")
        repeat.shell(sweep_shell_call(view.sweep))
        st.markdown("and from Python:")
        repeat.python(sweep_call(view.sweep))


FOLDS = 5  # where the run has one split


def cross_validation(view: running.View) -> None:
    """A number of repeats, a button, and means over all folds with both spreads."""
    spec, metric = view.spec, view.choices.metric
    st.subheader("Cross-validate the methods of the picture", anchor=False)
    repeats = settings.REPEATS.draw()
    folds = spec.folds or FOLDS
    sweep = replace(view.sweep, epsilons=(spec.epsilon,), folds=folds, split_seed=0, published_split=False)
    folding = f"{repeats} × {folds} folds"
    found = tasks.current_result(
        "folds",
        "Cross validation",
        lambda monitor: cross_validate(_able(sweep), repeats, store=CellStore.personal(), monitor=monitor),
        given=(repeats, sweep.key()),
        dataset=spec.dataset,
        ask=f"Train on {folding}, {sweep.seeds} noise draws each",
    )
    if found is None:
        return
    sweep = replace(sweep, mechanisms={name: params for name, params in sweep.named.items() if name in {*found["mechanism"]}})
    without = [labels()[name] for name in view.sweep.named if name not in sweep.named]
    if without:
        panels.note(f"Without {', '.join(without)}, which cannot be calibrated at this ε.")
    columns = ["mean", "standard_error", "noise_sd", "split_sd"]
    means = summarise_splits(found, folds, metric.column).set_index("mechanism")[columns]
    rows = [(labels()[name], *(words.metric_value(metric, v) for v in values)) for name, values in means.T.items()]
    tables.table(rows, ("Method", f"Mean {metric.within}", "Standard error", "Spread over noise", "Spread over splits"))
    best = words.metric_value(metric, float(found[f"non_private_{metric.column}"].mean()))
    st.caption(
        f"{folding}: {repeats} permutations of the rows, each fold the test rows once. Non-private {best} on the same folds. "
        "Training rows of different folds overlap, and the standard error counts that (Nadeau, Bengio 2003). Spreads are "
        "standard deviations; splits are without the noise."
    )
    tables.download(lambda: found, "folds", "Save every fold (CSV)")
    repeat.shell(f"{sweep_shell_call(sweep)} --repeats={repeats}")


def _able(sweep: SweepSpec) -> SweepSpec:
    """The methods that can be calibrated at the sweep's epsilon: one that cannot would end all.

    Raises:
        InvalidInput: none can.
    """
    able, problem = {}, None
    for name, params in sweep.named.items():
        try:
            calibration_of(sweep.run(name, sweep.epsilons[0]))
            able[name] = params
        except InvalidInput as refusal:
            problem = refusal
    if not able and problem is not None:
        raise problem
    return replace(sweep, mechanisms=able)
