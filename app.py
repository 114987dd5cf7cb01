"""The first page: one run, one epsilon, one picture."""

import streamlit as st

from dpviz.dashboard.one_run import views
from dpviz.dashboard.shell import links, page, sidebar

theme = page.start(links.FIRST)
spec = sidebar.sidebar()
page.problems()
outcome = views.run(spec)
if outcome is not None:
    views.headline(outcome)
    left, right = st.columns([3, 2], gap="large")
    with left:
        drawn = views.lines(outcome, theme)
    with right if drawn else left:
        views.accuracies(outcome, theme)
    with right:
        views.bets(outcome, theme)
    page.top_first()
    views.numbers(outcome)
    views.weights(outcome, theme)
    left, right = st.columns(2, gap="large")
    with left:
        views.gap(outcome, theme)
    with right:
        views.attacker(outcome, theme)
    views.how(outcome)
