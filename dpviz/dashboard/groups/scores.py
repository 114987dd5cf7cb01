"""Scores and thresholds: distributions, ROC and precision-recall curves, reliability, and the confusion matrix."""

import streamlit as st

from dpviz.dashboard.components import charts, panels, tables
from dpviz.dashboard.frame.fields import Field
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.datasets import load_dataset
from dpviz.experiments.studies.scores import Scores, scores
from dpviz.figures import scores as pictures
from dpviz.figures.style import Theme
from dpviz.reporting import words
from dpviz.reporting.pictures import method_look


def draw(outcome: Outcome, threshold: Field[float], theme: Theme) -> None:
    """All of it; words where the method gives no scores."""
    test_scores = scores(outcome.spec, outcome.theta, outcome.labels)
    if test_scores is None:
        panels.empty("There are no scores here: the method releases a label, or all test rows are of one class.")
        return
    names = load_dataset(outcome.spec.dataset, intercept=outcome.spec.intercept).label_names
    at = threshold.draw(step=0.05 if test_scores.probabilities else 0.1)
    method = method_look(outcome.spec.mechanism, theme)
    left, right = st.columns(2, gap="medium")
    with left:
        table = test_scores.distribution()
        fig = pictures.distributions(table, names, at, theme, probabilities=test_scores.probabilities)
        text = (
            "Share of each class’s test rows by score, private (filled) and non-private (line); dotted: the threshold. "
            + words.OUTSIDE
        )
        charts.chart(fig, "scores", text, lambda: table)
    with right:
        confusion(test_scores, at, names)
    one, two = st.columns(2, gap="medium")
    with one:
        roc = test_scores.roc()
        fig = pictures.curve(roc, method, theme, x="false-positive rate", y="recall", diagonal=True)
        charts.chart(fig, "roc", f"ROC curve; {_band(outcome)}. The diagonal is a score without information.", lambda: roc)
    with two:
        precision = test_scores.precision_recall()
        fig = pictures.curve(precision, method, theme, x="recall", y="precision")
        charts.chart(fig, "precision-recall", f"Precision at each recall; {_band(outcome)}.", lambda: precision)
    reliability = test_scores.reliability()
    if reliability.empty:
        panels.empty("A reliability diagram needs probabilities, which this model does not give.")
    else:
        fig = pictures.reliability(reliability, method, theme)
        text = "Share of positive rows among those with about the same predicted probability. On the diagonal the two agree."
        charts.chart(fig, "reliability", text, lambda: reliability)


def _band(outcome: Outcome) -> str:
    return f"the band holds 80 % of {len(outcome.theta)} noise draws, the black line is non-private"


def confusion(test_scores: Scores, at: float, names: tuple[str, str]) -> None:
    """The confusion matrix of the test rows at a threshold."""
    st.markdown(f"**Test rows at threshold {words.two(at)}**, mean over the noise draws")
    rows = test_scores.matrix(at, names).itertuples(index=False)
    tables.table([tuple(row) for row in rows], ("", "Private", "Non-private"))
    if at != test_scores.usual:
        st.warning(
            f"A threshold other than {test_scores.usual:g} that is chosen by looking at private rows is **not covered by ε**. "
            "Fix it in advance, choose it on public rows, or spend budget on it.",
            icon="⚠️",
        )
