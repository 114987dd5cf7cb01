"""The papers' tables with the reader's numbers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.components import panels, tables
from dpviz.dashboard.frame import fields
from dpviz.dashboard.frame.fields import Field
from dpviz.experiments.run.settings import LEAST_DELTA, LEAST_EPSILON, MOST_EPSILON
from dpviz.experiments.run.spec import RunSpec
from dpviz.papers import rates
from dpviz.papers.rate_curves import applies_to, facts_of
from dpviz.papers.rate_tables import NOT_PROVED, ROWS
from dpviz.papers.sources import PAPERS
from dpviz.reporting import words

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
CONTROLS: tuple[Field[Any], ...] = (TABLE, SORT, *NUMBERS.values())


NO_RATES = (
    "The published rates are functions of G, L and μ: bounds on a row's gradient and curvature, and strong convexity. A network "
    "has none of them, so no rate speaks of it. Choose a linear model to see the tables."
)


def table(spec: RunSpec) -> None:
    """A paper's table with the reader's numbers."""
    if not applies_to(spec):
        panels.empty(NO_RATES)
        return
    here = facts_of(spec)
    left, right = st.columns(2)
    with left:
        chosen = TABLE.draw()
    with right:
        order = SORT.draw()
    drawn = {}
    for column, (name, number) in zip(st.columns(len(NUMBERS)), NUMBERS.items(), strict=True):
        with column:
            drawn[name] = type(getattr(here, name))(number.at(getattr(here, name)).draw())
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
