"""A computation in front of the reader: progress after a moment, a way to cancel, and words where it fails."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from dpviz.common.boundary import Boundary
from dpviz.common.progress import Monitor
from dpviz.dashboard.kit import panels
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec

T = TypeVar("T")

SHOW_PROGRESS, OFFER_CANCEL = 0.8, 4.0  # seconds of work
_CANCELLED = "dpviz.cancelled"


def working(spec: RunSpec, compute: Callable[[RunSpec, Monitor], T], name: str = "run") -> T | None:
    """The result of `compute` on a run, with progress and a way to cancel where it takes long; None where there is none.

    Args:
        name: unique among the computations of a page.
    """
    key = f"{name}|{resolve(spec).key()}"
    if st.session_state.get(_CANCELLED) == key:
        with st.container(border=True):
            st.markdown("**Cancelled.** Nothing was kept of this run. Choose another setting, or start it again.")
            st.button("Start again", on_click=lambda: st.session_state.pop(_CANCELLED), key=f"again-{name}")
        return None
    with st.container(key=f"working-{name}"):
        slot = st.empty()
    with Boundary(f"the run {resolve(spec).key()}") as work:
        result = compute(spec, _Progress(slot, key))
    problem = work.problem("Use fewer noise draws or a smaller dataset.", "Change a setting on the left; the others still work.")
    if problem is not None:
        panels.failed(*problem)
        return None
    slot.empty()
    return result


class _Progress:
    """A monitor that shows progress after a moment; talking to Streamlit lets it stop work that is not wanted."""

    def __init__(self, slot: Any, key: str) -> None:
        self._slot, self._key = slot, key
        self._start = self._last = time.monotonic()
        self._bar: Any = None
        self._cancel = False

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if now - self._start < SHOW_PROGRESS or now - self._last < 0.2:
            return
        self._last = now
        if self._bar is None:
            with self._slot.container(border=True):
                self._bar, self._button = st.empty(), st.empty()
        left = (now - self._start) * (1 - share) / max(share, 1e-3)
        self._bar.progress(min(max(share, 0.0), 1.0), f"Training: {share:.0%}, about {left:.0f} s left")
        if now - self._start > OFFER_CANCEL and not self._cancel:
            self._cancel = True
            self._button.button("Cancel", on_click=_cancel, args=(self._key,), key=f"cancel-{self._key}")


def _cancel(key: str) -> None:
    st.session_state[_CANCELLED] = key
