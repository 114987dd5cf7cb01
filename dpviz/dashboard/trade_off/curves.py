"""The trade-off page: a sweep as a job, its picture, the ε needed for an accuracy, and its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.kit import charts, panels, repeat, tables, words
from dpviz.dashboard.shell import address, links, pinned, sidebar
from dpviz.dashboard.trade_off import running
from dpviz.dashboard.trade_off.settings import BANDS, title
from dpviz.dashboard.work.job import State
from dpviz.experiments import curves
from dpviz.experiments.falling import falls
from dpviz.experiments.no_better import LEAST, no_better_methods
from dpviz.experiments.resolve import resolve
from dpviz.figures import curves as figure
from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model
from dpviz.privacy.budget import Budget, Status, attack_accuracy
from dpviz.reporting.calls import sweep_call, sweep_shell_call

_OLD = "dpviz.picture"


def headline(view: running.View) -> None:
    """The answers to both questions, a sentence each."""
    table = view.table()
    target = view.wanted(table)
    if not len(table):
        panels.headline("The first numbers are on their way.")
        return
    measure = view.choices.metric
    if no_value(view, table):
        why = words.NO_VALUE[measure.needs]
        panels.headline(f"{measure.label} has no value here: {why}. Choose another metric in the sidebar.")
        return
    (top, floor), names = view.baselines(table), labels()
    if measure.higher_is_better and top <= floor + LEAST:
        panels.headline(
            f"Nothing to compare: the non-private model has {measure.within} {words.measured(measure, top)}, no more than the "
            "majority label.",
            "Choose another metric in the sidebar, for example ROC AUC, or lower λ.",
        )
        return
    first, least = best_at(view), least_for(view, target)
    interval = None if least is None else view.interval(least.mechanism, target)
    panels.headline(
        words.best_at(first, names, floor, measure, len(at_budget(view))),
        words.least_for(least, target, names, interval, "" if first is None else str(first["mechanism"]), measure),
    )


def no_value(view: running.View, table: pd.DataFrame) -> bool:
    """Whether the metric has no value for this data and model, whatever the method."""
    return math.isnan(view.baselines(table)[0])


def guessing(view: running.View) -> None:
    """Which methods are no better than the majority label, up to which epsilon, and why."""
    table = view.table()
    if not len(table) or no_value(view, table):
        return
    poor = no_better_methods(table, view.choices.metric)
    if not len(poor):
        return
    named = list_mechanisms()
    parts = [
        f"{named[row['mechanism']].label if row['mechanism'] in named else row['mechanism']} up to ε = {row['up_to']:.3g} "
        f"({row['cause']})"
        for row in poor.to_dict("records")
    ]
    st.caption(words.markdown(f"No better than the majority label: {'; '.join(parts)}."))


def falling(view: running.View) -> None:
    """Which methods get worse as epsilon grows, and why; nothing while numbers come in."""
    table = view.table()
    if not len(table) or not view.status().state.over or no_value(view, table):
        return
    measure, names = view.choices.metric, labels()
    drops = view.once("falls", lambda: falls(table, measure.column))
    real, luck = ([one for one in drops if one.certain == certain] for certain in (True, False))
    said = []
    if real:
        parts = [
            f"{names[one.mechanism]} is best at ε = {words.three(one.epsilon)} ({words.measured(measure, one.best)}, "
            f"{words.measured(measure, one.last)} at ε = {words.three(one.largest)})"
            for one in real
        ]
        said.append(
            f"Less noise is not better everywhere: {'; '.join(parts)}. Training minimises the loss and not the {measure.within}; "
            "with little noise a method approaches its own training without noise."
        )
        if measure.needs == "labels" and measure.id != "accuracy":
            said.append("There the usual threshold may call nobody of a rare class positive; noise calls some rows so by chance.")
    if luck:
        parts = [f"{names[one.mechanism]} from ε = {words.three(one.epsilon)}" for one in luck]
        said.append(
            f"A fall that {view.spec.seeds} noise draws cannot tell from luck (all budgets share them): {', '.join(parts)}. "
            "More draws can."
        )
    if said:
        st.caption(words.markdown(" ".join(said)))


def best_at(view: running.View) -> pd.Series | None:
    """The summary's row of the best method at the sidebar's budget whose guarantee is proved; None for none."""
    proved, sign = (Status.PROVED.value, Status.PROVED_IF.value), 1 if view.choices.metric.higher_is_better else -1
    rows = [row for row in at_budget(view) if row["status"] in proved and math.isfinite(row["mean"])]
    return max(rows, key=lambda row: sign * float(row["mean"]), default=None)


def least_for(view: running.View, target: float) -> curves.Needed | None:
    """What the proved method that needs least for the value wanted needs; None where none is proved."""
    proved = (Status.PROVED.value, Status.PROVED_IF.value)
    return next((one for one in view.needed(target) if one.status in proved), None)


def at_budget(view: running.View) -> list[pd.Series]:
    """Each method's row of the summary at the computed budget next to the sidebar's: proved first, then by the metric."""
    summary, sign = view.summary(band="mean"), -1 if view.choices.metric.higher_is_better else 1
    rows = (curves.at(summary, str(m), view.spec.epsilon) for m in dict.fromkeys(summary["mechanism"]))
    rank = {status.value: k for k, status in enumerate((Status.PROVED, Status.PROVED_IF, Status.CLAIM, Status.NONE))}
    return sorted(
        (one for one in rows if one is not None),
        key=lambda one: (rank[one["status"]], math.isnan(one["mean"]), sign * one["mean"]),
    )


def picture(view: running.View) -> None:
    """Curves over epsilon. Until new ones are there the old ones stay, dimmed."""
    table, chosen = view.table(), view.choices
    old: tuple[str, pd.DataFrame] | None = st.session_state.get(_OLD)
    place = f"{view.spec.dataset} {view.spec.model}"
    kept = old[1] if old is not None and (old[0] == place or not len(table)) else pd.DataFrame()
    if view.status().state is State.DONE:
        kept = pd.DataFrame()
    if len(kept):
        computed = set(table["mechanism"]) if len(table) else set()
        kept = kept[~kept["mechanism"].isin(computed) & kept["mechanism"].isin(chosen.methods)]
    if len(table) and view.status().state.over:
        st.session_state[_OLD] = (place, table)
    if not len(table) and not len(kept):
        with st.container(height=figure.PLOT, border=True, vertical_alignment="center", horizontal_alignment="center"):
            st.markdown("The picture appears here in a moment." if not view.status().state.over else "There is nothing to show.")
        return
    key = ("picture", str(charts.narrow()), *(kept["mechanism"].unique() if len(kept) else ()))
    made, lines, said = view.once(key, lambda: _drawn(view, kept))
    clicked = charts.chart(made, "trade-off", said, lambda: _data(view), clicks=True)
    st.caption("A click on a point opens that run on the first page. The sidebar’s method, if it is shown, has the band.")
    for where in clicked[:1]:
        index, _, epsilon = where.partition("|")
        name = lines[int(index)].mechanism if index.isdigit() and int(index) < len(lines) else ""
        if name in view.sweep.named:
            address.go("app.py", view.sweep.run(name, float(epsilon)).to_query())


def _drawn(view: running.View, kept: pd.DataFrame) -> tuple[Any, list[figure.Curve], str]:
    """The picture, its lines, and its content in words."""
    table, chosen = view.table(), view.choices
    lines = _curves(view, view.summary(chosen.show, chosen.band), False) if len(table) else []
    lines += _curves(view, curves.summarise(kept, chosen.show, chosen.band), True) if len(kept) else []
    base = table if len(table) else kept
    first, target = base.iloc[0], view.wanted(base)
    baselines: dict[str, float] = {}
    if f"non_private_{chosen.show}" in base:
        levels = {
            kind: float(first[f"{model}_{chosen.show}"]) for kind, model in (("none", "non_private"), ("majority", "majority"))
        }
        baselines = {kind: level for kind, level in levels.items() if np.isfinite(level)}
    elif chosen.show == "objective":
        baselines = {"none": float((base["objective"] - base["optimality_gap"]).median())}
    odds = [
        (e, attack_accuracy(Budget(e, resolve(view.spec).budget.delta)))
        for e in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
        if chosen.odds and view.sweep.epsilons[0] <= e <= view.sweep.epsilons[-1]
    ]
    made = figure.trade_off(
        lines,
        view.theme,
        quantity=chosen.show,
        title=title(chosen.show),
        baselines=baselines,
        odds=odds,
        wanted=target if chosen.show == chosen.metric.column else None,
        span=(view.sweep.epsilons[0], view.sweep.epsilons[-1]),
        here=view.spec.epsilon,
        narrow=charts.narrow(),
        ghost=_ghost(view),
    )
    return made, lines, _summary(view, lines)


def _ghost(view: running.View) -> tuple[float, float] | None:
    """Where run A lies in the picture: its epsilon, and what the picture shows of it; None where that is not known."""
    a, show = view.ghost, view.choices.show
    if a is None:
        return None
    values = {"optimality_gap": a.optimality_gap, "objective": a.objective, "train_accuracy": a.train_accuracy}
    value = a.cost.mean if show == a.cost.metric.column else float(values[show].mean()) if show in values else math.nan
    return (a.spec.epsilon, value) if math.isfinite(value) else None


def beside(view: running.View) -> None:
    """How the best proved method at the sidebar's budget differs from run A, in words."""
    a = view.ghost
    if a is None or a.cost.metric.id != view.choices.metric.id:
        return
    measure, said = a.cost.metric, f"A is {pinned.title(a.spec)}: {words.measured(a.cost.metric, a.cost.mean)}."
    first = best_at(view) if len(view.table()) else None
    if first is not None:
        change = pinned.against(measure, float(first["mean"]), a.cost.mean)
        said += f" The best proved method here has {'the same' if change == 'the same' else f'{change} against A'}."
    pinned.say(said)


