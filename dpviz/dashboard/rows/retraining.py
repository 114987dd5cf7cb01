"""Influence beside the truth: exact retraining without each row, and the proved error bound."""

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.components import charts, repeat
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.rows.selection import Chosen
from dpviz.experiments.studies import inspected
from dpviz.figures.influence import against_truth
from dpviz.figures.style import Theme
from dpviz.influence import DENSE_APPROXIMATION, Influence, Retrained, error_bound
from dpviz.mechanisms import list_mechanisms
from dpviz.models import derivatives_of, get_model
from dpviz.reporting import shell_call, words

KINDS = {"influence": "influence function", "newton": "one Newton step"}


def draw(run: inspected.Inspected, influence: Influence, chosen: Chosen, theme: Theme) -> None:
    """A scatter of approximate against exact changes."""
    at = inspected.validation_rows(run.spec)
    n = influence.problem.n
    if chosen.group.any():
        order = influence.order[chosen.group[influence.order]]
        at = np.sort(order) if inspected.is_cheap(influence, len(order)) else np.sort(order[: inspected.sample(influence)])
    whose = "of the group" if chosen.group.any() else "of the training set"
    ask = ""
    if not inspected.is_cheap(influence, len(at)) and not inspected.is_retrained(run.spec, at):
        st.markdown(f"Retraining without a row costs a training run each, so on {n:,} rows it waits to be asked for.")
        ask = f"Retrain without each of {len(at):,} rows {whose}"

    work, given = partial(inspected.retrain_without, run.spec, at), at.tobytes()
    truth = tasks.current_result("retrain", "Retraining without each row", work, of=run.spec, given=given, ask=ask, kept=False)
    if truth is not None:
        scatter(run, influence, truth, whose, theme)


def scatter(run: inspected.Inspected, influence: Influence, truth: Retrained, whose: str, theme: Theme) -> None:
    """The picture for rows that were retrained."""
    kind = (
        st.segmented_control("Approximation", list(KINDS), default="influence", format_func=lambda k: KINDS[k], key="kind")
        or "influence"
    )
    at = truth.index
    guess = influence.parameters(at, kind)
    norm, error = np.linalg.norm(guess, axis=1), np.linalg.norm(guess - truth.change, axis=1)
    convex = influence.problem.model.convex
    bound = error_bound(influence.problem.setting) if kind == "influence" and convex else float("inf")
    worst = int(error.argmax())
    both = (norm > 0) & (truth.norm > 0)
    off = np.abs(norm[both] / truth.norm[both] - 1)
    limit = (
        f"The proved bound on the error is {words.three(bound)} (Kang-PIDP, Theorem 4), "
        f"{words.three(bound / max(float(error.max()), 1e-300))} times the largest error."
        if np.isfinite(bound)
        else "Theorem 4 bounds the influence function of twice smooth losses only; no bound is proved here."
        if convex
        else "Nothing is proved for a network, neither about the influence nor about where training from the same point leads."
    )
    way = "exactly" if convex else "from the same point"
    summary = (
        f"{len(at):,} rows {whose}, retrained {way}. The {KINDS[kind]} is off by {words.percent(float(np.median(off)))} in the "
        f"middle row and {words.percent(float(off.max()))} at worst; the largest error is {words.three(error[worst])}, "
        f"row {run.row_ids[at[worst]]}. {limit}"
        if len(off)
        else "No row moves the model."
    )
    same = int(at[truth.norm.argmax()]) == int(at[norm.argmax()])
    summary += f" Both name {'the same row' if same else 'different rows'} as the one that moves the model most."
    if not convex and len(at) > 2:
        likeness = words.two(truth.rank_correlation(norm))
        st.markdown(
            f"**Rank correlation with retraining (Spearman): {likeness}**, over {len(norm)} rows: 1 is the same order, 0 is "
            f"none. The influence is {inspected.approximation(influence)}."
        )
    exact = "exact leave-one-out" if convex else "leave-one-out retraining"
    fig = against_truth(norm, truth.norm, error, run.row_ids[at], theme, bound=bound, names=(KINDS[kind], exact))
    data = pd.DataFrame(
        {
            "row id": run.row_ids[at],
            KINDS[kind]: norm,
            exact: truth.norm,
            "error": error,
            "error bound": bound,
            "certificate of the exact value": truth.certificate,
        }
    )
    charts.chart(fig, "validation", summary, lambda: data, rows=True, of=run.spec)


def draw_sources(run: inspected.Inspected) -> None:
    """Formulas, sources and calls."""
    cls = list_mechanisms()[run.spec.mechanism]
    model = get_model(run.spec.model)
    exact = derivatives_of(model).exact
    J = "x" if exact else "J"
    formulas = [
        rf"\mathrm{{IF}}_i=\tfrac1n H^{{-1}}g_i,\qquad H=\tfrac1n\sum_j\varphi''_j{J}_j{J}_j^\top+\lambda I"
        r"\quad\text{(Koh, Liang 2017)}",
        rf"\theta_{{-i}}-\theta^*\approx\frac{{\mathrm{{IF}}_i}}{{1-h_i}},\quad h_i=\tfrac1n\varphi''_i\,{J}_i^\top H^{{-1}}{J}_i"
        r"\quad\text{(Newton step, leverage: Cook, Weisberg 1982)}",
        r"\lVert\theta-\theta_{-i}\rVert\le\lVert\nabla F_{-i}(\theta)\rVert/\lambda\quad\text{(certificate of the exact value)}"
        if model.convex
        else rf"J_j=\nabla_\theta f_\theta(x_j),\qquad f_\theta(x)={model.formula}",
    ]
    formulas += [view.formula for view in run.views or ()]
    sources = [
        f"{cls.label}: {cls.citation}.",
        "Influence is that on the model without privacy; n stays public when a row leaves.",
    ]
    if not exact:
        sources.append(
            "For a network H is the Gauss–Newton matrix, which leaves out the curvature of f itself; beyond "
            f"{DENSE_APPROXIMATION:,} parameters it is approximated by Kronecker factors with corrected eigenvalues (EKFAC: "
            "George et al. 2018). Retraining goes on from the same point to the minimum it leads to; nothing is proved of it."
        )
    if run.individual is not None:
        sources += [run.individual.method, run.individual.caveat, *run.individual.conditions]
    repeat.computation(run.spec, formulas, sources)
    repeat.python_of(
        run.spec,
        "influence = dpviz.influence_of(spec)\n"
        "influence.frame()  # one row per training row\n"
        "influence.leave_one_out([0, 1]).norm",
    )
    repeat.shell(f"{shell_call(run.spec, 'influence')} --retrain")
