"""Compare: a run is kept as A while B moves on. A stands in the address of every page and stays in its pictures and tables."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from dpviz.common.validate import InvalidInput, show
from dpviz.dashboard.components import panels
from dpviz.dashboard.frame import address, metric
from dpviz.dashboard.frame.fields import Field, Typed
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.experiments.run import links as versions
from dpviz.experiments.run.metrics import Metric
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms.attack import Attack, comparable_bounds
from dpviz.mechanisms.knobs import Changes
from dpviz.reporting import words


@dataclass(frozen=True, kw_only=True)
class Kept(Typed):
    """A run as the text of its address, or None."""

    def check(self, name: str, value: object) -> Any:
        if value is None or isinstance(value, RunSpec):
            return value
        raise InvalidInput(name, f"must be a run, got {show(value)}", "Press “Compare” on the first page.")

    def parse(self, name: str, text: str) -> RunSpec:
        if "dataset=" not in text:
            raise InvalidInput(name, f"must be the address of a run, got {show(text[:40])}", "Press “Compare” on the first page.")
        return resolve(RunSpec.from_query(text)).spec

    def text(self, value: RunSpec) -> str:
        return urlencode(versions.add_version({"dataset": value.dataset} | value.to_query()))

    def in_words(self, value: Any) -> str:
        return words.title(value)


PINNED: Field[RunSpec | None] = Field("pinned", Kept(label="Run A", help="The run that is kept for comparison."), None)


def controls(spec: RunSpec, **more: Any) -> None:
    """Keeps the present run as A; where there is one, swaps it with the present run or drops it.

    Args:
        more: further arguments of the buttons.
    """
    kept = PINNED.value()
    if kept is None:
        about = "Keeps this run as A. What you change then is B, and A stays on every page to compare with."
        st.button("Compare", on_click=PINNED.keep, args=(spec,), key="keep-a", help=about, **more)
        return
    st.button("Swap A and B", on_click=_swap, args=(kept, spec), key="swap", **more)
    st.button("Remove A", on_click=PINNED.keep, args=(None,), key="drop", **more)


def _swap(kept: RunSpec, present: RunSpec) -> None:
    address.set_run(kept)
    PINNED.keep(present)


def outcome() -> Outcome | None:
    """The outcome of run A; None where none is kept."""
    kept = PINNED.value()
    result = None if kept is None else tasks.outcome("pinned", kept)
    return None if result is None else metric.measure_outcome(result)


def same_rows(a: RunSpec, b: RunSpec) -> bool:
    """True where two runs are trained on the same rows, so that their values can be compared."""
    return a.restrict(Changes.DATA) == b.restrict(Changes.DATA)


def other_run(spec: RunSpec) -> RunSpec | None:
    """Run A, where it is on the same rows as the run of a page."""
    kept = PINNED.value()
    return kept if kept is not None and same_rows(kept, spec) else None


def outcome_beside(spec: RunSpec) -> Outcome | None:
    """Run A's outcome, where it is on the same rows as a page's run and its metric has a value; says where it is not."""
    kept = PINNED.value()
    if kept is None:
        return None
    if not same_rows(kept, spec):
        panels.text(f"A ({words.title(kept)}) is trained on other rows, so nothing of it stands here.")
        return None
    result = outcome()
    return result if result is not None and result.cost.has_value else None


def difference_from(measure: Metric, value: float, a: float) -> str:
    """The distance of a value from that of A: "+1.9 points", "the same"."""
    size = words.amount(measure, abs(value - a))
    unit = " points" if measure.shares else ""
    return "the same" if size == "nothing" else f"{'+' if value > a else '−'}{size}{unit}"


def compare_bounds(a: Attack, b: Attack) -> str:
    """A comparison of the bounds on an attacker, both computed in the same way."""
    one, other = comparable_bounds(a, b)
    size, more = words.part(abs(other - one)), "more" if other > one else "less"
    by = " by (ε, δ) alone" if (one, other) != (a.accuracy, b.accuracy) else ""
    if size == "nothing":
        return f"the bound on attacks is the same{by}"
    return f"an attacker may guess right {size} points {more} often{by}"
