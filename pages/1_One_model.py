"""One private model: what it costs, the best possible attack, and what explains both."""

import streamlit as st

from dpviz.dashboard.frame import current_run, fields, guessing, page, pinned, sidebar
from dpviz.dashboard.one_run import KEYS, sections, views

theme = page.start("One model", "What does privacy cost this model, and does it protect anyone?")
answer = st.container()
left, right = st.columns(2, gap="medium", vertical_alignment="center")
spec = sidebar.Sidebar(fields.Group(KEYS, views.fields_of), budget=left.container(key="budget"), measured=True).draw()
with right:
    views.TRAINING.draw(help=None)  # its label says it
page.problems()
outcome, _ = current_run.current_run(spec)
if outcome is not None:
    kept = pinned.outcome()
    with answer:
        views.headline(outcome)
    left, right = st.columns(2, gap="medium")
    with left:
        views.first_picture(outcome, theme, kept)
    with right:
        views.scale(outcome, theme, kept)
    if kept is not None:
        sections.differences(kept, outcome)
    page.top_first()
    guessing.draw_trial(outcome)
    views.actions(spec)
    sections.draw(outcome, theme)
