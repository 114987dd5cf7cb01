"""Computations of a page, as jobs beside it: one way to ask for a result, to see how far it is, and to start it again."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar, cast

import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.dashboard.components import charts, folds, panels, recorder
from dpviz.dashboard.jobs import cached_runs, watching
from dpviz.dashboard.jobs.job import Job, State, Stream
from dpviz.dashboard.jobs.pool import pool
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.reporting import Chart, Text, words

T = TypeVar("T")
Work = Callable[[Monitor], Any]

POLL = 0.4  # seconds between two looks at a result under way
PATIENCE = 0.6  # seconds that a page waits for a result: one that is there by then needs no progress bar


def find(key: str) -> Job[Any] | None:
    """The job with this key, if it was asked for before."""
    return pool().find(key)


def controls(task: Job[Any], what: str) -> None:
    """Progress with a way to cancel, or what became of the work."""
    state = watching.state(task)
    if not state.over:
        left, right = st.columns([2, 1], vertical_alignment="center")
        left.progress(task.done, watching.message(task, what))
        right.button("Cancel", on_click=watching.cancel, args=(task,), key=f"cancel-{what}", width="stretch")
    elif state is State.CANCELLED:
        kept = "What was found by then is shown." if task.results else "Nothing was found by then."
        st.info(f"**Cancelled** after {task.done:.0%}. {kept}", icon="ℹ️")
    elif task.problem is not None:
        panels.failure(*task.problem)


def follow(
    task: Job[T], show: Callable[[T], None], doing: str = "", *, working: bool | None = None, every: float = watching.EVERY
) -> None:
    """Draws the last result of a job again and again while it is at work, below its progress where `doing` names the work.

    Args:
        working: as for `watching.draw_live`.
    """

    def draw() -> None:
        if doing:
            controls(task, doing)
        if task.results:
            show(task.results[-1])

    watching.draw_live(task, draw, working=working, every=every)


def attack_job(key: str, work: Stream[T], section: str, dataset: str) -> Job[T]:
    """The job with this key, at work at once; a button takes it up again where it was cancelled or failed."""
    task = watching.watch(Job(key, work, dataset=dataset), f"watched.{section}")
    if watching.state(task) in (State.CANCELLED, State.FAILED):
        st.button("Start again", on_click=watching.restart, args=(task,))
    return task


def training(spec: RunSpec) -> Job[cached_runs.Outcome]:
    """A run as a job, the same one for all who ask for the run."""
    job = _job(f"Training {words.title(spec)}", partial(cached_runs.outcome, spec), of=spec, kept=False)
    stored = cached_runs.stored_outcome(spec)
    if stored is not None:  # no need to wait for a thread
        job.finish(stored)
    return job


def outcome(section: str, spec: RunSpec) -> cached_runs.Outcome | None:
    """The outcome of a run; None until it is there; see `observe`."""
    result, fresh = result_of(section, training(spec))
    return result if fresh else None


def current_result(section: str, what: str, work: Callable[[Monitor], T], **more: Any) -> T | None:
    """The result of `observe` where it is of this very setting; None until it is there."""
    result, fresh = observe(section, what, work, **more)
    return result if fresh else None


def observe(
    section: str,
    what: str,
    work: Work,
    *,
    of: RunSpec | None = None,
    given: object = "",
    dataset: str = "",
    kept: bool = True,
    ask: str = "",
    short: bool = True,
) -> tuple[Any, bool]:
    """(result, whether it is of this very setting); draws progress, buttons and problems.

    While something new is computed the section's last result comes back with False, and (None, False) where there is none.
    A result that is not there stands with its reason in the page's report.

    Args:
        section: one place of one page; remembers its last result.
        what: for people, what is being computed.
        work: called with a monitor in a thread of its own.
        of: the run that the result is of; None where it depends on what is `given` alone.
        given: what else the result depends on.
        dataset: what the work learns from, where that is no run's.
        kept: see `Job`; False where the work keeps in a cache what it makes.
        ask: words of a button without which nothing starts; "" starts at once.
        short: False for what takes many runs: it waits behind other long work.
    """
    return result_of(section, _job(what, work, of=of, given=given, dataset=dataset, kept=kept, short=short), ask=ask)


def _job(
    what: str, work: Work, *, of: RunSpec | None, given: object = "", dataset: str = "", kept: bool, short: bool = True
) -> Job[Any]:
    # a hash: a failure is logged with the key, and names of columns and rows are not for the log
    key = f"{what} {hash(repr(given))} {'' if of is None else resolve(of).key()}"

    def stream(monitor: Monitor) -> Iterator[Any]:
        yield work(monitor)

    return Job(key, stream, doing=what, dataset=dataset if of is None else of.dataset, short=short, kept=kept, of=of)


def last_result(section: str) -> Any:
    """The last result of a section; None where there is none or its data has gone."""
    shown: Job[Any] | None = st.session_state.get(f"observed.{section}")
    return shown.results[-1] if shown is not None and shown.results else None


def last_run(section: str) -> Any:
    """The run of the last result of a section, as it was given to `observe`."""
    return st.session_state[f"observed.{section}"].of


def note_before(section: str) -> None:
    """Says that the picture of a section is the one before, and until when where the new one is under way."""
    over, spec = watching.is_over(st.session_state[f"watched.{section}"]), last_run(section)
    before = "settings before" if spec is None else f"run before: {words.title(spec)}"
    panels.note(f"{'The' if over else 'Until then the'} picture shows the {before}.")


def chart(
    key: str, doing: str, make: Callable[[T], Chart], compute: Callable[..., T], *given: object, run: RunSpec, of: RunSpec | None
) -> T | None:
    """Draws the picture of what takes seconds to compute, when a job has it, and returns what was computed.

    Until then the picture before stays, paler. Then, and in a closed fold, a report computes it.

    Args:
        compute: called with `given`, and `make` with its result, both in a thread of their own.
        run: whose data the result goes with.
        of: the run that the picture shows; None where it depends on what is `given` alone.
    """

    def work(_: Monitor) -> tuple[T, Chart]:
        result = compute(*given)
        return result, make(result)

    computed, fresh = None, False
    if not folds.in_closed_fold():
        look = st.context.theme.type  # the picture has its colours
        computed, fresh = observe(key, doing, work, of=of, given=(given, look), dataset=run.dataset)
    if computed is not None:
        result, picture = computed
        with st.container(key=f"{'drawn' if fresh else 'older'}-{key}"):
            if not fresh:
                note_before(key)
            table = picture.table if callable(picture.table) else None
            charts.chart(picture.figure, key, picture.words, table, of=last_run(key))
        if fresh:
            return cast(T, result)
    recorder.keep(key, lambda: make(compute(*given)), of=of)
    return None


def result_of(section: str, job: Job[Any], *, ask: str = "", meanwhile: str = "") -> tuple[Any, bool]:
    """The result of a job that yields one, as of `observe`.

    Args:
        meanwhile: what the page shows until it is there, in words; the progress then stands in the corner.
    """
    done, asked, last = f"observed.{section}", f"asked.{section}", last_result(section)
    shown: Job[Any] | None = st.session_state.get(done)
    known = find(job.key)
    if shown is not None and shown.key == job.key and shown.state is State.DONE:
        known = job = shown
    if ask and known is None and st.session_state.get(asked) != hash(job.key):
        # a callback: a press must not be lost where the page is drawn anew before it comes to the button
        press = {asked: hash(job.key)}
        st.button(ask, key=f"start.{section}", type="primary", on_click=st.session_state.update, args=(press,))
        return last, False
    job = watching.watch(job, f"watched.{section}")
    st.session_state[asked] = hash(job.key)
    if not watching.is_over(job):
        watching.wait(job, PATIENCE)
    state = watching.state(job)  # once: the job may end between two looks
    if state is State.DONE:
        st.session_state[done] = job
        return job.results[-1], True
    missing = "still being computed when the report was saved; save it again."
    if not state.over:
        with st.container(key=f"{'working' if meanwhile else 'first'}-{section}"):
            watching.draw_live(job, lambda: _progress(job, section, meanwhile), working=True, every=POLL)
    else:
        if state is State.FAILED and job.problem is not None:
            missing = " ".join(job.problem)
            panels.failure(*job.problem)
        else:
            missing = "cancelled."
            st.markdown("**Cancelled.** Nothing was kept of this. Choose another setting, or start it again.")
        st.button("Start again", key=f"again-{section}", on_click=watching.restart, args=(job,))
    recorder.keep(section, Text(f"{job.doing}: {missing}"))
    return last, False


def _progress(job: Job[Any], section: str, meanwhile: str) -> None:
    """A box with the progress of a job at work and a way to cancel it."""
    if watching.is_over(job):
        return  # the page is about to be drawn again
    with st.container(border=True):
        st.progress(job.done, watching.message(job, job.doing))
        if meanwhile:
            st.caption(meanwhile)
        st.button("Cancel", on_click=watching.cancel, args=(job,), key=f"cancel-{section}")
