"""The metric that pages speak: a choice in the sidebar, kept in the address."""

from __future__ import annotations

import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.kit import words
from dpviz.dashboard.shell.fields import Field
from dpviz.datasets import load_dataset
from dpviz.experiments.metrics import METRICS, Metric, default_metric, rarer_share
from dpviz.mechanisms.knobs import Choice

KEY = "metric"
_NAMES = {name: metric.label for name, metric in METRICS.items()}
_HELP = "How usefulness is measured on the test rows. It is computed from private rows and outside every ε."
FIELD: Field[str] = Field(KEY, Choice(label="Metric", help=_HELP, options=tuple(METRICS), names=_NAMES), "accuracy", few=0)


def draw(dataset: str, intercept: bool) -> None:
    """The choice, and why its default is not accuracy where one class is rare."""
    share, field = _of(dataset, intercept)
    chosen = field.draw()
    if field.default == chosen != "accuracy":
        st.caption(
            f"The rarer class has {words.percent(share)} of the rows, so the majority label alone is right "
            f"{words.percent(1 - share)}. Balanced accuracy gives both classes the same weight."
        )


def in_address() -> dict[str, str]:
    """What stands for the choice in the address; nothing for the default."""
    text = str(st.session_state.get(KEY) or "")
    return {KEY: text} if text else {}


def chosen(dataset: str, intercept: bool) -> Metric:
    """The metric in force."""
    return METRICS[_of(dataset, intercept)[1].value()]


def _of(dataset: str, intercept: bool) -> tuple[float, Field[str]]:
    """The share of the rarer class, and the choice with the default that follows from it."""
    try:
        y = load_dataset(dataset, intercept=intercept).y
    except (InvalidInput, MemoryError):  # the page says what is wrong with the data
        return 0.5, FIELD
    return rarer_share(y), FIELD.at(default_metric(y))
