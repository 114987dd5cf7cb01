"""The trade-off page's sweep as a job: started, watched, cancelled, taken up again."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from dpviz.common.digits import counted
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import panels
from dpviz.dashboard.jobs import watching
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.dashboard.jobs.job import Job, State
from dpviz.dashboard.jobs.pool import pool
from dpviz.dashboard.jobs.sweep import SweepJob, SweepStatus
from dpviz.dashboard.trade_off.settings import Choices
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.guarantees import Measured
from dpviz.experiments.sweeps import curves
from dpviz.experiments.sweeps.cells import Cell, CellStore
from dpviz.experiments.sweeps.sweep import SweepSpec, sort_rows
from dpviz.figures.style import Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.reporting import words

T = TypeVar("T")

AUTOMATIC = 50_000_000  # rows x budgets x draws x methods that are computed without being asked for
PICTURES = 2.0  # between two drawings: those of all who watch cost the server and the browser more than the sweep does
_MINE, _STARTED = "dpviz.sweep", "dpviz.started"


@dataclass(frozen=True)
class View:
    """The shared state of the page's parts: the sweep, its job, and the chosen view.

    Attributes:
        ranked: the job that measures all methods at the run's budget.
        overlay: what run A gave, which is kept for comparison.
    """

    ranked: Job[Measured]
    spec: RunSpec
    sweep: SweepSpec
    job: SweepJob
    choices: Choices
    theme: Theme
    overlay: Outcome | None = None
    _known: dict[Hashable, Any] = field(default_factory=dict)

    def table(self) -> pd.DataFrame:
        """Finished rows in order."""

        def make() -> pd.DataFrame:
            table = self.job.table()
            return sort_rows(table, self.sweep) if len(table) else table

        return self.job.compute_once("table", make)

    def summary(self, quantity: str = "", band: str = "draws") -> pd.DataFrame:
        """`curves.summarise` of the finished rows, of the metric by default."""
        what = quantity or self.choices.metric.column
        return self.job.compute_once(("summary", what, band), lambda: curves.summarise(self.table(), what, band))

    def needed_budgets(self, target: float) -> list[curves.Needed]:
        """`curves.needed_budgets` of the finished rows, for the metric."""
        metric = self.choices.metric
        name, rising = ("needed", metric.column, target), metric.higher_is_better
        return self.job.compute_once(name, lambda: curves.needed_budgets(self.summary(), target, rising=rising))

    def interval(self, mechanism: str, target: float) -> tuple[float | None, float | None] | None:
        """`curves.needed_interval` of the finished rows, for the metric."""
        column = self.choices.metric.column
        name = ("interval", column, mechanism, target)
        return self.job.compute_once(name, lambda: curves.needed_interval(self.table(), mechanism, target, column))

    def baselines(self, table: pd.DataFrame) -> tuple[float, float]:
        """The metric of the non-private model and of the majority label; NaN where it has no value.

        At the sidebar's budget where it is there: with private ranges each has rows of its own.
        """
        here, column = table[table["epsilon"] == self.spec.epsilon], self.choices.metric.column
        first = (here if len(here) else table).iloc[0]
        return float(first[f"non_private_{column}"]), float(first[f"majority_{column}"])

    def compute_once(self, name: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, computed again only after news from the job, which is looked at more often.

        What depends on finished rows alone is kept by the job (`SweepJob.once`), for the next run of the page and for others.

        Args:
            name: of what is made and of all that it depends on beside the job and the page's choices.
        """
        status = self.status()
        now = (status.version, status.state.over)
        if self._known.get(name, (None,))[0] != now:
            self._known[name] = (now, make())
        return self._known[name][1]

    def status(self) -> SweepStatus:
        return watching.status(self.job)


def start(ranked: Job[Measured], spec: RunSpec, chosen: Choices, theme: Theme, overlay: Outcome | None = None) -> View | None:
    """The page's sweep as a job at work; None where there is none, said so."""
    if not chosen.methods:
        panels.empty("**No method is chosen.** Choose at least one below.")
        return None
    try:
        sweep = chosen.sweep(spec)
        key = sweep.key()
    except InvalidInput as problem:
        panels.failure(f"{problem.field}: {problem.cause}", str(problem.fix))
        return None
    work = resolve(spec).n_train * len(sweep.epsilons) * sweep.seeds * len(chosen.methods)
    if work > AUTOMATIC and st.session_state.get(_STARTED) != key and pool().find(key) is None:
        with st.container(border=True):
            st.markdown(
                f"**This is much work**: {counted(len(chosen.methods), 'method')} × "
                f"{counted(len(sweep.epsilons), 'budget')} × {counted(sweep.seeds, 'draw')} on "
                f"{resolve(spec).n_train:,} rows. Fewer draws, budgets or methods are quicker; what is finished is kept."
            )
            st.button("Start it", on_click=lambda: st.session_state.update({_STARTED: key}), type="primary")
        return None
    job = watching.watch(SweepJob(key, _cells(sweep, chosen.epsilons, spec.epsilon), CellStore.personal()), _MINE)
    return View(ranked, spec, sweep, job, chosen, theme, overlay)


def _cells(sweep: SweepSpec, grid: Sequence[float], epsilon: float) -> list[Cell]:
    """The sweep's cells; the run's own budget in cells of their own where it is off the grid, which then stays computed."""
    if epsilon in grid:
        return sweep.cells()
    return [*replace(sweep, epsilons=(epsilon,)).cells(), *replace(sweep, epsilons=tuple(grid)).cells()]


def draw_live(view: View | None, *draw: Callable[[View], None], every: float = watching.EVERY) -> None:
    """Draws parts of the page again and again while the job is at work, and the whole page once when it is over."""
    if view is None:
        return

    def parts(view: View = view) -> None:
        for part in draw:
            part(view)

    watching.draw_live(view.job, parts, every=every)


def progress(view: View) -> None:
    """The progress of the job, with a way to cancel it or to go on."""
    status = view.status()
    with st.container(key="progress", horizontal=True, vertical_alignment="center"):
        if status.state is State.CANCELLED:
            st.markdown(f"**Cancelled** at {status.done:.0%}. What was finished is kept and shown.")
            if st.button("Go on", key="go-on"):
                watching.resume(view.job)
                st.rerun()  # the whole page: this part of it is drawn once
        elif not status.state.over:
            st.progress(min(status.done, 1.0), watching.text(status, f"{status.done:.0%} done"))
            st.button("Cancel", on_click=watching.cancel, args=(view.job,), key="cancel-sweep")
    for notice in status.notices:
        panels.warning(notice)
    for line in refused_cells(view.job.cells, status.problems):
        st.warning(line, icon="⚠️")


def refused_cells(cells: Sequence[Cell], problems: Sequence[tuple[int, float, InvalidInput]]) -> list[str]:
    """The cells that could not be computed, one line per method and reason."""
    budgets: dict[tuple[str, str, str], set[float]] = {}
    for k, epsilon, problem in problems:
        name = list_mechanisms()[cells[k].spec.mechanism].label
        budgets.setdefault((name, problem.cause, problem.fix), set()).add(epsilon)
    return [
        f"**{words.markdown(name)}** is missing at ε = {', '.join(words.three(e) for e in sorted(which))}: "
        f"{words.markdown(cause)}. {words.markdown(fix)}"
        for (name, cause, fix), which in budgets.items()
    ]
