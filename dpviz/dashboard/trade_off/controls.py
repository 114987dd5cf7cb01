"""The trade-off page's own controls; what they say goes into the address as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from dpviz.dashboard.trade_off import settings
from dpviz.dashboard.trade_off.curves import BANDS, TITLES
from dpviz.dashboard.trade_off.settings import Choices
from dpviz.experiments.spec import RunSpec
from dpviz.mechanisms import list_mechanisms

_ENDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def draw(spec: RunSpec, chosen: Choices) -> None:
    """Methods, wanted accuracy, range of epsilon, and what is drawn."""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        able = settings.offered(spec.model)
        _put("page.methods", list(chosen.methods))
        st.multiselect(
            "Methods",
            able,
            key="page.methods",
            format_func=_label,
            on_change=_typed("methods", settings.text_of),
            help="Grouped by where the noise goes. Add as many as you like; what was computed before is not computed again.",
        )
    with right:
        _put("page.want", None if chosen.want is None else round(100 * chosen.want, 2))
        st.number_input(
            "Accuracy wanted, %",
            0.0,
            100.0,
            step=0.5,
            key="page.want",
            placeholder="chosen for you",
            on_change=_typed("want", lambda v: "" if v is None else f"{v:g}"),
            format="%.1f",
            help="The curve is read backwards: how much ε does each method need for it?",
        )
    with st.expander("Range of ε, bands and axes"):
        one, two, three = st.columns(3)
        with one:
            _end("ε from", "from", [e for e in _ENDS if e < chosen.high], chosen.low)
            _end("ε to", "to", [e for e in _ENDS if e > chosen.low], chosen.high)
            _put("page.points", chosen.points)
            st.number_input(
                "Budgets",
                1,
                settings.MOST_POINTS,
                key="page.points",
                on_change=_typed("points", str),
                help="Equal ratios between neighbours.",
            )
        with two:
            _choice("Shown", "shown", list(TITLES), TITLES.get, chosen.show)
            _choice("Bands", "band", list(BANDS), BANDS.get, chosen.band)
        with three:
            _put("page.odds", chosen.odds)
            st.toggle(
                "Attack odds",
                key="page.odds",
                on_change=_typed("odds", lambda v: "true" if v else ""),
                help="A second axis on top: how many bets on one person an attacker wins at most.",
            )
            st.caption(f"{spec.seeds} noise draws; more of them under “Advanced” on the left.")


def _label(name: str) -> str:
    cls = list_mechanisms()[name]
    return f"{cls.family} · {cls.label}"


def _choice(label: str, key: str, options: Sequence[str], name: Callable[[str], str | None], value: str) -> None:
    _put(f"page.{key}", value)
    st.selectbox(label, options, key=f"page.{key}", format_func=lambda o: str(name(o)), on_change=_typed(key, str))


def _end(label: str, key: str, options: Sequence[float], value: float) -> None:
    _put(f"page.{key}", value)
    st.selectbox(
        label,
        sorted({*options, value}),
        key=f"page.{key}",
        format_func=lambda e: f"{e:g}",
        on_change=_typed(key, lambda e: f"{e:g}"),
    )


def _put(key: str, value: Any) -> None:
    """The address says what the control shows."""
    st.session_state[key] = value


def _typed(key: str, text: Callable[[Any], str]) -> Callable[[], None]:
    """A callback that puts what a control says into the address."""

    def changed() -> None:
        settings.keep(**{key: text(st.session_state[f"page.{key}"])})

    return changed
