"""Guarantees: which methods are proved, under which conditions, which are only claimed, and which an audit refuted."""

import streamlit as st

from dpviz.dashboard.frame import fields, page, pinned, ranking, sidebar
from dpviz.dashboard.guarantees import KEYS, table

theme = page.start("Guarantees", "Which guarantees are proved?")
own = fields.Group(KEYS, table.fields_of)
answer = st.container()
left, right = st.columns(2, gap="large")
spec = sidebar.Sidebar(own, budget=left.container(key="budget"), measured=True).draw()
with right:
    attacker = table.choose_attacker(own)
page.problems()
task = ranking.start(spec, attacker)
kept = pinned.outcome_beside(spec)
table.answer(task, spec, answer, kept, attacker)
table.show(task, spec, theme, own["order"], kept, attacker)
table.deployments()
table.draw_sources(spec, attacker)
