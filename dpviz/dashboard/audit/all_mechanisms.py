"""Audits of all mechanisms, on request."""

import math
from collections.abc import Iterator
from itertools import accumulate

import streamlit as st

from dpviz.auditing import survey
from dpviz.common.progress import Monitor
from dpviz.dashboard.components import charts, panels, tables
from dpviz.dashboard.jobs import tasks, watching
from dpviz.dashboard.jobs.job import Job
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures import membership as pictures
from dpviz.figures.style import Theme
from dpviz.models import get_model
from dpviz.privacy.audit_bounds import epsilon_ceiling
from dpviz.privacy.budget import Budget
from dpviz.reporting import words

DELTA = 1e-5
_CEILING = epsilon_ceiling(survey.RUNS, DELTA, survey.CONFIDENCE)
_COLUMNS = ("", "Claimed ε", "Proved ε", "Audited ε, at least", "If Gaussian, at least", "Verdict")


def board(spec: RunSpec, theme: Theme) -> None:
    """All mechanisms on their worst pairs, on request."""
    st.header("All mechanisms", anchor=False)
    panels.text(
        f"Attacks every mechanism with its default hyperparameters on its worst pair at ε = {words.three(spec.epsilon)}, "
        f"δ = {words.three(DELTA)}, {survey.RUNS} models trained on each dataset, {100 * survey.CONFIDENCE:g} % confidence each: "
        f"{survey.ROWS} synthetic rows, and {survey.UNPROVED_ROWS:,} for methods without a proof. {survey.RUNS} models can show "
        f"ε = {words.three(_CEILING)} at most. It takes a minute or two."
    )

    key = f"board {(spec.model, spec.epsilon, spec.seed, spec.lam)}"

    def stream(monitor: Monitor) -> Iterator[list[survey.Surveyed]]:
        model, budget = get_model(spec.model), Budget(spec.epsilon, DELTA)
        return accumulate([row] for row in survey.survey(model, budget, seed=spec.seed, lam=spec.lam, monitor=monitor))

    if tasks.find(key) is None:
        st.button("Audit them all", type="primary", on_click=watching.start, args=(Job(key, stream),))
    else:
        tasks.follow(tasks.attack_job(key, stream, "board", ""), lambda rows: _show(rows, theme), "Auditing all mechanisms")


def _show(rows: list[survey.Surveyed], theme: Theme) -> None:
    """The audits so far, as a picture and as a table."""
    bad = [row.label for row in rows if row.exceeded]
    count = f"{len(rows)} mechanism{'s' if len(rows) > 1 else ''}"
    summary = (
        f"{count} attacked; claim exceeded: {', '.join(bad) or 'none'}. For the others that claim anything: no violation found."
    )
    shown = [
        (r.label, r.claimed if math.isfinite(r.claimed) else r.proved, r.audited, r.exceeded, math.isfinite(r.proved))
        for r in rows
    ]
    charts.chart(pictures.board(shown, theme), "board", summary, lambda: survey.table(rows))
    with st.expander("As a table"):
        tables.table([_line(row) for row in rows], _COLUMNS)


def _line(row: survey.Surveyed) -> tuple[str, ...]:
    numbers = (words.three(v) for v in (row.claimed, row.proved, row.audited, row.gaussian))
    label = row.label if math.isfinite(row.proved) or math.isnan(row.claimed) else f"{row.label} (claim only)"
    return label, *numbers, f"{row.verdict}: {row.by}" if row.by else row.verdict
