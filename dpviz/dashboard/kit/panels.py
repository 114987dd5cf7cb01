"""Panels in place of a picture, and the label of views that reveal data."""

from __future__ import annotations

import streamlit as st

from dpviz.dashboard.kit import words


def failed(cause: str, fix: str) -> None:
    """The panel in place of a picture that could not be made."""
    st.error(f"**This could not be computed**: {words.markdown(cause)}. {words.markdown(fix)}", icon="⛔")


def empty(text: str) -> None:
    """The panel in place of a picture that has nothing to show."""
    st.info(text, icon="ℹ️")


def not_private(what: str) -> None:
    """The badge of views that show real rows or numbers computed from them without noise."""
    st.badge("⚠ not private: reveals data", color="orange")
    st.caption(what)
