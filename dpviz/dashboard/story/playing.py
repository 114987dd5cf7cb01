"""ε moved by itself, from strong to weak; and the buttons and keys of the story."""

import time

import streamlit as st

from dpviz.dashboard.frame import address, sidebar
from dpviz.dashboard.jobs import page_priority, watching
from dpviz.dashboard.story.settings import PRESENT, SCENE, SCENES

MARKS = sidebar.EPSILONS[::4]  # five for each factor of ten
PAUSE = 0.5  # seconds for which a value of ε is shown at least

_LEFT = "dpviz.playing"  # the value of ε that is shown and those that are still to come
_SHOWN = "dpviz.played"  # the value that was set last


def plays() -> bool:
    """True while ε is moved by itself."""
    return bool(st.session_state.get(_LEFT))


def step() -> None:
    """Sets the next ε while it plays; call before any control is drawn. A slider that was moved ends it."""
    state = st.session_state
    state[address.HELD] = plays()
    if not plays() or "epsilon" not in state:
        return
    if state.get(_SHOWN) not in (None, state["epsilon"]):
        stop()
        state[address.HELD] = False
        return
    state["epsilon"] = state[_SHOWN] = state[_LEFT][0]


def advance(*, fresh: bool) -> None:
    """Goes on to the next ε after a pause; call at the end of the page. A run that is not there yet keeps its ε for longer."""
    if plays():
        with page_priority.pause():
            time.sleep(PAUSE)
        if fresh or watching.is_over(st.session_state["watched.run"]):
            st.session_state[_LEFT] = st.session_state[_LEFT][1:]
        st.rerun()


def stop() -> None:
    """Stays at the present ε."""
    st.session_state[_LEFT], st.session_state[_SHOWN] = (), None


def controls() -> None:
    """Play and Present; while presenting, keys for ε and for the scenes."""
    presents, scene = PRESENT.value(), int(SCENE.value() or 1)
    with st.container(horizontal=True, key="buttons-play"):
        if plays():
            st.button("❚❚ Stop", on_click=stop, key="stop")
        else:
            st.button(
                "▶ Play ε",
                on_click=st.session_state.update,
                args=({_LEFT: MARKS, _SHOWN: None},),
                key="play",
                help="Moves ε from strong to weak.",
            )
        if presents:
            st.button("Stronger", on_click=_move, args=(-1,), key="stronger", shortcut="Left")
            st.button("Weaker", on_click=_move, args=(1,), key="weaker", shortcut="Right")
            st.button("Back", on_click=SCENE.keep, args=(str(max(scene - 1, 1)),), key="scene-back", shortcut="Up")
            last = str(len(SCENES) - 1)
            st.button("Next", on_click=SCENE.keep, args=(min(str(scene + 1), last),), key="scene-next", shortcut="Down")
        st.button("End presenting" if presents else "Present", on_click=PRESENT.keep, args=(not presents,), key="present-switch")


def _move(by: int) -> None:
    """The next mark of the slider to one side."""
    now = st.session_state["epsilon"]
    beyond = [e for e in sidebar.EPSILONS if (e - now) * by > 0]
    if beyond:
        st.session_state["epsilon"] = beyond[0] if by > 0 else beyond[-1]
