"""Guarantees: which methods are proved, under which conditions, which are only claimed, and which an audit refuted."""

import streamlit as st

from dpviz.dashboard.guarantees import KEYS, table
from dpviz.dashboard.shell import fields, page, pinned, sidebar

theme = page.start("Guarantees", "Which guarantees are proved?")
own = fields.Group(KEYS, table.of)
answer = st.container()
spec = sidebar.sidebar(own, budget=st.container(key="budget"), measured=True)
page.problems()
task = table.start(spec)
kept = pinned.outcome_beside(spec)
table.answer(task, spec, answer, kept)
table.show(task, spec, theme, own["order"], kept)
table.how(spec)
