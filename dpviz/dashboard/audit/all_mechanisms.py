"""Attacks on all mechanisms, on request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.auditing import audit, worst_case
from dpviz.auditing.result import EXCEEDED
from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.kit import charts, tables, words
from dpviz.dashboard.work import tasks
from dpviz.dashboard.work.job import State
from dpviz.experiments.spec import RunSpec
from dpviz.figures import audits as pictures
from dpviz.figures.style import Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model
from dpviz.privacy.audit_bounds import epsilon_ceiling
from dpviz.privacy.budget import Budget

BOARD_RUNS, BOARD_CONFIDENCE = 400, 0.99
ROWS, UNPROVED_ROWS = 60, 1000  # noise that is too small by an order in n shows where n is large

_CEILING = epsilon_ceiling(BOARD_RUNS, 1e-5, BOARD_CONFIDENCE)


def board(spec: RunSpec, theme: Theme) -> None:
    """All mechanisms on their worst pairs, on request."""
    st.header("All mechanisms", anchor=False)
    key = f"board {replace(spec, mechanism='majority', params={}, seeds=1, dataset='teaching', delta=1e-5).key()}"
    st.markdown(
        words.markdown(
            f"Attacks every mechanism with its default knobs on its worst pair at ε = {words.three(spec.epsilon)}, δ = 1e-5, "
            f"{BOARD_RUNS} trainings on each side, {BOARD_CONFIDENCE:.0%} confidence each: {ROWS} made-up rows, and "
            f"{UNPROVED_ROWS:,} where nothing is proved. {BOARD_RUNS} trainings can show ε = {words.three(_CEILING)} at most. "
            "It takes a minute or two."
        )
    )
    task = tasks.find(key)
    if task is None or task.state in (State.CANCELLED, State.FAILED):
        st.button("Audit them all", on_click=_start, args=(key, spec))
    if task is None:
        return

    @st.fragment(run_every=None if task.over else 1.0)
    def live() -> None:
        tasks.controls(task, "Board")
        rows = [r for r in task.results if r is not None]
        if rows:
            table = pd.DataFrame(rows, columns=["mechanism", "claimed", "proved", "audited", "gaussian", "verdict", "by"])
            shown = [(r[0], r[1] if np.isfinite(r[1]) else np.nan, r[3], r[5] == EXCEEDED) for r in rows]
            bad = [r[0] for r in rows if r[5] == EXCEEDED]
            summary = (
                f"{len(rows)} mechanisms attacked; claim exceeded: {', '.join(bad) or 'none'}. For the others that claim "
                "anything: no violation found."
            )
            charts.chart(pictures.board(shown, theme), "board", summary, lambda: table)
            with st.expander("As a table"):
                tables.table(
                    [(r[0], *(words.three(v) for v in r[1:5]), f"{r[5]}: {r[6]}" if r[6] else r[5]) for r in rows],
                    ("", "Claimed ε", "Proved ε", "Audited ε, at least", "If Gaussian, at least", "Verdict"),
                )
        if task.over and not was_over:
            st.rerun()

    was_over = task.over
    live()


def _start(key: str, spec: RunSpec) -> None:
    tasks.start(tasks.Task(key, partial(_attacks, spec), keep_all=True))


def _attacks(spec: RunSpec, monitor: Monitor) -> Iterator[tuple[str, float, float, float, float, str, str] | None]:
    found, budget = list_mechanisms(), Budget(spec.epsilon, 1e-5)
    for k, cls in enumerate(found.values()):

        def part(done: float, k: int = k) -> None:
            monitor((k + done) / len(found))

        try:
            mechanism = cls()
            model, lam = get_model(spec.model), max(spec.lam, 0.01)
            pair = worst_case(mechanism, model, budget, n=ROWS, d=2, lam=lam)  # refuses what the mechanism does
            public = mechanism.calibrate(pair.first.setting, budget)
            if public.claimed is not None and public.proved is None:
                pair = worst_case(mechanism, model, budget, n=UNPROVED_ROWS, d=2, lam=lam)
            result = audit(
                mechanism, pair.first, pair.second, budget, BOARD_RUNS, spec.seed, confidence=BOARD_CONFIDENCE, monitor=part
            )
        except (InvalidInput, FloatingPointError) as error:
            yield cls.label, np.nan, np.nan, np.nan, np.nan, str(error).split("\n")[0], ""
            continue
        cal = result.calibration
        claimed, certified = (b.epsilon if b else np.nan for b in (cal.claimed, cal.proved))
        gaussian = result.gaussian_epsilon_lower if result.noise is None else result.measured_epsilon_lower
        by = result.against(cal.claimed) or result.against(cal.proved)
        assumed = np.nan if gaussian is None else gaussian
        yield cls.label, claimed, certified, result.epsilon_lower, assumed, result.verdict, by
