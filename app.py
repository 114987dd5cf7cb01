"""The first page: one run, one epsilon, one picture."""

import streamlit as st

from dpviz.dashboard import controls, nav, one_run, parts

theme = parts.page(nav.FIRST)
spec = controls.sidebar()
parts.problems()
outcome = parts.run(spec)
if outcome is not None:
    one_run.headline(outcome)
    left, right = st.columns([3, 2], gap="large")
    with left:
        drawn = one_run.lines(outcome, theme)
    with right if drawn else left:
        one_run.accuracies(outcome, theme)
    with right:
        one_run.bets(outcome, theme)
    parts.top_first()
    one_run.numbers(outcome)
    one_run.weights(outcome, theme)
    left, right = st.columns(2, gap="large")
    with left:
        one_run.gap(outcome, theme)
    with right:
        one_run.attacker(outcome, theme)
    one_run.how(outcome)
