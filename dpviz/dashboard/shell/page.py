"""The frame of every page: settings, look, heading, and what was wrong with the address."""

import time

import streamlit as st

from dpviz.common.limits import demo
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.kit import charts, panels, recorder, words
from dpviz.dashboard.shell import address, links, pinned, private, session
from dpviz.dashboard.work import front
from dpviz.experiments.run import links as versions
from dpviz.experiments.run.settings import SETTINGS
from dpviz.figures.style import THEMES, Theme
from dpviz.mechanisms import list_mechanisms

TOP = 0.08  # seconds that a browser needs to draw a sentence and two pictures

_CSS = """<style>
.stMainBlockContainer {padding: 3.9rem 2rem 3rem; max-width: 1400px}
.stMainBlockContainer h1 {font-size: 1.15rem; font-weight: 600; padding: .3rem 0; opacity: .75}
.stMainBlockContainer h2 {font-size: 1.45rem; padding: 1.2rem 0 .2rem}
.stMainBlockContainer h3 {font-size: 1.2rem; padding: .8rem 0 .1rem}
.st-key-headline {margin-top: .35rem}
.st-key-headline p {font-size: 1.55rem; line-height: 1.35; font-weight: 500; text-wrap: balance}
[class*="st-key-working-"] {position: fixed; right: 1rem; bottom: 1rem; z-index: 1000; width: min(22rem, 90vw);
background: PAPER; border-radius: .5rem}
.dpviz-scale {position: relative; height: 2.6em; margin: -.9em .6em 0; font-size: .85em; line-height: 1.25}
.dpviz-scale span {position: absolute; transform: translateX(-50%); text-align: center}
.st-key-budget [data-testid="stSliderThumbValue"] {font-size: 1.3rem; font-weight: 600}
.st-key-buttons-start {margin: .7rem 0 .35rem}
[class*="st-key-buttons-"] a {border: 1px solid INK; border-radius: .5rem; padding: .15rem .8rem}
.stMainBlockContainer table {font-size: 1rem}
.stMainBlockContainer td, .stMainBlockContainer th {overflow-wrap: break-word}
.stMainBlockContainer button p {white-space: normal}
.stApp :focus-visible:not(input) {outline: 2px solid INK; outline-offset: 1px} .stMain:focus-visible {outline-offset: -3px}
[data-testid="stSliderTickBar"] {display: none}
[data-testid="stSkeleton"] {min-height: 4.25rem} .st-key-pages [data-testid="stSkeleton"] {min-height: 0; height: 2rem}
.stApp .stMultiSelect [data-tag] {background: transparent; color: INK; border: 1px solid currentColor; max-width: 100%;
height: auto} .stApp .stMultiSelect [data-tag] * {color: INK; fill: currentColor}
.stApp .stMultiSelect [data-tag] span {max-width: none; white-space: normal}
.stApp [data-testid^="stBaseButton-primary"], .stApp [data-testid^="stBaseButton-primary"] p {color: PAPER}
.stApp .stCode span {color: INK !important}
.dpviz-read {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap}
.stElementContainer:has(.dpviz-read:first-child) {position: absolute; width: 1px !important; height: 1px; overflow: hidden}
.dpviz-picture {position: relative} .dpviz-picture svg {display: block; width: 100%; height: auto; max-height: 34rem}
.dpviz-picture button {position: absolute; top: 0; right: 0; padding: 0 .45rem; border: 0; border-radius: .3rem; opacity: 0;
background: PAPER; color: INK; font-size: 1.1rem; cursor: pointer}
.dpviz-picture:hover button, .dpviz-picture button:focus-visible {opacity: 1}
@media (hover: none) {.dpviz-picture button {opacity: 1}}
.st-key-draw-again, .st-key-window-narrow, .st-key-window-wide, .st-key-unseen {display: none}
@media print {[data-testid="stSidebar"], [data-testid="stHeader"], .stDownloadButton, .stPageLink, .stButton,
.modebar, .dpviz-picture button, .dpviz-read {display: none !important}
@page {size: A4; margin: 12mm}
.stMainBlockContainer {padding: 0 24px; max-width: none; zoom: .6} .stHorizontalBlock {display: flex !important;
flex-wrap: nowrap !important}
.stColumn {min-width: 0 !important} .stExpander:has(details:not([open])) {display: none}
.stPlotlyChart, .dpviz-picture, [data-testid="stImage"], tr, [class*="st-key-sheet-"] {break-inside: avoid}
.stApp, .stMain, [data-testid="stAppViewContainer"] {position: static !important; overflow: visible !important;
height: auto !important}}
@media (max-width: 1100px) {.st-key-headline p {font-size: 1.35rem}}
@media (max-width: 1180px) {.stApp:has([data-testid="stSidebar"][data-collapsed="false"]) .st-key-map-and-card
> [data-testid="stLayoutWrapper"] > .stHorizontalBlock {flex-wrap: wrap; gap: .5rem}
.stApp:has([data-testid="stSidebar"][data-collapsed="false"]) .st-key-map-and-card > [data-testid="stLayoutWrapper"]
> .stHorizontalBlock > .stColumn {flex: 1 1 100%; min-width: 100%}}
@media (max-height: 820px) {.stMainBlockContainer {padding-top: 2.2rem} .stMainBlockContainer .stVerticalBlock {gap: .6rem}
[data-testid="stHeader"] {background: transparent}
.stMainBlockContainer h2 {padding: .4rem 0 .4rem} .dpviz-scale {height: 2.4em}}
@media (max-width: 640px) {.stMainBlockContainer h3 {font-size: 1.2rem; padding: .8rem 0 .1rem}
.st-key-headline p {font-size: 1.25rem}
.stTable table:has(thead th:nth-child(5)) {width: max-content}
.stTable table:has(thead th:nth-child(5)) :is(td, th) {max-width: 9.5rem}}
</style>"""

