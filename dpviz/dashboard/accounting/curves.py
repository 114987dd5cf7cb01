"""Curves of one release: Rényi, delta over epsilon, composition, relations, and the attacker's view."""

from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from dpviz.dashboard.components import charts, panels, repeat
from dpviz.dashboard.frame import best_attack, fields
from dpviz.dashboard.jobs import tasks
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures import lines
from dpviz.figures.style import Look, Theme, sibling
from dpviz.mechanisms import Calibration
from dpviz.mechanisms.attack import Attack
from dpviz.privacy.accounting import tables
from dpviz.privacy.accounting.events import Event, single_step
from dpviz.privacy.budget import Neighbouring
from dpviz.reporting import Chart, pictures, words

COMPOSE = fields.choice("relation", "Neighbours", {"replace-one": "replace-one", "add-remove": "add-remove"}, "replace-one")
RATE = fields.number("q", "Sampling rate q", 1e-4, 1.0, 0.1, "Chance of a row to be in a batch; 1 is full batches.")
MULTIPLIER = fields.number("z", "Noise multiplier z", 0.3, 100.0, 1.0, "Noise over what one row contributes.")
CONTROLS = (COMPOSE, RATE, MULTIPLIER)


def renyi(spec: RunSpec, theme: Theme, released: Event, cal: Calibration) -> None:
    """The Rényi curve and what it gives at each order."""
    if cal.noise_scale <= 0:
        return
    curve = tables.renyi_curve(released, cal.budget.delta)
    look, x = pictures.method_look(spec.mechanism, theme), curve.table["alpha"] - 1
    drawn = [lines.Line("R(α), the Rényi divergence itself", x, curve.table["divergence"], Look("", theme.majority, "dash", "x"))]
    sentences = []
    for k, (name, label) in enumerate(tables.CONVERSIONS.items()):
        order, best = curve.best[name]
        one = replace(look, dash=("solid", "dot")[k], colour=sibling(theme, look.colour, k))
        drawn.append(lines.Line(f"ε(α), {label}", x, curve.table[name].where(curve.table[name] > 0), one))
        drawn.append(lines.Line("", [order - 1], [best], replace(one, symbol=("diamond", "square")[k]), points=True))
        sentences.append(f"{label}: ε = {words.three(best)} at α = {words.three(order)}")
    ceiling = 30 * max(curve.epsilon, 1e-3)
    fig = lines.curves(drawn, theme, x="α − 1", y="ε", y_range=(max(1e-3, curve.epsilon / 30), ceiling))
    summary = (
        f"At σ = {words.three(cal.noise_scale)} and δ = {words.three(cal.budget.delta)} (replace-one): "
        f"{'; '.join(sentences)}. Without a detour through Rényi the proved ε is {words.three(curve.epsilon)}."
    )
    charts.chart(fig, "renyi", summary, lambda: curve.table, of=spec)
    with st.expander("How is this computed?"):
        st.latex(
            r"\begin{gathered}\varepsilon(\alpha)=R(\alpha)+\frac{\ln(1/\delta)}{\alpha-1}\ \text{(Mironov 2017)}\\"
            r"\varepsilon(\alpha)=R(\alpha)+\ln\frac{\alpha-1}{\alpha}-\frac{\ln\delta+\ln\alpha}{\alpha-1}"
            r"\ \text{(Canonne, Kamath, Steinke 2020)}\end{gathered}"
        )
        repeat.python_of(
            spec,
            "found = accounted_release(spec)\ntables.renyi_curve(found.released, found.compared.budget.delta).table",
            "from dpviz.experiments.studies.noise_comparison import accounted_release",
            "from dpviz.privacy.accounting import tables",
        )


def delta_curve(spec: RunSpec, theme: Theme, released: Event, cal: Calibration) -> None:
    """delta(eps) at this noise, by every proof."""
    make = partial(_delta_curve, spec=spec, theme=theme, released=released, cal=cal)
    tasks.chart("delta-curve", "Computing the curve", make, tables.delta_curve, released, cal.budget.delta, run=spec, of=spec)


