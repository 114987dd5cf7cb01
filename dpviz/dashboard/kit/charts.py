"""Charts with their content in words, and how each method is drawn, the same on every page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.dashboard.kit import folds, glossary, recorder, tables, words
from dpviz.figures.style import Look, Theme, look
from dpviz.mechanisms import list_mechanisms
from dpviz.reporting import Chart

#: the two lines that stand beside every result, also when they are the result: colour of the theme, and dash
_BASELINES = {"non-private": ("ink", "solid"), "majority": ("majority", "dash")}


#: whether the reader's window is narrow, as the page's frame was told
NARROW = "dpviz.narrow"


def narrow() -> bool:
    """Whether the window is too narrow for names beside lines (below 640 pixels)."""
    return bool(st.session_state.get(NARROW, False))


def method_look(mechanism: str, theme: Theme) -> Look:
    """How a mechanism is drawn, the same on every page."""
    cls = list_mechanisms()[mechanism]
    if mechanism in _BASELINES:
        part, dash = _BASELINES[mechanism]
        return Look(cls.label, getattr(theme, part), dash, "circle")
    family = [name for name, other in list_mechanisms().items() if other.family == cls.family]
    return look(theme, cls.label, cls.family, family.index(mechanism))


def chart(
    figure: Any,
    key: str,
    summary: str,
    data: Callable[[], pd.DataFrame] | None = None,
    *,
    on_select: Callable[[], None] | None = None,
    clicks: bool | Callable[[list[str]], None] = False,
    rows: bool = False,
) -> list[str]:
    """A picture with its content in words (also its alternative text) and its data as CSV.

    Args:
        key: unique on the page, and the name of saved files.
        summary: what a reader sees in the picture, with numbers.
        data: makes the table behind the picture when it is asked for.
        on_select: called after a click, box or lasso, with the event in `st.session_state[key]`.
        clicks: whether points can be clicked, or what is called before the page is drawn again after a click; the figure
            needs dragmode "pan" or "zoom".
        rows: whether single real rows can be read off it; reports leave it out unless they are asked for.

    Returns:
        The customdata of the points that are clicked now, as text.
    """
    recorder.keep(key, Chart(figure, summary, data), rows=rows)
    if folds.closed():
        return []
    unwanted = ["autoScale2d"] if on_select else ["select2d", "lasso2d", "autoScale2d"]
    config = {
        "displaylogo": False,
        "modeBarButtonsToRemove": unwanted,
        "scrollZoom": False,
        "toImageButtonOptions": {"filename": f"dpviz-{key}", "scale": 2},
    }
    points: list[dict[str, Any]] = []
    if clicks:
        call: Any = "rerun" if clicks is True else lambda: _tell(key, clicks)
        state = st.plotly_chart(figure, key=key, theme=None, config=config, alt=summary, on_select=call, selection_mode="points")
        points = list(state.selection.points)
    else:
        st.plotly_chart(figure, key=key, theme=None, config=config, alt=summary, on_select=on_select or "ignore")
    st.caption(words.markdown(summary), help=glossary.explain(summary))
    if data is not None:
        tables.download(data, key)
    return _customdata(points)


def _customdata(points: Sequence[Any]) -> list[str]:
    data = [p.get("customdata") for p in points]
    return [str(c[0] if isinstance(c, list) else c) for c in data if c]


def _tell(key: str, call: Any) -> None:
    data = _customdata(st.session_state[key].selection.points)
    if data:
        call(data)
