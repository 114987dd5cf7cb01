"""Charts with their content in words, and how each method is drawn, the same on every page."""

import json
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.common.memory import Cache
from dpviz.common.progress import Monitor
from dpviz.dashboard.components import folds, glossary, recorder, tables
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures import read_out
from dpviz.figures.svg import picture
from dpviz.reporting import Chart, python_call, words

#: widths of a picture as SVG in pixels, in a wide and in a narrow window; the browser stretches or shrinks it to its column
_SIZES, _WIDE = (440, 330), (860, 360)
#: DOMPurify drops scripts that hold tags, so these are escaped
_FRAME = """<div class="dpviz-picture dpviz-{key}"></div><script>
document.currentScript.previousElementSibling.innerHTML = {drawn};</script>"""
#: the button that saves a picture that is drawn as SVG
_SAVE = """<button class="dpviz-save">Save the picture (PNG)</button><script>
document.currentScript.previousElementSibling.onclick = () => {{
  const drawn = document.querySelector(".dpviz-{key} svg"), copy = drawn.cloneNode(true), image = new Image();
  const [, , wide, high] = drawn.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", 2 * wide);
  copy.setAttribute("height", 2 * high);
  image.onload = () => {{
    const canvas = document.createElement("canvas"), link = document.createElement("a");
    [canvas.width, canvas.height] = [2 * wide, 2 * high];
    canvas.getContext("2d").drawImage(image, 0, 0);
    link.href = canvas.toDataURL("image/png");
    link.download = "dpviz-{key}.png";
    link.click();
  }};
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(copy.outerHTML);
}};</script>"""

still_pictures: Cache[tuple[str, str, bool]] = Cache("still pictures", 32 << 20, lambda made: len(made[0]) + len(made[1]))

#: whether the reader's window is narrow, as the page's frame reports it
NARROW = "dpviz.narrow"


def is_narrow() -> bool:
    """True where the window is too narrow for names beside lines (below 640 pixels)."""
    return bool(st.session_state.get(NARROW, False))


def chart(
    figure: Any,
    key: str,
    summary: str,
    data: Callable[[], pd.DataFrame] | None = None,
    *,
    on_select: Callable[[], None] | None = None,
    clicks: bool | Callable[[list[str]], None] = False,
    rows: bool = False,
    of: RunSpec | None = None,
) -> list[str]:
    """A picture with one menu: its content in words (also its alternative text), its data as CSV, PNG, the call in Python.

    Args:
        key: unique on the page, and the name of saved files.
        summary: what a reader sees in the picture, with numbers.
        data: makes the table behind the picture when it is asked for.
        on_select: called after a click, box or lasso, with the event in `st.session_state[key]`.
        clicks: whether points can be clicked, or what is called before the page is drawn again after a click; the figure
            needs dragmode "pan" or "zoom".
        rows: whether single real rows can be read off it; reports leave it out unless they are asked for.
        of: the run that is drawn; None for pictures of many.

    Returns:
        The customdata of the points that are clicked now, as text.
    """
    recorder.keep(key, Chart(figure, summary, data), rows=rows, of=of)
    if folds.in_closed_fold():
        return []
    with st.container(key=f"picture-{key}"):
        points = _live(figure, key, summary, on_select, clicks)
        _menu(key, summary, data, of)
    return _customdata(points)


def still_chart(
    key: str, make: Callable[[bool], Chart], run: str, *given: Hashable, of: RunSpec, rows: bool = False, wide: bool = False
) -> None:
    """A picture as SVG, which is there in half of plotly's time: for what a slider moves (benchmarks/README.md).

    It is made once, and shown to all who look at the same.

    Args:
        key, of, rows: as of `chart`.
        make: whether the window is narrow -> the picture and its words, of the run and of what is `given`, in the reader's theme.
        run: the run's key (`ResolvedRun.key`).
        given: what else decides the picture.
        wide: whether it takes the whole width of a page.
    """
    narrow = is_narrow()
    chart_here = partial(make, narrow)  # a report is written later, where there is no window
    recorder.keep(key, chart_here, rows=rows, of=of)
    width = (_WIDE if wide else _SIZES)[narrow]

    def draw(_: Monitor) -> tuple[str, str, bool]:
        made = chart_here()
        # Streamlit lets no SVG pass as HTML, but a script can set it
        escaped = json.dumps(picture(made.figure, key, made.words, width)).replace("<", "\\u003c")
        html = _FRAME.format(key=key, drawn=escaped) + read_out.table(made.figure, made.words)
        return html, made.words, made.table is not None

    decided = run, key, given, width, st.context.theme.type
    html, summary, tabled = still_pictures.compute(decided, draw, owner=of.dataset)
    with st.container(key=f"picture-{key}"):
        st.html(html, unsafe_allow_javascript=True)
        _menu(key, summary, (lambda: chart_here().data) if tabled else None, of, save=_SAVE.format(key=key))


def _menu(key: str, summary: str, data: Any, of: RunSpec | None, save: str = "") -> None:
    """The menu of a picture: its content in words, its table, its PNG and its call."""
    with st.popover("", icon=":material/more_horiz:", key=f"menu-{key}", help="About this picture", type="tertiary"):
        st.caption(words.markdown(summary), help=glossary.explain(summary))
        if data is not None:
            tables.download(data, key)
        if save:
            st.html(save, unsafe_allow_javascript=True)
        if of is not None:
            st.code(python_call(of), language="python", wrap_lines=True)


def deferred_chart(key: str, make: Callable[[], Chart], of: RunSpec | None) -> None:
    """A chart that is made only when a report is written where it lies in a closed fold.

    Args:
        key: unique on the page, and the name of saved files.
        of: the run that is drawn; None for pictures of many.
    """
    if folds.in_closed_fold():
        recorder.keep(key, make, of=of)
    else:
        made = make()
        chart(made.figure, key, made.words, made.table if callable(made.table) else None, of=of)


def _live(figure: Any, key: str, summary: str, on_select: Any, clicks: Any) -> list[dict[str, Any]]:
    """The picture drawn by plotly; the points that are clicked now."""
    st.html(read_out.table(figure, summary))
    unwanted = ["autoScale2d"] if on_select else ["select2d", "lasso2d", "autoScale2d"]
    config = {
        "displaylogo": False,
        "modeBarButtonsToRemove": unwanted,
        "scrollZoom": False,
        "toImageButtonOptions": {"filename": f"dpviz-{key}", "scale": 2},
    }
    if clicks:
        call: Any = "rerun" if clicks is True else lambda: _tell(key, clicks)
        state = st.plotly_chart(figure, key=key, theme=None, config=config, alt=summary, on_select=call, selection_mode="points")
        return list(state.selection.points)
    st.plotly_chart(figure, key=key, theme=None, config=config, alt=summary, on_select=on_select or "ignore")
    return []


def _customdata(points: Sequence[Any]) -> list[str]:
    data = [p.get("customdata") for p in points]
    return [str(c[0] if isinstance(c, list) else c) for c in data if c]


def _tell(key: str, call: Any) -> None:
    data = _customdata(st.session_state[key].selection.points)
    if data:
        call(data)
