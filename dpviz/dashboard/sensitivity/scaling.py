"""Sensitivity over the number of rows and over hyperparameters; the papers' tables with the reader's numbers."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.components import charts, panels, tables
from dpviz.dashboard.frame import fields, pinned
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.sensitivity import excess_risk
from dpviz.experiments.run.settings import LEAST_DELTA, LEAST_EPSILON, MOST_EPSILON
from dpviz.experiments.run.setup import calibration_of, setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import observed, scaling
from dpviz.figures import lines
from dpviz.figures.style import Look, Theme, sibling
from dpviz.papers import rates
from dpviz.papers.rate_curves import applies_to, facts_of
from dpviz.papers.rate_tables import NOT_PROVED, ROWS
from dpviz.papers.sources import PAPERS
from dpviz.reporting import pictures, words

SIZES = (1_000, 3_000, 10_000, 30_000)
LARGEST = 100_000
_SYMBOLS = {"adversarial": "diamond", "worst-case data": "x", "random": "circle", "flipped": "square"}
_DASHES = ("solid", "dash", "dot", "dashdot")
_COLUMNS = ("curve", "fitted slope", "at the smallest values", "at the largest values")


def axis_field(spec: RunSpec) -> fields.Field[str]:
    """The axis of the sensitivity picture."""
    return fields.choice("over", "Sensitivity over", scaling.axes(spec), "n", few=0)


def curves(spec: RunSpec, theme: Theme, choice: fields.Field[str]) -> None:
    """Sensitivity over n, lambda, batch size, step size: bounds, slopes, and what retraining shows; nothing without a bound."""
    if not np.isfinite(calibration_of(spec).sensitivity):
        return
    st.header("How the sensitivity changes", anchor=False)
    over = scaling.axis(spec, choice.draw())
    table = _worst_cases(spec, over, "bounds")
    if table is None:
        return
    labels = [str(c) for c in table.columns if c != over.name]
    mechanism = spec.build()
    drawn, slopes = _bounds(spec, theme, over, table, labels)
    drawn += _beside(theme, over)
    above = st.container()
    points = _retrained(spec, over)
    for kind, symbol in _SYMBOLS.items():
        if points is None or not (points[kind].notna().any() and points[kind].max() > 0):
            continue
        look = Look("", theme.ink, "solid", symbol)
        drawn.append(lines.Line(f"largest seen, {kind}", points["x"], points[kind], look, points=True))
        slopes.append((f"largest seen, {kind}", words.two(scaling.slopes(points["x"], points[kind]).fitted), "–", "–"))
    fig = lines.curves(drawn, theme, x=over.title, y="sensitivity (L2)", marks=((over.value, "this run"),), height=290)
    fitted = "; ".join(f"{label} {slope}" for label, slope, _, _ in slopes)
    summary = f"Sensitivity of {mechanism.label} over {over.title}, logarithmic on both axes. Fitted slopes: {fitted}."
    with above:
        charts.chart(fig, "falls", summary, lambda: table, of=spec)
    with st.expander("Slopes"):
        tables.table(slopes, _COLUMNS)
    if over.name == "n":
        st.caption(
            "Batches keep their share of the rows while n changes. A batch of a fixed rule such as √n gives flatter curves."
        )


def _worst_cases(spec: RunSpec, over: scaling.Axis, section: str) -> pd.DataFrame | None:
    """The bounds; None until they are there: a method that searches for its noise takes seconds for them."""
    return tasks.current_result(section, "Computing bounds", partial(scaling.bounds, spec, over), of=spec, given=over.name)


def _beside(theme: Theme, over: scaling.Axis) -> list[lines.Line]:
    """The largest bound of run A over the same axis, dotted; nothing where A has no such axis."""
    kept = pinned.PINNED.value()
    if kept is None or over.name not in scaling.axes(kept):
        return []
    its = scaling.axis(kept, over.name)
    table = _worst_cases(kept, its, "bounds-of-a")
    if table is None:
        return []
    table = table.drop(columns=its.name)
    if table.empty or not np.isfinite(table.to_numpy(float)).any():
        return []
    return [lines.Line(f"A: {words.title(kept)}", its.grid, table.max(axis=1), Look("", theme.majority, "dot", "x"))]


def _bounds(
    spec: RunSpec, theme: Theme, over: scaling.Axis, table: pd.DataFrame, labels: list[str]
) -> tuple[list[lines.Line], list[tuple[str, str, str, str]]]:
    """A line for each bound with its slopes, and the line of the slope that one formula gives."""
    look, drawn, slopes = pictures.method_look(spec.mechanism, theme), [], []
    for k, label in enumerate(labels):
        other = replace(look, colour=sibling(theme, look.colour, k), dash=_DASHES[k % len(_DASHES)])
        drawn.append(lines.Line(f"worst case, proved: {label}", over.grid, table[label], other))
        fit = scaling.slopes(over.grid, table[label])
        fitted, smallest, largest = (words.two(v) for v in (fit.fitted, fit.smallest, fit.largest))
        slopes.append((f"worst case, proved: {label}", fitted, smallest, largest))
    line = scaling.reference(over, table[labels[0]])
    if line is not None and over.reference is not None:
        name = f"slope {words.three(over.reference[0])}: {over.reference[1]}"
        drawn.append(lines.Line(name, over.grid, line, Look("", theme.majority, "dash", "x"), width=2))
    return drawn, slopes


def _retrained(spec: RunSpec, over: scaling.Axis) -> pd.DataFrame | None:
    """Observed sensitivities at a few values, on request."""
    if not observed.protects_a_query(spec.build(), setting_of(spec)):
        st.caption("This mechanism has no query whose change could be observed.")
        return None
    sizes = (*SIZES, LARGEST) if excess_risk.SIZES.value() == "large" else SIZES
    census = over.name == "n"
    changes, _ = tasks.observe(
        f"moves-{over.name}",
        "Retraining on neighbouring censuses" if census else "Retraining on neighbouring datasets",
        lambda monitor: scaling.observe(spec, over, sizes, monitor=monitor),
        of=spec,
        given=(over.name, sizes),
        ask="Retrain on neighbouring datasets and draw what happens",
    )
    if changes is None:
        return None
    panels.privacy_warning("Observed points come from training on the rows without noise, again and again.")
    return scaling.observed_table(changes)


TABLE = fields.choice("table", "Table", {name: title for name, (title, _) in rates.TABLES.items()}, "input")
SORT = fields.choice("sort", "Sorted by", dict(rates.QUANTITIES), "excess")
#: facts of a run -> what sets them; their defaults are the run's
NUMBERS = {
    "n": fields.number("tn", "n", 10, 10**9, 10, "Training rows.", integer=True),
    "d": fields.number("td", "d", 1, 10**7, 1, "Parameters: the tables' m and p.", integer=True),
    "epsilon": fields.number("te", "ε", LEAST_EPSILON, MOST_EPSILON, 1.0),
    "delta": fields.number("tdelta", "δ", LEAST_DELTA, 0.5, 1e-5),
    "steps": fields.number("tt", "T", 1, 10**12, 1, "Steps.", integer=True),
    "influential": fields.number("tk", "k", 1, 10**9, 1, "Rows that affect the model significantly (PIDP only).", integer=True),
}
CONTROLS: tuple[fields.Field[Any], ...] = (TABLE, SORT, *NUMBERS.values())


def table(spec: RunSpec) -> None:
    """A paper's table with the reader's numbers."""
    if not applies_to(spec):
        panels.empty(excess_risk.NO_RATES)
        return
    here = facts_of(spec)
    left, right = st.columns(2)
    chosen, order = TABLE.draw(place=left), SORT.draw(place=right)
    drawn = {}
    for column, (name, number) in zip(st.columns(len(NUMBERS)), NUMBERS.items(), strict=True):
        usual = getattr(here, name)
        drawn[name] = type(usual)(number.change_default(usual).draw(place=column))
    facts = replace(here, **drawn, inner=0, radius=0.0)
    evaluations = rates.evaluate(ROWS[chosen], facts, order)
    # what cannot be read does not count as applying
    holds = sum(not e.broken and not all(np.isnan(getattr(e, q)) for q in rates.QUANTITIES) for e in evaluations)
    title, paper = rates.TABLES[chosen]
    st.markdown(
        f"**The conditions of {holds} of {len(evaluations)} rows hold** at n = {facts.n:,}, d = {facts.d:,}, "
        f"ε = {words.three(facts.epsilon)}, "
        f"δ = {words.three(facts.delta)}, T = {facts.steps:,} (with G = {facts.G:g}, L = {words.three(facts.L)}, "
        f"μ = {words.three(facts.mu)} of this run). Every O(·) is taken as 1: **the numbers are not bounds**, and rows are not "
        "comparable beyond their order of magnitude."
    )
    # wide formulas scroll inside their own frame
    st.html("<style>.st-key-rate-rows {overflow-x: auto} .st-key-rate-rows table {min-width: 46rem}</style>")
    with st.container(key="rate-rows"):
        st.markdown(_markdown(evaluations))
    tables.download(lambda: _rate_table(evaluations), f"table-{chosen}")
    panels.note(f"{title} of {PAPERS[paper].citation}.")
    with st.expander("What O(·) hides, what each row assumes, and remarks"):
        for e in evaluations:
            st.markdown(f"**{words.markdown(e.row.method)}**")
            for name in rates.QUANTITIES:
                formula = getattr(e.row, name)
                if formula is not None:
                    st.markdown(
                        f"- {rates.QUANTITIES[name]} ({words.markdown(formula.unit)}): O(·) hides {words.markdown(formula.hides)}"
                    )
            if e.row.assumes:
                st.markdown("- assumes " + words.markdown("; ".join(e.row.assumes)))
            for c in e.row.conditions:
                st.markdown(f"- needs {words.markdown(c.words)}")
            for remark in e.row.remarks:
                st.markdown(f"- {words.markdown(remark)}")


def _markdown(evaluations: list[rates.Evaluated]) -> str:
    """The table in Markdown; rows that do not apply are grey and say why."""
    names = [name for name in rates.QUANTITIES if any(getattr(e.row, name) is not None for e in evaluations)]
    rows = [
        "| method | " + " | ".join(rates.QUANTITIES[name] for name in names) + " | applies? |",
        "|---" * (len(names) + 2) + "|",
    ]
    for e in evaluations:
        grey = bool(e.broken)
        cells = [_cell(words.markdown(f"{e.row.method} ({e.row.perturbs})"), grey)]
        for name in names:
            formula, number = getattr(e.row, name), getattr(e, name)
            if formula is None:
                cells.append(_cell("not given", grey))
            elif formula.value is None:
                cells.append(_cell("as printed:", grey) + f" ${formula.latex}$")
            else:
                latex = rf"\color{{gray}}{{{formula.latex}}}" if grey else formula.latex
                cells.append(_cell(f"**{words.three(number)}**", grey) + f" ${latex}$")
        unread = any("cannot be read" in remark for remark in e.row.remarks)
        fits = "⚠ conditions hold, its privacy proof does not" if NOT_PROVED in e.row.remarks else "✓"
        why = "✗ " + words.markdown("; ".join(e.broken))
        cells.append(_cell(why, True) if grey else "not plotted: unreadable" if unread else fits)
        rows.append("| " + " | ".join(c.replace("|", r"\|") for c in cells) + " |")
    return "\n".join(rows)


def _cell(text: str, grey: bool) -> str:
    return f":gray[{text}]" if grey else text


def _rate_table(evaluations: list[rates.Evaluated]) -> pd.DataFrame:
    columns = ["method", "mechanism", "noise", "excess", "population", "applies", "why_not"]
    rows = [
        (e.row.method, e.row.mechanism, e.noise, e.excess, e.population, not e.broken, "; ".join(e.broken)) for e in evaluations
    ]
    return pd.DataFrame(rows, columns=columns)
