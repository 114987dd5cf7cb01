"""A run that a page waits for, as a job: one that takes longer than a moment does not hold up the page, nor other people.

What was shown before stays until it is done; the page then draws itself again. Jobs of this kind share the pool's places
fairly with all others, and one that its reader has moved on from is stopped.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import streamlit as st

from dpviz.common.progress import Monitor, silent
from dpviz.dashboard.kit import panels, recorder
from dpviz.dashboard.work import watching
from dpviz.dashboard.work.job import Job, State
from dpviz.dashboard.work.pool import pool
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec

PATIENCE = 0.35  # seconds that a page waits for a run before it is drawn without it
ALMOST = 0.55  # the same for a run that should be there by then
POLL = 0.4  # seconds between two looks at a run under way
#: what was shown before is paler until the new run is there
_PALE = "<style>.st-key-headline, .stMain .stPlotlyChart, .stMain .dpviz-picture {opacity: .45}</style>"

T = TypeVar("T")
Compute = Callable[[RunSpec, Monitor], object]


def ready(
    spec: RunSpec,
    compute: Compute,
    name: str = "run",
    *,
    meanwhile: str = "",
    doing: str = "Training",
    patience: float | None = None,
    given: object = "",
) -> bool:
    """True where a run has been computed; draws progress, a way to cancel, and problems where it has not.

    Args:
        compute: computes it and keeps it in a cache; called in a thread of its own.
        name: unique among the computations of a page.
        meanwhile: what is shown until it is there, in words; "" where nothing is.
        doing: what is being done, in words.
        patience: seconds that the page waits for it, `PATIENCE` by default.
        given: what else than the run the result depends on.
    """
    # a hash: a failure is logged with the key, and names of columns and rows are not for the log
    key, place = f"{name} {hash(repr(given))} of {resolve(spec).key()}", f"dpviz.front.{name}"
    before: Job[Any] | None = st.session_state.get(place)
    if before is not None and before.key == key and before.state is State.DONE:
        return True

    def stream(monitor: Monitor) -> Iterator[None]:
        compute(spec, monitor)  # which keeps what it makes
        yield None

    job = watching.watch(Job(key, stream, dataset=spec.dataset, kept=False), place)
    if not watching.over(job):
        watching.wait(job, PATIENCE if patience is None else patience)
    state = watching.state(job)  # once: the job may end between two looks
    if state is State.DONE:
        return True
    if state is State.FAILED and job.problem is not None:
        pool().remove(job)  # the next look tries again
        del st.session_state[place]
        panels.failed(*job.problem)
        return False
    if state.over:
        with st.container(border=True):
            st.markdown("**Cancelled.** Nothing was kept of this run. Choose another setting, or start it again.")
            st.button("Start again", on_click=watching.again, args=(job,), key=f"again-{name}")
        return False
    recorder.close("This run was still being computed when the report was saved. Save it again.")
    if meanwhile:
        st.html(_PALE)
    with st.container(key=f"working-{name}" if meanwhile else f"first-{name}"):
        watching.live(job, lambda: watching.progress(job, doing, f"cancel-{name}", meanwhile), working=True, every=POLL)
    return False


def computed(spec: RunSpec, compute: Callable[[RunSpec, Monitor], T], name: str, given: object = "") -> T | None:
    """The result that `compute` makes of a run and keeps in a cache; None until it is there; see `ready`."""
    return compute(spec, silent) if ready(spec, compute, name, given=given) else None
