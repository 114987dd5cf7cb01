"""Influence beside the truth: exact retraining without each row, and the proved error bound."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard import inspected, parts, words
from dpviz.dashboard.choice import Chosen
from dpviz.dashboard.inspected import Inspected
from dpviz.figures.influence import against_truth
from dpviz.figures.style import Theme
from dpviz.influence import Influence, error_bound
from dpviz.leave_one_out import Retrained
from dpviz.mechanisms import mechanisms

KINDS = {"influence": "influence function", "newton": "one Newton step"}


def draw(seen: Inspected, pull: Influence, chosen: Chosen, theme: Theme) -> None:
    """A scatter of approximate against exact changes."""
    st.header("Is the influence right?", anchor=False)
    if not pull.problem.model.convex:
        parts.empty("This model has no unique minimiser, so retraining gives no single truth to compare with.")
        return
    at = inspected.validation_rows(seen.spec)
    n, m = pull.problem.n, pull.problem.m
    if chosen.group.any():
        group = np.flatnonzero(chosen.group)
        order = group[np.argsort(-pull.newton_norm[group], kind="stable")]
        at = np.sort(order) if n * m * len(group) <= inspected.EXACT_WORK else np.sort(order[: inspected.SAMPLE])
    whose = "of the group" if chosen.group.any() else "of the training set"
    if n * m * len(at) > inspected.EXACT_WORK and not inspected.is_retrained(seen.spec, at):
        st.markdown(f"Retraining without a row costs a training run each, so on {n:,} rows it waits to be asked for.")
        if not st.button(f"Retrain without each of {len(at):,} rows {whose}"):
            return
    truth = parts.working(seen.spec, lambda spec, monitor: inspected.retrained(spec, at, monitor), "retrain")
    if truth is not None:
        scatter(seen, pull, truth, whose, theme)


def scatter(seen: Inspected, pull: Influence, truth: Retrained, whose: str, theme: Theme) -> None:
    """The picture for rows that were retrained."""
    kind = (
        st.segmented_control("Approximation", list(KINDS), default="influence", format_func=lambda k: KINDS[k], key="kind")
        or "influence"
    )
    at = truth.index
    guess = pull.parameters(at, kind)
    length, error = np.linalg.norm(guess, axis=1), np.linalg.norm(guess - truth.change, axis=1)
    bound = error_bound(pull.problem.setting) if kind == "influence" else float("inf")
    worst = int(error.argmax())
    both = (length > 0) & (truth.norm > 0)
    off = np.abs(length[both] / truth.norm[both] - 1)
    limit = (
        f"The proved bound on the error is {words.three(bound)} (Kang-PIDP, Theorem 4), "
        f"{words.three(bound / max(float(error.max()), 1e-300))} times the largest error."
        if np.isfinite(bound)
        else "Theorem 4 bounds the influence function of twice smooth losses only; no bound is proved here."
    )
    summary = (
        f"{len(at):,} rows {whose}, retrained exactly. The {KINDS[kind]} is off by {words.percent(float(np.median(off)))} in the "
        f"middle row and {words.percent(float(off.max()))} at worst; the largest error is {words.three(error[worst])}, "
        f"row {seen.row_ids[at[worst]]}. {limit}"
        if len(off)
        else "No row moves the model."
    )
    same = int(at[truth.norm.argmax()]) == int(at[length.argmax()])
    summary += f" Both name {'the same row' if same else 'different rows'} as the one that moves the model most."
    parts.not_private("Every point is a real row.")
    fig = against_truth(
        length, truth.norm, error, seen.row_ids[at], theme, bound=bound, names=(KINDS[kind], "exact leave-one-out")
    )
    data = pd.DataFrame(
        {
            "row id": seen.row_ids[at], KINDS[kind]: length, "exact leave-one-out": truth.norm, "error": error,
            "error bound": bound, "certificate of the exact value": truth.certificate,
        }
    )  # fmt: skip
    parts.chart(fig, "validation", summary, lambda: data)


def how(seen: Inspected) -> None:
    """Formulas, sources and calls."""
    cls = mechanisms()[seen.spec.mechanism]
    formulas = [
        r"\mathrm{IF}_i=\tfrac1n H^{-1}g_i,\qquad H=\tfrac1n\sum_j\varphi''_jx_jx_j^\top+\lambda I"
        r"\quad\text{(Koh, Liang 2017)}",
        r"\theta_{-i}-\theta^*\approx\frac{\mathrm{IF}_i}{1-h_i},\qquad h_i=\tfrac1n\varphi''_i\,x_i^\top H^{-1}x_i"
        r"\quad\text{(Newton step, leverage: Cook, Weisberg 1982)}",
        r"\lVert\theta-\theta_{-i}\rVert\le\lVert\nabla F_{-i}(\theta)\rVert/\lambda\quad\text{(certificate of the exact value)}",
    ]
    formulas += [view.formula for view in seen.views or ()]
    sources = [
        f"{cls.label}: {cls.citation}.",
        "Influence is that on the model without privacy; n stays public when a row leaves.",
    ]
    if seen.individual is not None:
        sources += [seen.individual.method, seen.individual.caveat, *seen.individual.conditions]
    parts.computed(seen.spec, formulas, sources)
    st.markdown("Influence and exact retraining from Python:")
    st.code(
        "from dpviz.engine import bench\nfrom dpviz.influence import influence_of\n\n"
        "pull = influence_of(bench(result.spec).problem)\npull.frame()  # one row per training row\n"
        "pull.leave_one_out([0, 1]).norm",
        language="python", wrap_lines=True,
    )  # fmt: skip
