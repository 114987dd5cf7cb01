"""ε moved by itself, from strong to weak, and training shown step by step; and the keys that move ε."""

import time
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dpviz.dashboard.components import charts, panels
from dpviz.dashboard.frame import sidebar
from dpviz.dashboard.jobs import page_priority, tasks
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.dashboard.one_run.settings import PRESENT, TRAINING
from dpviz.experiments.run.metrics import Metric
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.run.trajectory import Trajectory, trajectory
from dpviz.experiments.studies import decision_boundary
from dpviz.figures import plane
from dpviz.figures.style import Theme
from dpviz.reporting import pictures, words

MARKS = sidebar.EPSILONS[::4]  # five for each factor of ten
PAUSE = 0.5  # seconds for which a value of ε is shown at least

_LEFT = "dpviz.playing"  # the value of ε that is shown and those that are still to come
_SHOWN = "dpviz.played"  # the value that was set last
_HELD = "dpviz.held-back"  # whether the run of the value is not there yet


def step() -> None:
    """Sets the next ε while it plays; call before any control is drawn. A slider that was moved ends it."""
    state = st.session_state
    left: tuple[float, ...] = state.get(_LEFT, ())
    if not left or "epsilon" not in state:
        return
    if state.get(_SHOWN) not in (None, state["epsilon"]):
        stop()
        return
    state["epsilon"] = state[_SHOWN] = left[0]


def go_on() -> None:
    """Goes on to the next ε after a pause; call at the end of the page. A page that is drawn anew before it ends skips none."""
    left: tuple[float, ...] = st.session_state.get(_LEFT, ())
    if left:
        with page_priority.patience(PAUSE):
            time.sleep(PAUSE)
        if not st.session_state.get(_HELD):
            st.session_state[_LEFT] = left[1:]
        st.rerun()


def hold(waits: bool) -> None:
    """Keeps the present ε for longer where its run is not there yet."""
    st.session_state[_HELD] = waits


def stop() -> None:
    """Stays at the present ε."""
    st.session_state[_LEFT], st.session_state[_SHOWN] = (), None


def controls(spec: RunSpec) -> None:
    """Beside the slider: weaker and stronger by arrow keys, play, presenter mode, and steps of two-dimensional sets."""
    presents = PRESENT.value()
    with st.container(horizontal=True, key="buttons-play"):
        if st.session_state.get(_LEFT):
            st.button("❚❚ Stop", on_click=stop, key="stop")
        else:
            st.button("▶ Play ε", on_click=_start, key="play", help="Moves ε from strong to weak.")
        if presents:
            st.button("Stronger", on_click=_move, args=(-1,), key="stronger", shortcut="Left")
            st.button("Weaker", on_click=_move, args=(1,), key="weaker", shortcut="Right")
        st.button("End presenting" if presents else "Present", on_click=PRESENT.keep, args=(not presents,), key="present-switch")
        if flat(spec):
            TRAINING.draw(help=None)  # its label says it, and a help icon would be one control more


def flat(spec: RunSpec) -> bool:
    """True where a run's dataset can be drawn in a plane."""
    return decision_boundary.plane_of(spec, 1, 1) is not None


def _start() -> None:
    st.session_state[_LEFT], st.session_state[_SHOWN] = MARKS, None


def _move(by: int) -> None:
    """The next mark of the slider to one side."""
    now = st.session_state["epsilon"]
    beyond = [e for e in sidebar.EPSILONS if (e - now) * by > 0]
    if beyond:
        st.session_state["epsilon"] = beyond[0] if by > 0 else beyond[-1]


def training(outcome: Outcome, theme: Theme) -> None:
    """The decision lines after each step of training, with a button that plays them."""
    path, fresh = tasks.observe("steps", "Training step by step", lambda _: trajectory(outcome.spec), of=outcome.spec)
    if not fresh:
        return
    drawn = decision_boundary.plane_of(outcome.spec, *outcome.theta.shape)
    if path is None or drawn is None:
        panels.empty("Only the last model of this method is released, so there are no public steps to show. DP-GD has them.")
        return
    iterates = [drawn.scores(theta) for theta in path.theta]
    base = boundaries(drawn, iterates[-1], outcome, theme)
    measure = outcome.cost.metric
    means = path.measured(measure.id).mean(axis=1)
    end = "right" if measure.id == "accuracy" else measure.within
    names = [f"step {k} of {path.total}: {words.measured(measure, a)} {end}" for k, a in zip(path.steps, means, strict=True)]
    figure = plane.training(base, (drawn.axis, drawn.axis), np.stack(iterates), names, theme)
    charts.chart(figure, "training", _summary(path, measure, means), rows=True, of=outcome.spec)
    panels.not_private("The points are the data, and the thick line was trained without noise.")


def boundaries(
    drawn: decision_boundary.Plane, private: NDArray[np.float64], outcome: Outcome, theme: Theme, overlay: Outcome | None = None
) -> Any:
    """The points of a plane with the decision lines of private models, of the non-private one, and of run A on the same plane.

    Args:
        private: decision values of the private models on the plane.
    """
    assert outcome.non_private.theta is not None
    same = ("dataset", "model", "intercept", "row_scaling")
    beside = overlay is not None and all(getattr(outcome.spec, name) == getattr(overlay.spec, name) for name in same)
    return plane.decision_lines(
        drawn.points,
        drawn.labels,
        drawn.outlier,
        (drawn.axis, drawn.axis),
        private,
        drawn.scores(outcome.non_private.theta[None])[0],
        pictures.method_look(outcome.spec.mechanism, theme),
        theme,
        names=drawn.names,
        classes=drawn.dataset.label_names,
        overlay=drawn.scores(overlay.theta) if overlay is not None and beside else None,
        narrow=charts.narrow(),
    )


def _summary(path: Trajectory, measure: Metric, means: NDArray[np.float64]) -> str:
    """The picture in words."""
    start, middle, end = (words.measured(measure, float(means[k])) for k in (0, len(means) // 2, -1))
    return (
        f"Training in {path.total} steps with the noise of the whole run, {path.theta.shape[1]} noise draws. The mean test "
        f"{measure.within} is {start} at the start, {middle} after {path.steps[len(means) // 2]} steps and {end} at the end."
    )
