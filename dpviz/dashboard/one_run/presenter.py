"""Presenter mode: one picture, the sentence and the slider, in type that is read from the last row."""

import streamlit as st

from dpviz.dashboard.one_run.settings import PRESENT

_CSS = """<style>
[data-testid="stSidebar"], [data-testid="stSidebarCollapsedControl"], [data-testid="stExpandSidebarButton"],
[data-testid="stHeader"], [data-testid="stToolbar"], .stMainBlockContainer h1, .st-key-buttons-start,
.stMainBlockContainer [data-testid="stCaptionContainer"], .stDownloadButton {display: none}
.stMainBlockContainer {padding: .8rem 1.5rem 1rem} .dpviz-picture svg {max-height: 58vh}
.st-key-headline p {font-size: clamp(1.3rem, 2.6vw, 3rem); line-height: 1.25}
.st-key-budget label p {font-size: 1.3rem} .st-key-budget [data-testid="stSliderThumbValue"] {font-size: 2rem}
</style>"""


def look() -> bool:
    """Sets the look where presenter mode is on; whether it is."""
    on = PRESENT.value()
    if on:
        st.html(_CSS)
    return on
