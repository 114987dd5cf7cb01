"""The trade-off page's own controls."""

import streamlit as st

from dpviz.dashboard.shell.fields import Group
from dpviz.dashboard.trade_off import settings
from dpviz.experiments.run.metrics import Metric
from dpviz.experiments.run.spec import RunSpec


def wanted(measure: Metric) -> None:
    """The value of the metric that is wanted, beside the budget."""
    if measure.shares:
        settings.WANT.draw(f"{measure.label} wanted, %", step=0.5)
    else:
        settings.WANT_LOSS.draw(f"{measure.label} wanted", step=0.01)


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
            st.caption(f"{spec.seeds} noise draws; more of them under “More settings” on the left.")