def _curves(view: running.View, summary: pd.DataFrame, dim: bool) -> list[figure.Curve]:
    needs = {} if dim else {one.mechanism: one.epsilon for one in view.needed(view.wanted(view.table()))}
    shown = list(dict.fromkeys(summary["mechanism"]))
    banded = view.spec.mechanism if view.spec.mechanism in shown else None
    made = []
    for mechanism, part in summary.groupby("mechanism", sort=False):
        name, status = str(mechanism), str(part["status"].iloc[0])
        unproved = status in (Status.CLAIM.value, Status.NONE.value)
        epsilon = needs.get(name) if view.choices.show == view.choices.metric.column and not dim else None
        look = charts.method_look(name, view.theme)
        made.append(
            figure.Curve(name, look, part, unproved, words.caveat(status).strip(" ()") or status, epsilon, dim, name == banded)
        )
    return made


def _summary(view: running.View, lines: Sequence[figure.Curve]) -> str:
    new = [line.points for line in lines if not line.dim]
    summary = pd.concat(new or [line.points for line in lines], ignore_index=True)
    low, high = view.sweep.epsilons[0], view.sweep.epsilons[-1]
    percent = view.choices.show not in figure.LOSSES

    def said(mechanism: str) -> str:
        ends = [curves.at(summary, mechanism, e) for e in (low, high)]
        values = [words.percent(e["mean"]) if percent else words.three(e["mean"]) for e in ends if e is not None]
        return f"{labels()[mechanism]} from {values[0]} to {values[-1]}"

    shown = list(dict.fromkeys(summary["mechanism"]))
    each = "; ".join(said(m) for m in shown[:6]) + ("; …" if len(shown) > 6 else "")
    exact = bool(summary["exact"].any())
    band = f"Lines are means; the band of the sidebar’s method is {BANDS[view.choices.band]}"
    band += " (bootstrap)" if view.choices.band == "mean" else ""
    if exact:
        band += "; where a method's noise has a closed form the mean is exact over the noise" + (
            " and has no band" if view.choices.band == "mean" else ""
        )
    claims = "; thin lines with open marks are claims that nobody proved" if _unproved(summary) else ""
    text = f"{title(view.choices.show).capitalize()} from ε = {low:g} to {high:g}: {each}. {band}{claims}."
    if view.choices.show == "optimality_gap" and not get_model(view.spec.model).convex:
        text += f" The gap is to {words.minimum(False)}. {words.NO_MINIMUM}"
        if (summary[["mean", "low"]] < 0).any(axis=None):
            text += " What lies below 0 is drawn at the lower edge, for the axis is logarithmic."
    return text


