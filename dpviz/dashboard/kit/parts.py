"""Parts that look the same on every page: badges, panels, charts with words, downloads, "how is this computed"."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.kit import words
from dpviz.dashboard.shell import address, links, sidebar
from dpviz.dashboard.work import cached_runs
from dpviz.experiments.spec import RunSpec
from dpviz.figures.style import THEMES, Look, Theme, look
from dpviz.mechanisms import Calibration, list_mechanisms
from dpviz.papers.claims import concerning

T = TypeVar("T")

SHOW_PROGRESS, OFFER_CANCEL = 0.8, 4.0  # seconds of work
TOP = 0.08  # seconds that a browser needs to draw a sentence and two pictures
ABOUT = "About this guarantee"
_CANCELLED = "dpviz.cancelled"
#: the two lines that stand beside every result, also when they are the result: colour of the theme, and dash
_BASELINES = {"non-private": ("ink", "solid"), "majority": ("majority", "dash")}

_CSS = """<style>
.stMainBlockContainer {padding-top: 4rem; padding-bottom: 3rem; max-width: 1400px}
.stMainBlockContainer h1 {font-size: 1.15rem; font-weight: 600; padding: 0; opacity: .75}
.stMainBlockContainer h2 {font-size: 1.45rem; padding: 1.2rem 0 .2rem}
.stMainBlockContainer h3 {font-size: 1.2rem; padding: .8rem 0 .1rem}
.st-key-headline p {font-size: 1.55rem; line-height: 1.35; font-weight: 500}
[class*="st-key-working-"] {position: fixed; right: 1rem; bottom: 1rem; z-index: 1000; width: min(22rem, 90vw)}
.dpviz-scale {position: relative; height: 2.6em; margin: -.9em .6em 0; font-size: .85em; line-height: 1.25}
.dpviz-scale span {position: absolute; transform: translateX(-50%); text-align: center}
.stMainBlockContainer table {font-size: 1rem}
@media (max-width: 640px) {.stMainBlockContainer h3 {font-size: 1.2rem; padding: .8rem 0 .1rem}
.st-key-headline p {font-size: 1.25rem}}
</style>"""


def page(title: str) -> Theme:
    """Page settings, the look of the page and its heading; the first call of every page. Returns the reader's theme."""
    cached_runs.attend()
    st.set_page_config(page_title=f"dpviz: {title}", page_icon=None, layout="wide")
    st.html(_CSS)
    st.title(title, anchor=False)
    return THEMES["dark" if st.context.theme.type == "dark" else "light"]


def top_first() -> None:
    """Lets the browser draw what is above before it hears of what is below; call once, below what people look at.

    A browser that gets a whole page at once draws all of it before it shows any.
    """
    time.sleep(TOP)


def method_look(mechanism: str, theme: Theme) -> Look:
    """How a mechanism is drawn, the same on every page."""
    cls = list_mechanisms()[mechanism]
    if mechanism in _BASELINES:
        part, dash = _BASELINES[mechanism]
        return Look(cls.label, getattr(theme, part), dash, "circle")
    family = [name for name, other in list_mechanisms().items() if other.family == cls.family]
    return look(theme, cls.label, cls.family, family.index(mechanism))


def problems() -> None:
    """What was wrong with the address or the last thing typed: field, cause, fix."""
    for problem in address.problems():
        field, cause, fix = (words.markdown(str(part)) for part in (problem.field, problem.cause, problem.fix))
        st.warning(f"**{field}**: {cause}. {fix} The page goes on without it.", icon="⚠️")


def run(spec: RunSpec) -> cached_runs.Outcome | None:
    """The outcome of a run; None where there is none, said so."""
    done = working(spec, cached_runs.outcome)
    if done is not None:
        cached_runs.prepare(spec, sidebar.EPSILONS)
    return done