def _delta_curve(table: pd.DataFrame, spec: RunSpec, theme: Theme, released: Event, cal: Calibration) -> Chart:
    drawn = [lines.Line("tightest proof", table["epsilon"], table["delta"], pictures.method_look(spec.mechanism, theme))]
    drawn += [
        lines.Line(f"Rényi, {label}", table["epsilon"], table[name], Look("", theme.majority, dash, "x"))
        for dash, (name, label) in zip(("dot", "dash"), tables.CONVERSIONS.items(), strict=True)
        if table[name].notna().any()
    ]
    drawn.append(
        lines.Line(
            "this run's budget", [cal.budget.epsilon], [cal.budget.delta], Look("", theme.noise, "solid", "diamond"), points=True
        )
    )
    fig = lines.curves(drawn, theme, x="ε", y="δ", y_range=(max(1e-16, cal.budget.delta / 1e6), 1.0))
    here = words.three(tables.delta_at(released, cal.budget.epsilon))
    summary = (
        "At this noise every (ε, δ) on or above the line holds, all at once. "
        f"At ε = {words.three(cal.budget.epsilon)} the proved δ is {here}."
    )
    return Chart(fig, summary, lambda: table.dropna(axis=1, how="all"))


def composition(theme: Theme, released: Event, spec: RunSpec) -> None:
    """epsilon over the number of steps with subsampling."""
    columns, rate = st.columns(3), single_step(released).rate
    relation = Neighbouring(COMPOSE.draw(place=columns[0]))
    q = RATE.change_default(rate if rate < 1 else 0.1).draw(place=columns[1])
    z = MULTIPLIER.draw(place=columns[2])
    given = z, q, resolve(spec).budget.delta, relation
    make = partial(_composed, theme, given)
    composed = tasks.chart("composition", "Composing", make, tables.composition, *given, run=spec, of=None)
    for name, why in ({} if composed is None else composed.refused).items():
        panels.note(f"{name}: {why}.")


def _composed(theme: Theme, given: tuple[float, float, float, Neighbouring], growth: tables.Composition) -> Chart:
    (z, q, delta, relation), table, drawn = given, growth.table, list[lines.Line]()
    for k, name in enumerate(table.columns[1:]):
        look = Look("", sibling(theme, theme.families["gradient"], k), ("solid", "dash", "dot", "dashdot")[k % 4], "circle")
        if name == growth.single:
            look = Look("", theme.majority, "longdash", "x")
        drawn.append(lines.Line(name, table["steps"], table[name], look))
    fig = lines.curves(drawn, theme, x="steps T", y="ε")
    at = table[table["steps"] == 1000].iloc[0]
    summary = (
        f"ε after T steps at δ = {words.three(delta)}, {relation.value}, q = {q:g}, z = {z:g}; at T = 1,000: "
        + "; ".join(f"{name} {words.three(at[name])}" for name in table.columns[1:])
        + "."
    )
    return Chart(fig, summary, lambda: table)


def relations(spec: RunSpec, theme: Theme, released: Event, cal: Calibration) -> None:
    """The same noise under each neighbouring relation."""
    make = partial(_relations, theme=theme, cal=cal)
    tasks.chart("relations", "Comparing relations", make, tables.relations, released, cal.budget.delta, run=spec, of=spec)


def _relations(table: pd.DataFrame, theme: Theme, cal: Calibration) -> Chart:
    items = [
        lines.Bar(row.relation, row.epsilon, f"ε = {words.three(row.epsilon)}", solid=row.proved, strong=row.in_use)
        for row in table.itertuples()
    ]
    summary = (
        "The same noise, σ = " + words.three(cal.noise_scale) + ": " + "; ".join(f"{b.name}: {b.words}" for b in items) + "."
    )
    fig = lines.bars(items, Look("", theme.families["gradient"], "solid", "x"), theme, x="ε at the same δ")
    return Chart(fig, summary, lambda: table)


def attacker(spec: RunSpec, theme: Theme, attack: Attack | None, overlay: Attack | None = None) -> None:
    """The best possible attack at every rate of false alarms, and what (epsilon, delta) alone would allow.

    Args:
        overlay: that of run A.
    """
    st.header("Best possible attack", anchor=False)
    best_attack.draw("test", spec, theme, attack, overlay)
