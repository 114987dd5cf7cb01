"""The audit from one training with many canaries: one control, an answer in one sentence, and how it is computed."""

from dataclasses import replace
from typing import Any

import streamlit as st

from dpviz.auditing import Canaries, OneRunResult, one_run_of
from dpviz.dashboard.components import panels
from dpviz.dashboard.frame import fields
from dpviz.dashboard.jobs import tasks
from dpviz.experiments.run.spec import RunSpec
from dpviz.reporting import words
from dpviz.reporting.calls import with_spec

COUNTS = {"": "None", "100": "100", "300": "300", "1000": "1,000"}


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """The fields in the address: the number of canaries."""
    most = "Rows that a coin each puts in or changes. More canaries show more; none means no such audit."
    return (fields.choice("canaries", "Canaries in one training", COUNTS, "", most),)


def show(spec: RunSpec, own: fields.Group) -> None:
    """A fold with the control; where canaries are asked for, it is open and says what one training gave away."""
    chosen = own["canaries"].value()
    with st.expander("Audit with one training", expanded=bool(chosen)):
        own["canaries"].draw()
        if not chosen:
            st.caption("One training takes the place of thousands: many rows are canaries at once, each with a coin of its own.")
            return
        fixed = replace(spec, seeds=1)
        answer = tasks.current_result(
            "canaries", "One training", lambda monitor: one_run_of(fixed, int(chosen), monitor=monitor), of=fixed, given=chosen
        )
        if answer is not None:
            _answer(fixed, *answer)


def _answer(spec: RunSpec, canaries: Canaries, result: OneRunResult) -> None:
    panels.text(sentence(result))
    panels.note(f"{canaries.why} {detectable_noise(result)}")
    gaussian = result.gaussian_epsilon_lower
    if gaussian is not None:
        panels.text(
            "If the trade-off is Gaussian, as this method's noise is declared to be, ε is at least "
            f"{words.three(gaussian)} by f-DP (Mahloujifar, Melis, Chaudhuri 2024)."
        )
    st.latex(r"P[W\ge v]\le P[B\ge v]+m\delta\,y,\quad y=\tfrac{P[B\ge v]\,P[B<v]}{v\,P[B=v]}")
    st.latex(r"B\sim\mathrm{Bin}\!\left(r,\tfrac{e^\varepsilon}{1+e^\varepsilon}\right)")
    panels.note(
        "W counts right guesses, r is the number of guesses, v of them were right, m is the number of canaries. "
        "The smallest ε at which this reaches 5\u00a0% is the bound. For δ = 0 it is that of Steinke, Nasr, Jagielski 2023, "
        "section 5. The exact term for δ is derived here and replaces theirs."
    )
    code = f"canaries, result = one_run_of(spec, {result.canaries})\nprint(result.epsilon_lower, result.verdict)"
    st.code(with_spec(spec, code, "from dpviz.auditing import one_run_of"), language="python", wrap_lines=True)


def sentence(result: OneRunResult) -> str:
    """Right guesses, the bound on epsilon and the verdict."""
    message = (
        f"Of {result.canaries:,} canaries in one training the attacker guessed {result.guesses:,} and was right on "
        f"{result.correct:,} ({words.percent(result.guessed_right)}): ε is at least {words.three(result.epsilon_lower)}"
    )
    claim = result.calibration.claimed_budget or result.calibration.proved_budget
    if claim is None:
        return f"{message}; this method claims no privacy."
    return f"{message}; the claim is {words.budget(claim)}: {result.verdict}."


def detectable_noise(result: OneRunResult) -> str:
    """A sentence on the noise that so many canaries can be expected to detect."""
    if result.visible_share is None:
        return f"With this many canaries the audit can show at most ε = {words.three(result.most)}."
    return (
        f"With this many canaries the audit is expected to detect noise below {result.visible_share:.0%} of what the claim needs."
    )
