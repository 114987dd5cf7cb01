"""The papers' figures: their settings for a click, what they say, and whether our numbers show it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dpviz import presets
from dpviz.cells import Cell
from dpviz.dashboard import choices, jobs, parts, sweep_view, urls, words
from dpviz.dashboard.choices import Choices
from dpviz.dashboard.job import State
from dpviz.dashboard.sweep_job import SweepJob
from dpviz.mechanisms import mechanisms
from dpviz.models import MODELS
from dpviz.spec import RunSpec
from dpviz.statements import Statement, Verdict

_TIMES = "dpviz.times"
_SIGNS = {True: "✓ shown", False: "✗ not shown", None: "– cannot be judged"}


def section(spec: RunSpec, chosen: Choices, view: sweep_view.View | None) -> None:
    """A figure to choose, its settings and its statements, folded away until somebody asks."""
    with st.expander("Figures of the papers", expanded=bool(chosen.figure)):
        known = presets.panels()
        left, right = st.columns([3, 1], vertical_alignment="bottom")
        with left:
            st.session_state.setdefault("page.figure", chosen.figure or next(iter(known)))
            if chosen.figure:
                st.session_state["page.figure"] = chosen.figure
            name = st.selectbox("Figure", list(known), key="page.figure", format_func=_title, on_change=_other)
        figure, panel = known[name]
        setup = presets.setup(name)
        with right:
            st.button(
                "Set it up", key="figure-start", on_click=_start, args=(name, spec), width="stretch", type="primary",
                disabled=bool(setup.unavailable),
            )  # fmt: skip
        if setup.unavailable:
            parts.empty(f"**Not available.** {words.markdown(setup.unavailable)}")
        st.markdown(
            words.markdown(f"{figure.paper}, {figure.number}, section {figure.section}: {panel.title}, {panel.rows:,} rows.")
        )
        methods = ", ".join(figure.names[m] for m in figure.methods)
        st.markdown(words.markdown(f"As the paper gives it: {'; '.join(figure.given)}. Methods: {methods}."))
        for note in setup.notes:
            st.markdown(f"- {words.markdown(note)}")
        if chosen.figure == name and view is not None and not setup.unavailable:
            _judged(figure, setup, view)
        else:
            parts.table([(s.text, s.meaning) for s in figure.statements], ("The paper says that it shows", "What is checked"))
    _times_section()


def _title(name: str) -> str:
    figure, panel = presets.panels()[name]
    missing = "" if panel.model in MODELS else " (not available)"
    return f"{figure.paper.split(' (')[0]} · {figure.number} · {panel.title}{missing}"


def _other() -> None:
    choices.keep(figure="")


def _start(name: str, spec: RunSpec) -> None:
    """Puts a figure's settings into the controls; a callback."""
    setup = presets.setup(name)
    given = dict(setup.values)
    methods = given.pop("mechanisms")
    first = next(iter(methods))
    urls.put(RunSpec(mechanism=first, params=methods[first], epsilon=min(max(spec.epsilon, setup.low), setup.high), **given))
    choices.keep(
        methods=choices.text_of(methods), knobs=choices.knob_text({m: k for m, k in methods.items() if m != first}), figure=name,
        shown=setup.shows, points=str(setup.points), **{"from": f"{setup.low:g}", "to": f"{setup.high:g}"},
    )  # fmt: skip
    choices.forget_sidebar()


def _judged(figure: presets.Figure, setup: presets.Setup, view: sweep_view.View) -> None:
    """Every statement with its verdict, drawn again while numbers come in."""
    changed = _changes(setup, view)
    if changed:
        st.markdown(words.markdown(f"Changed since it was set up: {', '.join(changed)}."))

    def verdicts(view: sweep_view.View) -> None:
        status = view.status()
        if not status.state.over:
            st.caption(f"{status.done:.0%} computed; the verdicts come when all of it is.")
            found = [(s, Verdict(None, "still being computed")) for s in figure.statements]
        else:
            found = presets.judge(figure, view.table())
        _table(found)

    sweep_view.live(view, verdicts)


