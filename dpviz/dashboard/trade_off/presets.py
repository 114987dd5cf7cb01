"""The papers' figures: their settings for a click, what they say, and whether our numbers show it."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dpviz.dashboard.components import panels, tables
from dpviz.dashboard.frame import address, session
from dpviz.dashboard.frame.fields import Field
from dpviz.dashboard.trade_off import running, settings
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import list_mechanisms
from dpviz.papers.figures import catalogue
from dpviz.papers.figures.base import Figure
from dpviz.papers.verdict import Outcome, Verdict
from dpviz.reporting import words


def section(spec: RunSpec, chosen: settings.Choices, view: running.View | None) -> None:
    """A figure to choose, its settings and its statements, folded away until opened."""
    with st.expander("Figures of the papers", expanded=bool(chosen.figure)):
        figures = catalogue.PANELS
        left, right = st.columns([3, 1], vertical_alignment="bottom")
        with left:
            st.session_state.setdefault("own.figure", chosen.figure or next(iter(figures)))
            if chosen.figure:
                address.set_widget("own.figure", chosen.figure)
            name = st.selectbox(
                "Figure", list(figures), key="own.figure", format_func=_title, on_change=settings.figure_field().keep, args=("",)
            )
        figure, panel = figures[name]
        setup = catalogue.setup(name, _uploads())
        with right:
            st.button("Set it up", key="figure-start", on_click=_start, args=(name, spec), width="stretch", type="primary")
        where = f"{figure.source.name}, {figure.place_of(panel)}, section {figure.section}"
        panels.text(f"{where}: {panel.title}, {panel.rows:,} rows.")
        methods = ", ".join(method.name for method in figure.methods.values())
        panels.text(f"As the paper gives it: {'; '.join(figure.given)}. Methods: {methods}.")
        for note in setup.notes:
            st.markdown(f"- {words.markdown(note)}")
        if chosen.figure == name and view is not None:
            _judged(figure, setup, view)
        else:
            tables.table([(s.text, s.check.rule) for s in figure.statements], ("The paper says that it shows", "What is checked"))
        used = catalogue.settings(name)
        if used:
            tables.table(used, ("Method", "Hyperparameter", "Value or rule", "Where it comes from"))


def _title(name: str) -> str:
    figure, panel = catalogue.PANELS[name]
    return f"{figure.source.name.split(' (')[0]} · {figure.place_of(panel)} · {panel.title}"


def _uploads() -> dict[str, str]:
    """This session's uploads with the names of their files."""
    return {name: held.title for name, held in session.held_uploads().items()}


def figure_run(name: str, epsilon: float, uploads: Mapping[str, str] | None = None) -> tuple[RunSpec, dict[str, str]]:
    """The run of a figure, and what the page keeps in the address beside it.

    Args:
        epsilon: the chosen one, brought into the figure's range.
        uploads: names of uploads that may be used, with the names of their files.
    """
    setup = catalogue.setup(name, uploads)
    values = dict(setup.values)
    methods = values.pop("mechanisms")
    first = next(iter(methods))
    run = RunSpec(
        mechanism=first, params=methods[first], epsilon=min(max(epsilon, setup.figure.low), setup.figure.high), **values
    )
    kept: list[tuple[Field[Any], object]] = [
        (settings.methods_field(run), tuple(methods)),
        (settings.KNOBS, {m: k for m, k in methods.items() if m != first}),
        (settings.figure_field(), name),
        (settings.SHOWN, setup.figure.shows),
        (settings.FROM, setup.figure.low),
        (settings.TO, setup.figure.high),
        (settings.POINTS, setup.figure.points),
    ]
    return run, {field.key: field.write(value) for field, value in kept}


def _start(name: str, spec: RunSpec) -> None:
    """Puts a figure's settings into the controls; a callback."""
    run, beside = figure_run(name, spec.epsilon, _uploads())
    address.set_run(run)
    st.session_state.update(beside)
    settings.forget_sidebar()


def _judged(figure: Figure, setup: catalogue.Setup, view: running.View) -> None:
    """Every statement with its verdict, drawn again while numbers come in."""
    changed = _changes(setup, view)
    if changed:
        panels.text(f"Changed since it was set up: {', '.join(changed)}.")

    if setup.figure.shows == "accuracy" and view.choices.metric.id != "accuracy":
        measure = view.choices.metric.within
        panels.text(f"The paper measured accuracy: picture and verdicts keep it, the rest speaks {measure}.")

    def verdicts(view: running.View) -> None:
        status = view.status()
        if not status.state.over:
            st.caption(f"{status.done:.0%} computed; the verdicts come when all of it is.")
            judgements = [(s, Verdict(Outcome.UNDECIDED, "Still being computed.")) for s in figure.statements]
        else:
            table = view.table()
            judgements = figure.judge(table[table["epsilon"].isin(view.choices.epsilons)], view.sweep.named)
        rows = [
            (s.text, f"{words.VERDICTS[v.outcome][0]} {v.headline}", words.label_ids(v.because), s.check.rule)
            for s, v in judgements
        ]
        tables.table(rows, ("The paper says that it shows", "Ours, on this data", "Numbers", "What is checked"))

    running.draw_live(view, verdicts)


def _changes(setup: catalogue.Setup, view: running.View) -> list[str]:
    sweep, values = view.sweep, setup.values
    names = {"dataset": "dataset", "model": "model", "lam": "λ", "seeds": "draws"}
    changes = [name for field, name in names.items() if getattr(sweep, field) != values[field]]
    changes += ["methods"] if {*sweep.named} != {*values["mechanisms"]} else []
    if values["delta"] is not None and sweep.delta != values["delta"]:
        changes.append("δ")
    if (view.choices.low, view.choices.high) != (setup.figure.low, setup.figure.high):
        changes.append("range of ε")
    knobs, meant = (
        {m: {k: v for k, v in p.items() if v != list_mechanisms()[m].defaults()[k]} for m, p in named.items()}
        for named in (sweep.named, values["mechanisms"])
    )
    if any(knobs.get(m) != p for m, p in meant.items() if m in knobs):
        changes.append("settings of a method")
    return changes
