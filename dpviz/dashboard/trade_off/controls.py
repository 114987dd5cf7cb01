"""The trade-off page's own controls."""

from __future__ import annotations

import streamlit as st

from dpviz.dashboard.shell.fields import Group
from dpviz.dashboard.trade_off import settings
from dpviz.experiments.spec import RunSpec


def wanted() -> None:
    """The accuracy wanted, beside the budget."""
    settings.WANT.draw(step=0.5)


def draw(spec: RunSpec, own: Group) -> None:
    """Methods, range of epsilon, and what is drawn, folded away."""
    with st.expander("Methods, range of ε, bands and axes"):
        own["methods"].draw()
        one, two, three = st.columns(3)
        with one:
            settings.FROM.draw()
            settings.TO.draw()
            settings.POINTS.draw()
        with two:
            settings.SHOWN.draw()
            settings.BAND.draw()
        with three:
            settings.ODDS.draw()
            st.caption(f"{spec.seeds} noise draws; more of them under “Advanced” on the left.")
