"""Cost by group, and its causes: loss, changed predictions, influence, clipping, noise and individual epsilon of each group."""

import math
from functools import partial

import pandas as pd
import streamlit as st

from dpviz.dashboard.components import charts, panels, tables
from dpviz.dashboard.frame.fields import Field
from dpviz.dashboard.jobs import tasks
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.cost_by_group import CLIPPED, HARD, SMALL, GroupCosts, cost_by_group
from dpviz.experiments.studies.groups import Grouping
from dpviz.figures import groups as pictures
from dpviz.figures.style import Theme
from dpviz.reporting import words
from dpviz.reporting.pictures import method_look

_HEADS = ("Group", "Training rows", "Non-private right", "Private right", "Predictions changed", "Mean influence")


def draw(spec: RunSpec, grouping: Grouping, wanted: Field[bool], theme: Theme) -> None:
    """The sentence, the picture and the table, where they are asked for: influence of all rows may take a while."""
    if not wanted.draw():
        return
    work = partial(cost_by_group, spec, grouping)
    costs = tasks.current_result("group-costs", "Cost by group", work, of=spec, given=grouping, kept=False)
    if costs is None:
        return
    table = costs.table
    with st.container(key="who-pays"):
        panels.text(sentence(costs))
    fig = pictures.reasons(list(table["group"]), _panels(table), method_look(spec.mechanism, theme), theme)
    text = (
        f"Points of training accuracy that each group loses to privacy, mean over {spec.seeds} noise draws, and what may explain "
        "it: its share of the rows, the share that is wrong without privacy"
        + (", and the share of its gradients that are clipped." if table["clipped"].notna().any() else ".")
    )
    charts.chart(fig, "cost-by-group", text, lambda: table)
    rows = [
        (
            row.group,
            f"{row.rows:,} ({words.percent(row.share)})",
            words.percent(row.non_private_right),
            words.percent(row.private_right),
            words.percent(row.changed),
            words.three(row.influence),
            "not counted" if math.isnan(row.clipped) else words.percent(row.clipped),
            "not on rows" if math.isnan(row.times_noised) else words.times(row.times_noised),
            words.three(row.individual_epsilon),
        )
        for row in table.itertuples()
    ]
    tables.table(rows, (*_HEADS, "Gradients clipped", "Noise received", "Mean individual ε"))
    panels.privacy_warning(
        "All of this is read from private rows, and ε does not cover it. A small group has little weight in the fit, a hard one "
        "is often wrong without privacy too, clipping bounds what a row adds, and noise hides rows of large influence best."
    )


def _panels(table: pd.DataFrame) -> list[pictures.Panel]:
    """The panels of the picture; clipping only where gradients are clipped and counted."""
    wrong = 1 - table["non_private_right"]
    made = [
        pictures.Panel("loses,<br>points", list(table["lost"]), [words.part(v) for v in table["lost"]]),
        pictures.Panel("share of<br>rows, %", list(table["share"]), [f"{100 * v:.1f}" for v in table["share"]]),
        pictures.Panel("wrong<br>anyway, %", list(wrong), [f"{100 * v:.1f}" for v in wrong]),
    ]
    if table["clipped"].notna().any():
        shares = list(table["clipped"])
        made.append(
            pictures.Panel("gradients<br>clipped, %", shares, ["–" if math.isnan(v) else f"{100 * v:.1f}" for v in shares])
        )
    return made


def _loses(points: float) -> str:
    """ "loses 0.3 points of training accuracy", "gains 0.2 points …", "loses nothing"."""
    size = words.part(abs(points))
    if size == "nothing":
        return "loses nothing"
    return f"{'loses' if points > 0 else 'gains'} {size} points of training accuracy"


def sentence(costs: GroupCosts) -> str:
    """A sentence that compares the cost of privacy for the smallest and the largest group, with its cause."""
    table = costs.table
    small, large = table.iloc[costs.smallest], table.iloc[costs.largest]
    if costs.smallest == costs.largest:
        return f"All training rows are in one group, “{small['group']}”: choose another column."
    compared = "; ".join(f"“{one['group']}” {_loses(float(one['lost']))}" for one in (small, large))
    question = "Does privacy cost the smallest group more here?"
    draws = len(costs.lost)
    if math.isnan(costs.error):
        return f"{question} One noise draw cannot tell: {compared}."
    if not costs.certain:
        return f"{question} {draws} noise draws cannot tell: {compared}, with a standard error of {words.part(costs.error)}."
    if costs.more < 0:
        return f"{question} No: {compared}."
    reasons = {
        SMALL: f"small ({words.percent(small['share'])} of the rows)",
        HARD: f"hard ({words.percent(1 - small['non_private_right'])} wrong without privacy, against "
        f"{words.percent(1 - large['non_private_right'])})",
        CLIPPED: f"clipped more ({words.percent(small['clipped'])} of its gradients, against {words.percent(large['clipped'])})",
    }
    why = " and ".join(reasons[reason] for reason in costs.reasons)
    return f"{question} Yes: {compared}. " + (f"It is {why}." if why else "It is neither small nor hard nor clipped more.")