def _unproved(summary: pd.DataFrame) -> bool:
    return bool(summary["status"].isin([Status.CLAIM.value, Status.NONE.value]).any())


def numbers(view: running.View) -> None:
    """One row per method, sorted by guarantee and metric at the chosen budget."""
    table = view.table()
    if not len(table) or no_value(view, table):
        return
    measure = view.choices.metric
    a = view.ghost if view.ghost is not None and view.ghost.cost.metric.id == measure.id else None
    methods = at_budget(view)  # first: what is asked for later may know more methods, and never fewer
    gaps, draws = view.summary("optimality_gap"), view.summary()
    target, (best, floor) = view.wanted(table), view.baselines(table)
    budgets = {one.mechanism: one for one in view.needed(target)}
    st.header(f"{len(methods)} methods at this ε" if len(methods) > 1 else "The method at this ε", anchor=False)
    convex = get_model(view.spec.model).convex
    rows = []
    for here in methods:
        mechanism = str(here["mechanism"])
        gap, some = (curves.at(one, mechanism, view.spec.epsilon) for one in (gaps, draws))
        assert gap is not None
        assert some is not None
        label, sign, _ = words.LABELS[Status(here["status"])]
        below = " ⚠ worse than guessing" if measure.higher_is_better and words.worse(float(here["mean"]), floor) else ""
        rows.append(
            (
                labels()[mechanism],
                f"{sign} {label}",
                words.three(here["epsilon"]),
                f"{words.measured(measure, float(here['mean']))}{below}",
                words.between(measure, float(some["low"]), float(some["high"])),
                words.read_off(budgets[mechanism], view.interval(mechanism, target)) if mechanism in budgets else "no value",
                words.three(max(gap["mean"], 0.0) if convex else gap["mean"]),
                str(here["draws"]),
                *([] if a is None else [pinned.against(measure, float(here["mean"]), a.cost.mean)]),
            )
        )
    wanted = f"ε for {words.measured(measure, target)}"
    columns = ("Method", "Guarantee", "At ε", measure.label, "10–90 % of draws", wanted, "Gap", "Draws")
    tables.table(rows, columns if a is None else (*columns, f"Against A: {words.measured(measure, a.cost.mean)}"))
    delta = words.three(resolve(view.spec).budget.delta)
    st.caption(
        words.markdown(
            f"{sidebar.dataset_label(view.spec.dataset)}, {get_model(view.spec.model).label.lower()}, "
            f"λ = {words.three(view.spec.lam)}, δ = {delta}; non-private "
            f"{words.measured(measure, best)}, majority {words.measured(measure, floor)}. "
            f"{words.needs(view.needed(target), target, labels(), measure=measure)} "
            "Budgets are read off the monotone curve through the means; "
            f"in brackets 95 % bootstrap intervals over the noise draws, none where the mean is exact. {words.OUTSIDE}"
        )
    )
    if not convex:
        st.caption(f"The gap is to {words.minimum(convex)}. {words.NO_MINIMUM}")
    with st.container(key="buttons-all"):
        links.to("Guarantees", "All methods at this ε, in one table")
    with st.expander("What is each ε worth? Attack a method, or see what papers claim about it"):
        for here in methods:
            links.examine(str(here["mechanism"]), labels()[str(here["mechanism"])])


