"""The picture of the trade-off page: curves over ε."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.components import charts
from dpviz.dashboard.frame import address
from dpviz.dashboard.jobs.job import State
from dpviz.dashboard.trade_off import method_comparison, running
from dpviz.dashboard.trade_off.method_comparison import labels
from dpviz.dashboard.trade_off.settings import BANDS, title
from dpviz.experiments.studies.odds import odds_over
from dpviz.experiments.sweeps import curves
from dpviz.figures import curves as figure
from dpviz.models import get_model
from dpviz.privacy.budget import Status
from dpviz.reporting import pictures, words

_OLD = "dpviz.picture"


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
    key = ("picture", charts.is_narrow(), _beside(view), *(kept["mechanism"].unique() if len(kept) else ()))
    made, lines, caption = view.compute_once(key, lambda: _drawn(view, kept))
    clicked = charts.chart(made, "trade-off", caption, lambda: _data(view), clicks=True)
    if view.spec.prepared:
        st.caption("Rows are prepared anew at each ε; the non-private model has those of the sidebar’s ε.")
    for where in clicked[:1]:
        index, _, epsilon = where.partition("|")
        name = lines[int(index)].mechanism if index.isdigit() and int(index) < len(lines) else ""
        if name in view.sweep.named:
            address.open_page("pages/1_One_model.py", view.sweep.run(name, float(epsilon)).to_query())


def _drawn(view: running.View, kept: pd.DataFrame) -> tuple[Any, list[figure.Curve], str]:
    """The picture, its lines, and its content in words."""
    table, chosen = view.table(), view.choices
    lines = _curves(view, view.summary(chosen.show, chosen.band), False) if len(table) else []
    lines += _curves(view, curves.summarise(kept, chosen.show, chosen.band), True) if len(kept) else []
    base = table if len(table) else kept
    first, target = base.iloc[0], chosen.want
    baselines: dict[str, float] = {}
    if f"non_private_{chosen.show}" in base:
        levels = {
            kind: float(first[f"{model}_{chosen.show}"]) for kind, model in (("none", "non_private"), ("majority", "majority"))
        }
        baselines = {kind: level for kind, level in levels.items() if np.isfinite(level)}
    elif chosen.show == "objective":
        baselines = {"none": float((base["objective"] - base["optimality_gap"]).median())}
    low, high = view.sweep.epsilons[0], view.sweep.epsilons[-1]
    ticks = [e for e in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0) if chosen.odds and low <= e <= high]
    made = figure.trade_off(
        lines,
        view.theme,
        quantity=chosen.show,
        title=title(chosen.show),
        baselines=baselines,
        odds=odds_over(view.spec, ticks),
        attacked=labels()[view.spec.mechanism],
        wanted=target if chosen.show == chosen.metric.column else None,
        span=(low, high),
        here=view.spec.epsilon,
        narrow=charts.is_narrow(),
        overlay=_overlay(view),
        tall=_beside(view),
    )
    return made, lines, _summary(view, lines)


def _beside(view: running.View) -> int:
    """Pixels of the ranked methods beside the picture; 0 before they are there."""
    drawn = None if not view.ranked.results else method_comparison.ranked_picture(view, view.ranked.results[-1])[0]
    return 0 if drawn is None else drawn.layout.height


def _overlay(view: running.View) -> tuple[float, float] | None:
    """The point of run A in the picture: its epsilon and value; None where that is not known."""
    a, show = view.overlay, view.choices.show
    if a is None:
        return None
    values = {"optimality_gap": a.optimality_gap, "objective": a.objective, "train_accuracy": a.train_accuracy}
    value = a.cost.mean if show == a.cost.metric.column else float(values[show].mean()) if show in values else math.nan
    return (a.spec.epsilon, value) if math.isfinite(value) else None


def _curves(view: running.View, summary: pd.DataFrame, dim: bool) -> list[figure.Curve]:
    want = None if dim else view.choices.want
    needs = {} if want is None else {one.mechanism: one.epsilon for one in view.needed_budgets(want)}
    shown = list(dict.fromkeys(summary["mechanism"]))
    banded = view.spec.mechanism if view.spec.mechanism in shown else None
    made = []
    for mechanism, part in summary.groupby("mechanism", sort=False):
        name, status = str(mechanism), str(part["status"].iloc[0])
        unproved = status in (Status.CLAIM.value, Status.NONE.value)
        epsilon = needs.get(name) if view.choices.show == view.choices.metric.column and not dim else None
        look = pictures.method_look(name, view.theme)
        made.append(
            figure.Curve(name, look, part, unproved, words.caveat(status).strip(" ()") or status, epsilon, dim, name == banded)
        )
    return made


def _summary(view: running.View, lines: Sequence[figure.Curve]) -> str:
    new = [line.points for line in lines if not line.dim]
    summary = pd.concat(new or [line.points for line in lines], ignore_index=True)
    low, high = view.sweep.epsilons[0], view.sweep.epsilons[-1]
    percent = view.choices.show not in figure.LOSSES

    def sentence(mechanism: str) -> str:
        ends = [curves.row_at(summary, mechanism, e) for e in (low, high)]
        values = [words.percent(e["mean"]) if percent else words.three(e["mean"]) for e in ends if e is not None]
        return f"{labels()[mechanism]} from {values[0]} to {values[-1]}"

    shown = list(dict.fromkeys(summary["mechanism"]))
    each = "; ".join(sentence(m) for m in shown[:6]) + ("; …" if len(shown) > 6 else "")
    exact = bool(summary["exact"].any())
    band = f"Lines are means; the band of the sidebar’s method is {BANDS[view.choices.band]}"
    band += " (bootstrap)" if view.choices.band == "mean" else ""
    if exact:
        band += "; where a method's noise has a closed form the mean is exact over the noise" + (
            " and has no band" if view.choices.band == "mean" else ""
        )
    claims = (
        "; thin lines with open marks are claims without a proof"
        if {*summary["status"]} & {Status.CLAIM.value, Status.NONE.value}
        else ""
    )
    band += ". A click on a point opens that run"
    text = f"{title(view.choices.show).capitalize()} from ε = {low:g} to {high:g}: {each}. {band}{claims}."
    if view.choices.show == "optimality_gap" and not get_model(view.spec.model).convex:
        text += f" The gap is to {words.minimum(False)}. {words.NO_MINIMUM}"
        if (summary[["mean", "low"]] < 0).any(axis=None):
            text += " What lies below 0 is drawn at the lower edge, for the axis is logarithmic."
    return text


def _data(view: running.View) -> pd.DataFrame:
    table = view.table()
    if not len(table):
        return pd.DataFrame({"mechanism": np.array([], str)})
    made = view.summary(view.choices.show, view.choices.band)
    return made.assign(quantity=view.choices.show, band=BANDS[view.choices.band])
