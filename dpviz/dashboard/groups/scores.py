"""Scores and thresholds: distributions, ROC and precision-recall curves, reliability, and the confusion matrix."""

from __future__ import annotations

import math

import streamlit as st

from dpviz.dashboard.kit import charts, panels, tables, words
from dpviz.dashboard.shell.fields import Field
from dpviz.dashboard.work.cached_runs import Outcome
from dpviz.datasets import load_dataset
from dpviz.experiments.scores import NON_PRIVATE, PRIVATE, Scores, scores
from dpviz.figures import scores as pictures
from dpviz.figures.style import Theme


def draw(done: Outcome, threshold: Field[float], theme: Theme) -> None:
    """All of it; words where the method gives no scores."""
    found = scores(done.spec, done.theta, done.labels)
    if found is None:
        panels.empty("There are no scores here: the method releases a label, or all test rows are of one class.")
        return
    names = load_dataset(done.spec.dataset, intercept=done.spec.intercept).label_names
    at = threshold.draw(step=0.05 if found.probabilities else 0.1)
    method = charts.method_look(done.spec.mechanism, theme)
    left, right = st.columns(2, gap="medium")
    with left:
        table = found.distribution()
        fig = pictures.distributions(table, names, at, theme, probabilities=found.probabilities)
        text = (
            "Share of each class’s test rows by score, private (filled) and non-private (line); dotted: the threshold. "
            + words.OUTSIDE
        )
        charts.chart(fig, "scores", text, lambda: table)
    with right:
        confusion(found, at, names)
    one, two = st.columns(2, gap="medium")
    with one:
        roc = found.roc()
        fig = pictures.curve(roc, method, theme, x="false-positive rate", y="recall", diagonal=True)
        charts.chart(fig, "roc", f"ROC curve; {_band(done)}. The diagonal is a score without information.", lambda: roc)
    with two:
        precision = found.precision_recall()
        fig = pictures.curve(precision, method, theme, x="recall", y="precision")
        charts.chart(fig, "precision-recall", f"Precision at each recall; {_band(done)}.", lambda: precision)
    reliability = found.reliability()
    if reliability.empty:
        panels.empty("A reliability diagram needs probabilities, which this model does not give.")
    else:
        fig = pictures.reliability(reliability, method, theme)
        text = "Share of positive rows among those with about the same predicted probability. On the diagonal the two agree."
        charts.chart(fig, "reliability", text, lambda: reliability)


def _band(done: Outcome) -> str:
    return f"the band holds 80 % of {len(done.theta)} noise draws, the black line is non-private"


def confusion(found: Scores, at: float, names: tuple[str, str]) -> None:
    """What happens to the test rows at a threshold."""
    table = found.confusion(at)
    negative, positive = names
    st.markdown(f"**Test rows at threshold {words.two(at)}**, mean over the noise draws")
    counts = (
        ("true_positive", f"{positive}, called {positive}"),
        ("false_negative", f"{positive}, called {negative}"),
        ("false_positive", f"{negative}, called {positive}"),
        ("true_negative", f"{negative}, called {negative}"),
    )
    shares = (
        ("recall", "Recall"),
        ("precision", "Precision"),
        ("false_positive_rate", "False-positive rate"),
        ("accuracy", "Accuracy"),
    )
    rows = [(label, *(f"{table.at[m, name]:,.1f}" for m in (PRIVATE, NON_PRIVATE))) for name, label in counts]
    rows += [(label, *(_share(table.at[m, name]) for m in (PRIVATE, NON_PRIVATE))) for name, label in shares]
    tables.table(rows, ("", "Private", "Non-private"))
    if at != found.usual:
        st.warning(
            f"A threshold other than {found.usual:g} that is chosen by looking at private rows is **not covered by ε**. "
            "Fix it in advance, choose it on public rows, or spend budget on it.",
            icon="⚠️",
        )


def _share(value: float) -> str:
    return words.percent(value) if math.isfinite(value) else "none"