def _table(found: list[tuple[Statement, Verdict]]) -> None:
    rows = [(s.text, _SIGNS[v.shown], _labelled(v.why), s.meaning) for s, v in found]
    parts.table(rows, ("The paper says that it shows", "Ours, on this data", "Numbers", "What is checked"))


def _labelled(text: str) -> str:
    """Mechanism ids in a sentence as labels; long ids first, since some are parts of others."""
    for name, cls in sorted(mechanisms().items(), key=lambda item: -len(item[0])):
        text = text.replace(name, cls.label)
    return text


def _changes(setup: presets.Setup, view: sweep_view.View) -> list[str]:
    sweep, given = view.sweep, setup.values
    now = {"dataset": sweep.dataset, "model": sweep.model, "λ": sweep.lam, "draws": sweep.seeds, "methods": set(sweep.named)}
    then = {
        "dataset": given["dataset"], "model": given["model"], "λ": given["lam"], "draws": given["seeds"],
        "methods": set(given["mechanisms"]),
    }  # fmt: skip
    found = [name for name, value in now.items() if value != then[name]]
    if given["delta"] is not None and sweep.delta != given["delta"]:
        found.append("δ")
    if (sweep.epsilons[0], sweep.epsilons[-1]) != (setup.low, setup.high):
        found.append("range of ε")
    knobs = {m: {k: v for k, v in p.items() if v != mechanisms()[m].defaults()[k]} for m, p in sweep.named.items()}
    meant = {m: {k: v for k, v in p.items() if v != mechanisms()[m].defaults()[k]} for m, p in given["mechanisms"].items()}
    if any(knobs.get(m) != p for m, p in meant.items() if m in knobs):
        found.append("settings of a method")
    return found


def _times_section() -> None:
    figure = presets.times()
    with st.expander("Table of times"):
        st.markdown(words.markdown(f"{figure.paper}, {figure.number}, section {figure.section}. {'; '.join(figure.given)}."))
        for note in figure.differs:
            st.markdown(f"- {words.markdown(note)}")
        job: SweepJob | None = st.session_state.get(_TIMES)
        st.button("Measure", key="times-start", on_click=_measure, disabled=job is not None and not job.over)
        if job is not None:
            working = not job.over

            def again() -> None:
                _draw_times(figure, job)
                if working and job.over:
                    st.rerun()

            st.fragment(run_every=sweep_view.EVERY if working else None)(again)()


def _measure() -> None:
    old = st.session_state.get(_TIMES)
    if old is not None:
        jobs.pool().again(old)
    # no store: times are measured anew
    jobs.watch(SweepJob("times", presets.times().cells(), None), _TIMES)


def _draw_times(figure: presets.Times, job: SweepJob) -> None:
    status = sweep_view.status(job)
    if not status.state.over:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(min(status.done, 1.0), f"{status.done:.0%} measured")
            st.button("Cancel", key="times-cancel", on_click=job.cancel)
    measured = table_of_times(job.cells, job.seconds())
    if not len(measured):
        return
    wide = measured.pivot(index="mechanism", columns="rows", values="seconds")
    names = {m: mechanisms()[m].label for m in wide.index}
    rows = [
        (names[m], *(f"{wide.loc[m, n]:.2g} s" if n in wide and pd.notna(wide.loc[m, n]) else "" for n in figure.rows))
        for m in figure.methods
        if m in wide.index
    ]
    parts.table(rows, ("Method", *(f"{n:,} rows" for n in figure.rows)))
    parts.download(lambda: measured, "times")
    if status.state is State.DONE:
        _table([(s, s.check(measured)) for s in figure.statements])
    elif status.state.over:
        parts.empty("**Cancelled.** The verdicts need all times; “Measure” starts anew.")


def table_of_times(cells: Sequence[Cell], taken: dict[int, float]) -> pd.DataFrame:
    """Columns mechanism, rows, seconds, from the seconds that cells took."""
    rows = [(cells[k].spec.mechanism, int(cells[k].spec.dataset.rpartition("-")[2]), s) for k, s in sorted(taken.items())]
    return pd.DataFrame(rows, columns=["mechanism", "rows", "seconds"])