def working(spec: RunSpec, compute: Callable[[RunSpec, Monitor], T], name: str = "run") -> T | None:
    """What `compute` makes of a run, with progress and a way to cancel where it takes long; None where there is none.

    Args:
        name: unique among the computations of a page.
    """
    key = f"{name}|{spec.key()}"
    if st.session_state.get(_CANCELLED) == key:
        with st.container(border=True):
            st.markdown("**Cancelled.** Nothing was kept of this run. Choose another setting, or start it again.")
            st.button("Start again", on_click=lambda: st.session_state.pop(_CANCELLED), key=f"again-{name}")
        return None
    with st.container(key=f"working-{name}"):
        slot = st.empty()
    try:
        done = compute(spec, _Progress(slot, key))
    except InvalidInput as problem:
        failed(f"{problem.field}: {problem.cause}", str(problem.fix))
        return None
    except MemoryError:
        failed("this run needs more memory than there is", "Use fewer noise draws or a smaller dataset.")
        return None
    except Exception as error:
        logging.getLogger(__name__).exception("run failed: %s", spec.key())
        failed(str(error) or type(error).__name__, "Change a setting on the left; the others still work.")
        return None
    slot.empty()
    return done


class _Progress:
    """A monitor that shows progress after a moment; talking to Streamlit lets it stop work that is not wanted."""

    def __init__(self, slot: Any, key: str) -> None:
        self._slot, self._key = slot, key
        self._start = self._last = time.monotonic()
        self._bar: Any = None
        self._cancel = False

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        if now - self._start < SHOW_PROGRESS or now - self._last < 0.2:
            return
        self._last = now
        if self._bar is None:
            with self._slot.container(border=True):
                self._bar, self._button = st.empty(), st.empty()
        left = (now - self._start) * (1 - done) / max(done, 1e-3)
        self._bar.progress(min(max(done, 0.0), 1.0), f"Training: {done:.0%}, about {left:.0f} s left")
        if now - self._start > OFFER_CANCEL and not self._cancel:
            self._cancel = True
            self._button.button("Cancel", on_click=_cancel, args=(self._key,), key=f"cancel-{self._key}")


def _cancel(key: str) -> None:
    st.session_state[_CANCELLED] = key


def failed(cause: str, fix: str) -> None:
    """The panel in place of a picture that could not be made."""
    st.error(f"**This could not be computed**: {words.markdown(cause)}. {words.markdown(fix)}", icon="⛔")


def empty(text: str) -> None:
    """The panel in place of a picture that has nothing to show."""
    st.info(text, icon="ℹ️")


def guarantee(cal: Calibration, mechanism: str = "") -> None:
    """The label that goes with every epsilon: how far it is proved, under which relation, by which accountant.

    Below it, links to the audit and to the papers' claims about the mechanism (the sidebar's where none is given).
    """
    st.badge(words.markdown(words.guarantee(cal)), color=words.LABELS[cal.status][2])  # type: ignore[arg-type]
    lines = [f"{words.RELATIONS[cal.neighbouring]}. Accountant: {cal.accountant}"]
    if cal.claimed is not None and cal.claimed != cal.proved:
        proved = f"{words.budget(cal.proved)} is proved" if cal.proved else "nothing is proved"
        lines.append(f"The paper claims {words.budget(cal.claimed)}; {proved}")
    st.caption(words.markdown(". ".join(lines)) + ".")
    for condition in cal.conditions:
        st.markdown(f"- only if {words.markdown(condition)}")
    if cal.notes:
        with st.expander(ABOUT):
            for note in cal.notes:
                st.markdown(f"- {words.markdown(note)}")
    examine(mechanism or st.session_state["mechanism"])


def examine(mechanism: str, name: str = "") -> None:
    """Links from an epsilon to the audit of its mechanism and to the papers' claims about it.

    Args:
        mechanism: id.
        name: what it is called, where several stand side by side.
    """
    with st.container(horizontal=True):
        links.to("Audit", f"Attack {name or 'it'}", mechanism=mechanism)
        claims_about(mechanism)


def claims_about(mechanism: str) -> None:
    """A link to the claims of papers that speak about a mechanism; nothing where there is none."""
    count = len(concerning(mechanism))
    if count:
        text = f"{count} claim{'s' if count > 1 else ''} of papers about it, tested"
        links.to("Paper claims", text, about="mechanism", mechanism=mechanism)


def not_private(what: str) -> None:
    """The badge of views that show real rows or numbers computed from them without noise."""
    st.badge("⚠ not private: reveals data", color="orange")
    st.caption(what)


