"""The first page: one run, one epsilon, one picture."""

import streamlit as st

from dpviz.dashboard.one_run import details, views
from dpviz.dashboard.shell import links, page, sidebar

theme = page.start(links.FIRST, "What does privacy cost a model, and does it protect anyone?")
views.starts()
answer = st.container()
budget = st.container(key="budget")
spec = sidebar.sidebar(budget=budget, measured=True)
page.problems()
outcome = views.run(spec)
if outcome is not None:
    with answer:
        views.headline(outcome)
    left, right = st.columns(2, gap="medium")
    with left:
        if not views.lines(outcome, theme):
            views.accuracies(outcome, theme)
    with right:
        views.scale(outcome, theme)
    views.actions(spec)
    page.top_first()
    details.details(outcome, theme)