def take_away(view: running.View) -> None:
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


def best(view: running.View) -> None:
    """A button that opens the proved method that needs least for the value wanted."""
    table = view.table()
    if not len(table) or no_value(view, table):
        return
    summary = view.summary()
    proved = summary[summary["status"].isin([Status.PROVED.value, Status.PROVED_IF.value])]
    rising = view.choices.metric.higher_is_better
    budgets = curves.needed(proved, view.wanted(table), rising=rising) if len(proved) else []
    if not budgets or budgets[0].epsilon is None:
        return
    epsilon = float(f"{budgets[0].epsilon * 1.0005:.3g}") if not budgets[0].below else budgets[0].epsilon
    label = labels()[budgets[0].mechanism]
    if st.button(f"Open {label} at ε = {words.three(epsilon)}, the least that is proved", key="open-best"):
        address.go("app.py", view.sweep.run(budgets[0].mechanism, epsilon).to_query())


def how(view: running.View) -> None:
    """Formulas, sources and calls."""
    with st.expander("How is this computed?"):
        st.markdown(
            "Every method trains all its noise draws at all budgets together; draw *s* uses the same standard noise at every "
            "ε. The mean is exact where the distribution of the released parameters is known (mean of Φ(margin / (σ‖x‖)) over "
            "the test rows); where training itself is random it is exact over the noise and averaged over the trainings. "
            "Intervals of the mean are percentile bootstrap intervals (Efron 1979) over the draws. ε for a value is read off the "
            "isotonic regression of the means, linearly in log ε; nothing is extrapolated."
        )
        if view.choices.odds:
            st.latex(
                r"\Pr[\text{right guess}] \le \tfrac12\Bigl(1 + \tfrac{e^{\varepsilon} - 1 + 2\delta}{e^{\varepsilon} + 1}\Bigr)"
            )
            st.markdown("Kairouz, Oh, Viswanath 2015; it holds for methods whose ε is proved, and for no other.")
        st.markdown("The same numbers from a shell; `dpviz sweep dpviz-sweep.toml` takes the settings saved above:")
        repeat.shell(sweep_shell_call(view.sweep))
        st.markdown("and from Python:")
        repeat.python(sweep_call(view.sweep))


def labels() -> dict[str, str]:
    """What mechanisms are called."""
    return {name: cls.label for name, cls in list_mechanisms().items()}


def _data(view: running.View) -> pd.DataFrame:
    table = view.table()
    if not len(table):
        return pd.DataFrame({"mechanism": np.array([], str)})
    made = view.summary(view.choices.show, view.choices.band)
    return made.assign(quantity=view.choices.show, band=BANDS[view.choices.band])
