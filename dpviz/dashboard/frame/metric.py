"""The metric that pages speak: a choice in the sidebar, kept in the address."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.frame import address, fields
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.datasets import load_dataset
from dpviz.experiments.run.metrics import METRICS, Metric, default_metric, get_metric, rarer_share
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms.knobs import Choice, Form, Pick
from dpviz.reporting import words

KEY = "metric"
_NAMES = {name: metric.label for name, metric in METRICS.items()}
_HELP = "How usefulness is measured on the test rows. It is computed from private rows, and ε does not cover it."
_LEVEL = "own.metric-level"  # the widget that sets it, in percent
#: label, step in percent and help
_LEVELS = {
    "recall-at-precision": (
        "At a precision of, %",
        5.0,
        "The smallest precision that is good enough: the share of rows called positive that are positive.",
    ),
    "recall-at-false-positive-rate": (
        "At a false-positive rate of, %",
        1.0,
        "The largest share of negative rows that may be called positive.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Measure(Choice):
    """A metric's id, which may name a level of its own: "recall-at-precision=0.6"."""

    def check(self, name: str, value: object) -> str:
        return get_metric(str(value), name).id

    def in_words(self, value: Any) -> str:
        return get_metric(str(value)).label

    def form(self, value: Any) -> Form:
        now = get_metric(str(value)) if value else METRICS["accuracy"]
        return Pick(tuple(now.id if name == now.kind else name for name in self.options))


FIELD: fields.Field[str] = fields.Field(
    KEY, Measure(label="Metric", help=_HELP, options=tuple(METRICS), names=_NAMES), "accuracy", few=0
)


def measure_outcome(outcome: Outcome) -> Outcome:
    """A run's outcome in the metric that is chosen."""
    return outcome.measured_by(chosen_metric(outcome.spec).id)


def draw(spec: RunSpec) -> None:
    """The choice, and why its default is not accuracy where one class is rare."""
    share, field = _of(spec)
    chosen = field.draw()
    _level(get_metric(chosen))
    if field.default == chosen != "accuracy":
        st.caption(
            f"The rarer class has {words.percent(share)} of all rows, so the majority label alone is right "
            f"{words.percent(1 - share)}. Balanced accuracy gives both classes the same weight."
        )


def _level(measure: Metric) -> None:
    """The precision or false-positive rate at which recall is measured."""
    if measure.level is None:
        return
    address.set_widget(_LEVEL, 100 * measure.level)
    label, step, help_text = _LEVELS[measure.kind]
    st.number_input(
        label, 0.0, 100.0, step=step, format="%.4g", key=_LEVEL, on_change=_level_changed, args=(measure.kind,), help=help_text
    )
    st.caption("The best threshold for it is found on the test rows themselves, for each model. No ε covers that choice.")


def _level_changed(kind: str) -> None:
    try:
        FIELD.keep(get_metric(f"{kind}={round(st.session_state[_LEVEL] / 100, 9)!r}").id)
    except InvalidInput as problem:
        address.report_typed(problem)


def address_of_choice() -> dict[str, str]:
    """The choice as part of an address; nothing for the default."""
    text = str(st.session_state.get(KEY) or "")
    return {KEY: text} if text else {}


def chosen_metric(spec: RunSpec) -> Metric:
    """The metric in force for a run's rows."""
    return get_metric(_of(spec)[1].value())


def _of(spec: RunSpec) -> tuple[float, fields.Field[str]]:
    """The share of the rarer class, and the choice with the default that follows from it."""
    y = fields.read_or_default(lambda: load_dataset(spec.dataset, intercept=spec.intercept).y, None)
    return (0.5, FIELD) if y is None else (rarer_share(y), FIELD.change_default(default_metric(y)))