#: draws the page again when the reader's theme changes, for Streamlit recolours its own parts only and not the figures;
#: when the window becomes narrower or wider than 640 pixels, for figures put names where there is room; and when a cut
#: connection is back, for the server may not have heard of the last move of a control, or its answer was lost
_FOLLOW = """<script>
(() => {
  const paper = () => getComputedStyle(document.querySelector(".stApp")).backgroundColor;
  let last = paper();
  clearInterval(window.dpvizTheme);
  window.dpvizTheme = setInterval(() => {
    const now = paper(), button = document.querySelector(".st-key-draw-again button");
    if (now !== last && button) { last = now; button.click(); }
    const links = [...document.querySelectorAll(".st-key-pages a")];  // one tab stop; arrow keys move between them
    const here = links.find((a) => new URL(a.href).pathname === location.pathname) ?? links[0];
    links.forEach((a) => { a.tabIndex = a === here ? 0 : -1; });
    document.querySelector(".stMain")?.setAttribute("tabindex", "-1");
    for (const table of document.querySelectorAll(".stTable table"))  // what scrolls sideways can be scrolled by keys
      if (table.offsetWidth > table.parentElement.clientWidth) table.parentElement.tabIndex = 0;
      else table.parentElement.removeAttribute("tabindex");
    const other = innerWidth < 640 ? "narrow" : "wide";  // only the button that would change something is there
    document.querySelector(`.st-key-window-${other} button`)?.click();
  }, 500);
  document.onkeydown = (event) => {
    const links = [...document.querySelectorAll(".st-key-pages a")], at = links.indexOf(document.activeElement);
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (at < 0 || !step) return;
    event.preventDefault();
    links[(at + step + links.length) % links.length].focus();
  };
  const app = document.querySelector("[data-testid=stApp]");
  const again = () => {
    const button = document.querySelector(".st-key-draw-again button");
    if (button) return button.click();
    // the page is empty where its parts were lost on the way and only its end came; Streamlit's own key runs it again
    if (app.dataset.testScriptState === "notRunning")
      document.dispatchEvent(new KeyboardEvent("keydown", {key: "r", code: "KeyR", keyCode: 82, bubbles: true}));
    window.dpvizAgain = setTimeout(again, 200);
  };
  window.dpvizLine?.disconnect();
  window.dpvizLine = new MutationObserver(() => {
    const cut = app.dataset.testConnectionState.toLowerCase() !== "connected";
    clearTimeout(window.dpvizAgain);
    if (window.dpvizCut && !cut) window.dpvizAgain = setTimeout(again, 100);
    window.dpvizCut = cut;
  });
  window.dpvizLine.observe(app, {attributes: true, attributeFilter: ["data-test-connection-state"]});
})();
</script>"""