def chart(
    figure: Any,
    key: str,
    summary: str,
    data: Callable[[], pd.DataFrame] | None = None,
    *,
    on_select: Callable[[], None] | None = None,
    clicks: bool | Callable[[list[str]], None] = False,
) -> list[str]:
    """A picture with its content in words (also its alternative text) and its data as CSV.

    Args:
        key: unique on the page, and the name of saved files.
        summary: what a reader sees in the picture, with numbers.
        data: makes the table behind the picture when it is asked for.
        on_select: called after a click, box or lasso, with the event in `st.session_state[key]`.
        clicks: whether points can be clicked, or what is called before the page is drawn again after a click; the figure
            needs dragmode "pan" or "zoom".

    Returns:
        The customdata of the points that are clicked now, as text.
    """
    unwanted = ["autoScale2d"] if on_select else ["select2d", "lasso2d", "autoScale2d"]
    config = {
        "displaylogo": False,
        "modeBarButtonsToRemove": unwanted,
        "scrollZoom": False,
        "toImageButtonOptions": {"filename": f"dpviz-{key}", "scale": 2},
    } | ({"displayModeBar": True} if on_select else {})
    points: list[dict[str, Any]] = []
    if clicks:
        call: Any = "rerun" if clicks is True else lambda: _tell(key, clicks)
        state = st.plotly_chart(figure, key=key, theme=None, config=config, alt=summary, on_select=call, selection_mode="points")
        points = list(state.selection.points)
    else:
        st.plotly_chart(figure, key=key, theme=None, config=config, alt=summary, on_select=on_select or "ignore")
    st.caption(words.markdown(summary))
    if data is not None:
        download(data, key)
    return _customdata(points)


def _customdata(points: Sequence[Any]) -> list[str]:
    found = [p.get("customdata") for p in points]
    return [str(c[0] if isinstance(c, list) else c) for c in found if c]


def _tell(key: str, call: Any) -> None:
    found = _customdata(st.session_state[key].selection.points)
    if found:
        call(found)


def download(data: Callable[[], pd.DataFrame], key: str, label: str = "Save the data (CSV)") -> None:
    """A button that saves a table as CSV; the table is made when it is pressed."""
    st.download_button(
        label,
        lambda: csv(data()),
        file_name=f"dpviz-{key}.csv",
        mime="text/csv",
        key=f"{key}-csv",
        type="tertiary",
        on_click="ignore",
    )


def csv(table: pd.DataFrame) -> bytes:
    """A table as CSV in which no cell can act as a spreadsheet formula: such text gets a leading apostrophe."""
    out = io.StringIO()
    harmless(table).to_csv(out, index=False)
    return out.getvalue().encode("utf-8-sig")


def harmless(table: pd.DataFrame) -> pd.DataFrame:
    """The same table with an apostrophe before every text that a spreadsheet would take for a formula."""
    safe = table.copy()
    safe.columns = [_neutral(str(c)) for c in safe.columns]
    for k in range(safe.shape[1]):
        column = safe.iloc[:, k]
        if not pd.api.types.is_numeric_dtype(column):
            safe.isetitem(k, [_neutral(v) if isinstance(v, str) else v for v in column])
    return safe


def _neutral(text: str) -> str:
    return "'" + text if text.lstrip(" ")[:1] in ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%") else text


def table(rows: Iterable[Sequence[object]], columns: Sequence[str]) -> None:
    """A small table as plain HTML, readable by a screen reader; text is shown as it is."""
    frame = pd.DataFrame([[words.markdown(str(v)) for v in row] for row in rows], columns=list(columns))
    st.table(frame.set_index(columns[0]))


def computed(spec: RunSpec, formulas: Sequence[str] = (), sources: Sequence[str] = ()) -> None:
    """ "How is this computed", folded away: formula, source and the calls that repeat the numbers."""
    with st.expander("How is this computed?"):
        for formula in formulas:
            st.latex(formula)
        for source in sources:
            st.markdown(words.markdown(source))
        st.markdown("The same numbers from Python:")
        st.code(words.python_call(spec), language="python", wrap_lines=True)
        st.markdown("From a shell:")
        st.code(words.shell_call(spec), language="bash", wrap_lines=True)
        st.markdown("This page's address holds the whole run; a copy of it brings anyone here:")
        query = "&".join(f"{k}={v}" for k, v in spec.to_query().items())
        st.code(f"?{query}" if query else "/", language=None, wrap_lines=True)
