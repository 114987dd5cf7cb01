"""A computation that a press starts on the page's own thread: progress after a moment, and words where it fails."""

import time
from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from dpviz.common.boundary import Boundary
from dpviz.common.progress import Monitor
from dpviz.dashboard.kit import panels
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec

T = TypeVar("T")

EVERY = 0.5  # seconds of work before progress is shown, and between two looks at it


def working(spec: RunSpec, compute: Callable[[RunSpec, Monitor], T], name: str, doing: str) -> T | None:
    """The result of `compute` on a run, with progress where it takes long; None where it fails, said so.

    Args:
        name: unique among the computations of a page.
        doing: what is computed, for people.
    """
    with st.container(key=f"working-{name}"):
        slot = st.empty()
    last = time.monotonic()

    def monitor(share: float) -> None:
        nonlocal last
        if time.monotonic() - last > EVERY:
            last = time.monotonic()
            slot.progress(min(max(share, 0.0), 1.0), f"{doing}: {share:.0%}")  # here Streamlit stops what is not wanted any more

    with Boundary(f"the run {resolve(spec).key()}") as work:
        result = compute(spec, monitor)
    slot.empty()
    problem = work.problem("Use fewer noise draws or a smaller dataset.", "Change a setting on the left; the others still work.")
    if problem is not None:
        panels.failed(*problem)
        return None
    return result