def start(title: str, heading: str = "") -> Theme:
    """Page settings, the look of the page and its heading; the first call of every page. Returns the reader's theme.

    Args:
        title: of the browser's tab, and of the page where no heading is given.
    """
    front.drawing_a_page()
    session.watch()
    private.on_error(_stopped)
    st.set_page_config(page_title=f"dpviz: {title}", page_icon=None, layout="wide")
    theme = THEMES["dark" if st.context.theme.type == "dark" else "light"]
    st.html(_CSS.replace("INK", theme.ink).replace("PAPER", theme.paper))
    st.html(_FOLLOW, unsafe_allow_javascript=True)
    st.button("Draw again", key=address.AGAIN)
    narrow = charts.narrow()
    st.button("Draw again for this window", key=f"window-{'wide' if narrow else 'narrow'}", on_click=_width, args=(not narrow,))
    recorder.begin(heading or title)
    if demo():
        st.info("Demonstration: no uploads, no downloads, small limits. Enter nothing private.")
    st.title(heading or title, anchor=False)
    if st.query_params.get(panels.TASK):
        _lesson(st.query_params[panels.TASK])
    return theme


def _lesson(name: str) -> None:
    """The question of the lesson that the page was opened for, and the way back to answer it."""
    from dpviz.dashboard.kit.lessons import BY_ID  # with its answers, which no other page needs

    if name in BY_ID:
        with st.container(border=True, key="buttons-task"):
            st.markdown(f"**{words.markdown(BY_ID[name].title)}.** {words.markdown(BY_ID[name].question)}")
            links.to("Lessons", "Answer it", lesson=name)


def _stopped(error: Exception) -> bool:
    """Says in words what ended a page in the middle, as a file does that was changed meanwhile; whether it did."""
    if not isinstance(error, InvalidInput):
        return False
    _warn(error, "The rest of this page is missing.")
    return True


def _width(narrow: bool) -> None:
    """Keeps whether the window is narrow."""
    st.session_state[charts.NARROW] = narrow


def top_first() -> None:
    """Lets the browser draw what is above before it hears of what is below; call once, below what people look at.

    A browser that gets a whole page at once draws all of it before it shows any.
    """
    time.sleep(TOP)


def problems() -> None:
    """Shows problems of the address or of the last thing typed: field, cause, fix."""
    for problem in address.problems():
        _warn(problem, "The page goes on without it.")
    older = address.meant_before()
    if older:
        own = {f"{name}.{key}": knob for name, cls in list_mechanisms().items() for key, knob in cls.knobs().items()}
        labels = SETTINGS | own
        meant = ", ".join(f"{labels[key].label if key in labels else key} {value}" for key, value in older.items())
        with st.container(border=True, key="buttons-older"):
            said = f"This link names no version. Until {versions.UNTIL} it meant: {meant}. Defaults are others now."
            st.markdown(words.markdown(said))
            st.button("Open it as it was meant then", on_click=_as_before)


def _as_before() -> None:
    """Opens the link by the older defaults, run A too."""
    pinned.as_before()
    address.as_before()


def _warn(problem: InvalidInput, then: str) -> None:
    """Field, cause and fix, and what becomes of the page."""
    field, cause, fix = (words.markdown(str(part)) for part in (problem.field, problem.cause, problem.fix))
    st.warning(f"**{field}**: {cause}. {fix} {then}", icon="⚠️")
