"""Who pays, and why: loss, changed predictions, influence, noise and individual epsilon of each group of training rows."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.dashboard.kit import charts, panels, progress, tables, words
from dpviz.dashboard.shell.fields import Field
from dpviz.experiments.groups import Grouping
from dpviz.experiments.payers import who_pays
from dpviz.experiments.spec import RunSpec
from dpviz.figures.lines import Bar, bars
from dpviz.figures.style import Theme

_HEADS = ("Group", "Training rows", "Non-private right", "Private right", "Predictions changed", "Mean influence", "Noised")


def draw(spec: RunSpec, grouping: Grouping, wanted: Field[bool], theme: Theme) -> None:
    """The table and its picture, where they are asked for: influence of all rows may take a while."""
    if not wanted.draw():
        return

    def work(run: RunSpec, monitor: Monitor) -> pd.DataFrame:
        return who_pays(run, grouping, monitor)

    table = progress.working(spec, work, "payers")
    if table is None:
        return
    st.markdown(words.markdown(sentence(table)))
    items = [Bar(row.group, row.changed, words.percent(row.changed)) for row in table.itertuples()]
    fig = bars(items, charts.method_look(spec.mechanism, theme), theme, x="share of predictions that privacy changes")
    text = "Share of predictions on training rows, over all noise draws, that differ from the non-private model’s."
    charts.chart(fig, "changed", text, lambda: table)
    rows = [
        (
            row.group,
            f"{row.rows:,} ({words.percent(row.share)})",
            words.percent(row.non_private_right),
            words.percent(row.private_right),
            words.percent(row.changed),
            words.three(row.influence),
            "not on rows" if math.isnan(row.times_noised) else words.times(row.times_noised),
            words.three(row.individual_epsilon),
        )
        for row in table.itertuples()
    ]
    tables.table(rows, (*_HEADS, "Mean individual ε"))
    panels.not_private(
        "A small group has little weight in the fit, a hard one is often wrong without privacy too, and rows of large influence "
        "are the ones that noise hides. All of this is read from private rows."
    )


def sentence(table: pd.DataFrame) -> str:
    """Whether the smallest group loses more than the largest one here, with what may explain it."""
    small, large = table.loc[table["rows"].idxmin()], table.loc[table["rows"].idxmax()]
    lost = [words.part(float(one["lost"])) for one in (small, large)]
    more = "more" if small["lost"] > large["lost"] else "no more"
    factor = float(small["influence"] / large["influence"])
    return (
        f"The smallest group, “{small['group']}”, loses {lost[0]} points of training accuracy to privacy, {more} than the "
        f"largest, “{large['group']}” ({lost[1]}). Without privacy {words.percent(small['non_private_right'])} and "
        f"{words.percent(large['non_private_right'])} of them are right; a row of the smaller one has "
        f"{words.three(factor)} times the influence."
    )
