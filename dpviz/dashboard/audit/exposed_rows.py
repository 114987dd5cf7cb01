"""Rows that membership attacks find: the job, the most exposed rows, and what predicts them; on two pages."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import streamlit as st

from dpviz.auditing.attacks.attacked import AttackedRun
from dpviz.auditing.attacks.exposure import FACTS, associations, describe_row, exposure
from dpviz.auditing.attacks.halves import KeptModels
from dpviz.auditing.attacks.study import watch_attacks
from dpviz.common.progress import Monitor
from dpviz.dashboard.components import charts, panels, tables
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.job import Job
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures import membership as pictures
from dpviz.figures.style import Theme
from dpviz.reporting import words

SHADOWS = 256
_MOST = 12  # exposed rows in the table


def _key(spec: RunSpec, shadows: int) -> str:
    return f"ordinary rows {resolve(replace(spec, seeds=1)).key()} {shadows}"


def attack(spec: RunSpec, shadows: int) -> Job[Any]:
    """The attacks on a run's rows, as a job that this session watches."""
    fixed = replace(spec, seeds=1)

    def work(monitor: Monitor) -> Iterator[AttackedRun]:
        return watch_attacks(fixed, shadows, store=KeptModels.personal(), monitor=monitor)

    return tasks.attack_job(_key(spec, shadows), work, "ordinary", fixed.dataset)


def table(found: AttackedRun) -> None:
    """The most exposed rows with who they are, and all of them as a download."""
    rows = found.rows.head(_MOST)
    lines = [
        (
            str(row_id),
            words.two(row["separation"]),
            f"{int(row['attacks_that_find'])} of {len(found.judged)}",
            describe_row(found, int(row_id)),
        )
        for row_id, row in rows.iterrows()
    ]
    tables.table(lines, ("Row", "Apart", "Attacks that find it", "Who"), real=True)
    panels.note(
        "Apart: how many standard deviations a row's signal is larger under shadow models that were trained on it. An attack "
        "finds a row where it calls it a member more often in models trained on it than chance explains."
    )
    tables.download(lambda: found.rows.reset_index(), "exposed")


def predicts(found: AttackedRun, spec: RunSpec, theme: Theme) -> None:
    """The distance of the rows' signals against influence, leverage, individual epsilon or margin, on request."""
    answer, current = tasks.observe(
        "exposure", "Influence", lambda monitor: exposure(found), of=found.spec, given=found.shadows, ask="Compare the rows"
    )
    if answer is None or not current:
        return
    known = associations(answer)
    fact = st.selectbox("Compare with", list(known["fact"]), format_func=FACTS.__getitem__, key="own.exposure-fact")
    row = known[known["fact"] == fact].iloc[0]
    fig = pictures.risk(
        answer[fact].to_numpy(float),
        answer["separation"].to_numpy(float),
        theme,
        fact=FACTS[fact],
        found=(answer["attacks_that_find"] > 0).to_numpy(),
        names=[f"row {i}" for i in answer.index],
    )
    summary = (
        f"Rank correlation of {FACTS[fact]} with how far a row's signals lie apart: {words.two(row['correlation'])} (95 % limits "
        f"{words.two(row['low'])} to {words.two(row['high'])}, {int(row['rows']):,} rows)."
    )
    charts.chart(fig, "exposure", summary, lambda: answer.reset_index(), rows=True, of=spec)
