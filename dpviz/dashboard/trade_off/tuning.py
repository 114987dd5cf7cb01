"""Tuning: two settings of the sidebar's mechanism as a heat map at its epsilon, and what such a search costs."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.components import charts, panels, repeat, tables
from dpviz.dashboard.frame import address
from dpviz.dashboard.jobs import tasks, watching
from dpviz.dashboard.jobs.job import State
from dpviz.dashboard.jobs.sweep import SweepJob
from dpviz.dashboard.trade_off import running, settings
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.settings import PRIVATE, STANDARDISED
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.sweeps import grid as tuning
from dpviz.experiments.sweeps.cells import CellStore
from dpviz.figures import curves, heat
from dpviz.figures.style import Theme
from dpviz.mechanisms import DeclaresEvent, list_mechanisms
from dpviz.privacy.accounting.division import composed_budget, random_search
from dpviz.releasing.tuning import compare_search
from dpviz.reporting import pictures, shell_call, words

_JOB, _GRID, _APPLIED = "dpviz.tuning", "dpviz.tuning.grid", "dpviz.tuning.applied"


def section(spec: RunSpec, chosen: settings.Choices, theme: Theme) -> None:
    """Controls, heat map and warning."""
    label = list_mechanisms()[spec.mechanism].label
    st.subheader(f"Tune {words.markdown(label)}", anchor=False)
    names = list(tuning.declared_knobs(spec))
    pair = chosen.tune or tuning.first_pair(spec)
    if pair is None:
        panels.empty("This method has nothing to tune.")
        return
    columns = st.columns(3)
    for k, (column, title) in enumerate(zip(columns, ("Across", "Up"), strict=False)):
        address.set_widget(f"own.tune{k}", pair[k])
        column.selectbox(
            title,
            [n for n in names if n != pair[1 - k]],
            key=f"own.tune{k}",
            format_func=lambda n: tuning.declared_knobs(spec)[n].label,
            on_change=_pair,
            args=(spec, pair),
        )
    settings.BY.draw(place=columns[2])
    made = tuning.grid(spec, *pair, metrics=chosen.levels)
    st.button(f"Try {len(made.cells)} settings", key="tune-start", on_click=_start, args=(spec, made, pair))
    panels.privacy_warning("The heat map is computed from private rows without noise: do not publish what it chose.")
    job, grid = st.session_state.get(_JOB), st.session_state.get(_GRID)
    if job is not None and grid is not None and grid.names == pair:
        # the search stays while the settings that it varies move, and no longer
        grid = tuning.lay(spec, grid.names, grid.values, metrics=chosen.levels)
        if job.key == _key(spec, grid):
            _live(job, grid, spec, chosen, theme)
    _cost(spec, made)
    _private(spec, made)


def _pair(spec: RunSpec, shown: tuple[str, str]) -> None:
    pair = (st.session_state["own.tune0"], st.session_state["own.tune1"])
    if pair != shown:  # a run that was interrupted may have changed the controls without a choice
        settings.tune_field(spec).keep(pair)


def _key(spec: RunSpec, grid: tuning.Grid) -> str:
    return "tune " + "\n".join([*grid.names, *(cell.key() for _, _, cell in grid.cells), spec.mechanism, str(spec.epsilon)])


def _start(spec: RunSpec, grid: tuning.Grid, pair: tuple[str, str]) -> None:
    key = _key(spec, grid)
    job = watching.watch(SweepJob(key, [cell for _, _, cell in grid.cells], CellStore.personal()), _JOB)
    watching.resume(job)  # where it was cancelled before
    st.session_state[_GRID] = grid
    settings.tune_field(spec).keep(pair)


def _live(job: SweepJob, grid: tuning.Grid, spec: RunSpec, chosen: settings.Choices, theme: Theme) -> None:
    def draw() -> None:
        if st.session_state.pop(_APPLIED, False):
            st.rerun()
        _draw(job, grid, spec, chosen, theme)

    watching.draw_live(job, draw)


def _draw(job: SweepJob, grid: tuning.Grid, spec: RunSpec, chosen: settings.Choices, theme: Theme) -> None:
    status = watching.status(job)
    if not status.state.over:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(min(status.done, 1.0), f"{len(job.tables())} of {len(grid.cells)} settings tried")
            st.button("Cancel", key="tune-cancel", on_click=watching.cancel, args=(job,))
    elif status.state is State.CANCELLED:
        st.markdown("**Cancelled.** What was finished is kept; “Try” goes on from there.")
    means = grid.means(job.tables(), chosen.by)
    percent = chosen.by not in curves.LOSSES
    if not np.isfinite(means).any():
        over = status.state.over
        st.markdown("This has no value for the method and the model." if over else "The heat map appears here in a moment.")
        return
    j, i = np.unravel_index(np.nanargmax(means) if percent else np.nanargmin(means), means.shape)
    best = (int(i), int(j))
    knobs = tuning.declared_knobs(spec)
    names = (knobs[grid.names[0]].label, knobs[grid.names[1]].label)
    across, up = ([knobs[name].in_words(v) for v in values] for name, values in zip(grid.names, grid.values, strict=True))
    fig = heat.heat(
        means,
        (across, up),
        names,
        theme,
        percent=percent,
        best=best,
        present=_present(spec, grid),
        hue=pictures.method_look(spec.mechanism, theme).colour,
    )
    value = words.percent(float(means[j, i])) if percent else words.three(float(means[j, i]))
    worst = words.percent(float(np.nanmin(means))) if percent else words.three(float(np.nanmax(means)))
    chosen_words = " and ".join(f"{n.lower()} {t[k]}" for n, t, k in zip(names, (across, up), best, strict=True))
    spread = words.spread_text(grid.draws(job.tables(), chosen.by, *best), shares=percent)
    summary = (
        f"{settings.title(chosen.by).capitalize()}{' in percent' if percent else ''} at ε = {words.three(spec.epsilon)}: best "
        f"mean {value} {spread} with {chosen_words}, worst {worst}. The star is the best of {len(grid.cells)} noisy means: "
        "settings within that spread may be as good. A click on a cell uses it."
    )
    charts.chart(
        fig,
        "tuning",
        summary,
        lambda: _table(grid, job.tables()),
        clicks=lambda c: _apply(spec, grid, *map(int, c[0].split("|"))),
    )
    st.button(f"Use the best: {chosen_words}", key="tune-best", on_click=_apply, args=(spec, grid, *best))
    for line in running.refused_cells([cell for _, _, cell in grid.cells], status.problems):
        st.caption(line)


def _present(spec: RunSpec, grid: tuning.Grid) -> tuple[int, int] | None:
    try:
        i, j = (values.index(tuning.present_value(spec, name)) for name, values in zip(grid.names, grid.values, strict=True))
    except ValueError:
        return None
    return i, j


def _apply(spec: RunSpec, grid: tuning.Grid, i: int, j: int) -> None:
    """Puts two settings into the sidebar; runs as a callback, before any control is drawn."""
    for name, value in grid.settings_at(i, j).items():
        knob = tuning.declared_knobs(spec)[name]
        st.session_state["lam" if name == "lam" else f"{spec.mechanism}.{name}"] = knob.form(value).widget_value(knob, value)
        st.session_state["mechanism"] = spec.mechanism  # it may have been automatic
    st.session_state[_APPLIED] = True


def _private(spec: RunSpec, grid: tuning.Grid) -> None:
    """A private search of the same list of settings, beside the defaults and beside trying all of them."""
    if not isinstance(spec.build(), DeclaresEvent):
        st.caption("This method has no private search: its releases have no Rényi curve. DP-GD and output perturbation have.")
        return
    if spec.row_scaling == STANDARDISED:
        st.caption("A private search takes rows as they are: choose another row scaling.")
        return
    if spec.ranges == PRIVATE:
        st.caption("With private ranges a private search runs in the shell, on your own table: `dpviz release table.csv --try`.")
        return
    at = f"ε = {words.three(spec.epsilon)}"
    st.markdown(
        f"**Private search**: random settings of the same list, a random number of times, and the best by a noisy score on rows "
        f"held out of training. {at} pays for the whole search (Papernot & Steinke 2022)."
    )
    values = {name: list(some) for name, some in zip(grid.names, grid.values, strict=True)}

    search, given = partial(compare_search, spec, values), _key(spec, grid)
    found: Any = tasks.current_result("private-search", "Private search", search, of=spec, given=given, ask="Search privately")
    if found is None:
        return
    knobs, chosen = tuning.declared_knobs(spec), found.release.spec
    picked = " and ".join(f"{knobs[n].label.lower()} {knobs[n].in_words(tuning.present_value(chosen, n))}" for n in grid.names)
    naive = f"ε = {words.three(found.naive)}" if found.naive < math.inf else "no finite ε at this δ"
    tables.table(
        [
            ("Private search", words.percent(found.accuracy), f"{words.budget(found.release.calibration.proved_budget)}"),
            ("The sidebar’s settings, no search", words.percent(found.default), at),
            (f"All {len(grid.cells)} settings at {at}, the best picked by hand", "the star above", f"{naive}, and the scores"),
        ],
        ("", "test accuracy", "what it costs"),
    )
    panels.note(
        f"It chose {picked}. Each of its models had ε = {words.three(found.each.epsilon)} only and fewer rows, so a search "
        "can lose against settings that follow from public facts. The test accuracies are not private."
    )
    tries = [f"--try={name}={','.join(f'{v:.6g}' for v in some)}" for name, some in values.items()]
    repeat.shell(f"{shell_call(replace(spec, seed=RunSpec.seed), 'release')} {' '.join(tries)} --out=model --ranges-from-data")


def _table(grid: tuning.Grid, tables: dict[int, pd.DataFrame]) -> pd.DataFrame:
    parts_ = [
        tables[k].assign(**grid.settings_at(i, j)) for k, (i, j, _) in enumerate(grid.cells) if k in tables and len(tables[k])
    ]
    return pd.concat(parts_, ignore_index=True) if parts_ else pd.DataFrame()


def _cost(spec: RunSpec, grid: tuning.Grid) -> None:
    """The cost of a search on private data: every noise draw of every setting is a run."""
    models = sum(len(cell.replicas) for *_, cell in grid.cells)
    if models < 1:
        return
    message = (
        "Tuning on private data costs privacy: the values shown are exact, computed on private rows, and ε does not cover them. "
    )
    proved = calibration_of(spec).proved_budget
    if proved is None:
        panels.warning(f"{message}No budget is proved for this method, so the cost of a search cannot be stated.")
        return
    simple = words.budget(composed_budget(proved, models))
    tight = words.budget(composed_budget(proved, models, slack=models * resolve(spec).budget.delta))
    panels.warning(
        f"{message}If all {models} runs ({len(grid.cells)} settings, each with its noise draws) were private and independent, "
        f"they would cost {simple} together by adding up, or {tight} by exact composition (Kairouz, Oh, Viswanath 2015, "
        "Theorem 3.3). "
        "Here they share noise draws, which no composition covers. Tune on public or synthetic data."
    )
    if proved.delta == 0:
        geometric, logarithmic = (words.three(random_search(proved.epsilon, eta)) for eta in (1.0, 0.0))
        panels.note(
            f"A random search is cheaper for methods with δ = 0: the best of a geometric random number of runs costs "
            f"ε = {geometric}, of a logarithmic one ε = {logarithmic}, however many they are (Papernot & Steinke 2022). "
            "A grid in which every cell is tried is not such a search."
        )
    else:
        st.caption(
            "For methods with δ > 0 a random number of runs costs less too (Papernot & Steinke 2022, Theorem 2, in Rényi terms); "
            "a grid in which every cell is tried is not such a search."
        )
