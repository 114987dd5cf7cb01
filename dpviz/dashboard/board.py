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
from dpviz.dashboard import parts, tasks, words
from dpviz.figures import audits as pictures
from dpviz.figures.style import Theme
from dpviz.mechanisms import Monitor, mechanisms
from dpviz.models import get_model
from dpviz.privacy.budget import Budget
from dpviz.spec import RunSpec
from dpviz.validate import InvalidInput

BOARD_RUNS, BOARD_CONFIDENCE = 400, 0.99


def board(spec: RunSpec, theme: Theme) -> None:
    """All mechanisms on their worst pairs, on request."""
    st.header("All mechanisms", anchor=False)
    key = f"board {replace(spec, mechanism='majority', params={}, seeds=1, dataset='teaching', delta=1e-5).key()}"
    st.markdown(
        words.markdown(
            f"Attacks every mechanism with its default knobs on its worst pair (n = 60 made-up rows) at ε = "
            f"{words.three(spec.epsilon)}, "
            f"δ = 1e-5, {BOARD_RUNS} trainings on each side, {BOARD_CONFIDENCE:.0%} confidence each. It takes a minute or two."
        )
    )
    task = tasks.worker("long").find(key)
    if task is None or task.state in ("cancelled", "failed"):
        st.button("Audit them all", on_click=tasks.start, args=(key, partial(_attacks, spec), "long", True))
    if task is None:
        return

    @st.fragment(run_every=None if task.over else 1.0)
    def live() -> None:
        tasks.controls(task, "Board")
        rows = [r for r in task.results if r is not None]
        if rows:
            table = pd.DataFrame(rows, columns=["mechanism", "claimed", "proved", "audited", "verdict", "by"])
            shown = [(r[0], r[1] if np.isfinite(r[1]) else np.nan, r[3], r[4] == EXCEEDED) for r in rows]
            bad = [r[0] for r in rows if r[4] == EXCEEDED]
            summary = f"{len(rows)} mechanisms attacked; claim exceeded: {', '.join(bad) or 'none'}. For the others: "
            "no violation found."
            parts.chart(pictures.board(shown, theme), "board", summary, lambda: table)
            with st.expander("As a table"):
                parts.table(
                    [(r[0], *(words.three(v) for v in r[1:4]), f"{r[4]}: {r[5]}" if r[5] else r[4]) for r in rows],
                    ("", "Claimed ε", "Proved ε", "Audited ε, at least", "Verdict"),
                )
        if task.over and not was_over:
            st.rerun()

    was_over = task.over
    live()


def _attacks(spec: RunSpec, monitor: Monitor) -> Iterator[tuple[str, float, float, float, str, str] | None]:
    found, budget = mechanisms(), Budget(spec.epsilon, 1e-5)
    for k, cls in enumerate(found.values()):

        def part(done: float, k: int = k) -> None:
            monitor((k + done) / len(found))

        try:
            mechanism = cls()
            pair = worst_case(mechanism, get_model(spec.model), budget, n=60, d=2, lam=max(spec.lam, 0.01))
            result = audit(
                mechanism, pair.first, pair.second, budget, BOARD_RUNS, spec.seed, confidence=BOARD_CONFIDENCE, monitor=part
            )  # fmt: skip
        except (InvalidInput, FloatingPointError) as error:
            yield cls.label, np.nan, np.nan, np.nan, str(error).split("\n")[0], ""
            continue
        cal = result.calibration
        claimed, proved = (b.epsilon if b else np.nan for b in (cal.claimed, cal.proved))
        by = result.against(cal.claimed) or result.against(cal.proved)
        yield cls.label, claimed, proved, result.epsilon_lower, result.verdict, by
