"""The frame of every page: settings, look, heading, and what was wrong with the address."""

from __future__ import annotations

import time

import streamlit as st

from dpviz.dashboard.kit import words
from dpviz.dashboard.shell import address, server, session
from dpviz.dashboard.work import front
from dpviz.figures.style import THEMES, Theme

TOP = 0.08  # seconds that a browser needs to draw a sentence and two pictures

_CSS = """<style>
.stMainBlockContainer {padding: 3.9rem 2rem 3rem; max-width: 1400px}
.stMainBlockContainer h1 {font-size: 1.15rem; font-weight: 600; padding: .3rem 0; opacity: .75}
.stMainBlockContainer h2 {font-size: 1.45rem; padding: 1.2rem 0 .2rem}
.stMainBlockContainer h3 {font-size: 1.2rem; padding: .8rem 0 .1rem}
.st-key-headline p {font-size: 1.55rem; line-height: 1.35; font-weight: 500}
[class*="st-key-working-"] {position: fixed; right: 1rem; bottom: 1rem; z-index: 1000; width: min(22rem, 90vw)}
.dpviz-scale {position: relative; height: 2.6em; margin: -.9em .6em 0; font-size: .85em; line-height: 1.25}
.dpviz-scale span {position: absolute; transform: translateX(-50%); text-align: center}
.st-key-budget [data-testid="stSliderThumbValue"] {font-size: 1.3rem; font-weight: 600}
[class*="st-key-buttons-"] a {border: 1px solid currentColor; border-radius: .5rem; padding: .15rem .8rem}
.stMainBlockContainer table {font-size: 1rem}
[data-testid="stSliderTickBar"] {display: none}
.stMultiSelect [data-baseweb="tag"] {background: transparent; color: inherit; border: 1px solid currentColor;
max-width: 100%; height: auto} .stMultiSelect [data-baseweb="tag"] * {color: inherit; fill: currentColor}
.stMultiSelect [data-baseweb="tag"] span {max-width: none; white-space: normal}
@media print {[data-testid="stSidebar"], [data-testid="stHeader"], .stDownloadButton, .modebar {display: none !important}
.stMainBlockContainer {padding: 0; max-width: none} .stPlotlyChart, [class*="st-key-sheet-"] {break-inside: avoid}
.stApp, .stMain, [data-testid="stAppViewContainer"] {position: static !important; overflow: visible !important;
height: auto !important}}
@media (max-width: 1100px) {.st-key-headline p {font-size: 1.35rem}}
@media (max-width: 640px) {.stMainBlockContainer h3 {font-size: 1.2rem; padding: .8rem 0 .1rem}
.st-key-headline p {font-size: 1.25rem}}
</style>"""


def start(title: str, heading: str = "") -> Theme:
    """Page settings, the look of the page and its heading; the first call of every page. Returns the reader's theme.

    Args:
        title: of the browser's tab, and of the page where no heading is given.
    """
    server.prepare_once()
    front.drawing_a_page()
    session.watch()
    st.set_page_config(page_title=f"dpviz: {title}", page_icon=None, layout="wide")
    st.html(_CSS)
    st.title(heading or title, anchor=False)
    return THEMES["dark" if st.context.theme.type == "dark" else "light"]


def top_first() -> None:
    """Lets the browser draw what is above before it hears of what is below; call once, below what people look at.

    A browser that gets a whole page at once draws all of it before it shows any.
    """
    time.sleep(TOP)


def problems() -> None:
    """What was wrong with the address or the last thing typed: field, cause, fix."""
    for problem in address.problems():
        field, cause, fix = (words.markdown(str(part)) for part in (problem.field, problem.cause, problem.fix))
        st.warning(f"**{field}**: {cause}. {fix} The page goes on without it.", icon="⚠️")
