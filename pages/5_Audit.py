"""Audit: how often an attacker guesses right which of two neighbouring datasets was used, and what epsilon allows."""

import streamlit as st

from dpviz.dashboard.audit import KEYS, all_mechanisms, attack, one_training, ordinary_rows
from dpviz.dashboard.frame import fields, guessing, links, page, pinned, sidebar

theme = page.start("Audit", "Can an attacker tell whether a person was in the data?")
answer = st.container()
own = fields.Group(KEYS, lambda spec: (*attack.fields_of(spec), *one_training.fields_of(spec), *ordinary_rows.fields_of(spec)))
left, right = st.columns(2, gap="large", vertical_alignment="center")
spec = sidebar.Sidebar(own, budget=left.container(key="budget")).draw()
with right:
    ordinary = own["attacked"].draw()
asked = None if ordinary else attack.controls(own)
page.problems()
if asked is None:
    ordinary_rows.page(spec, own, theme, answer)
else:
    task = attack.attack(spec, asked)
    with answer:
        attack.headline(task, spec)
with answer:
    guessing.watch(spec)
    kept = pinned.outcome()
    if kept is not None:
        attack.other_run(kept)
if asked is not None:
    attack.show(task, spec, theme, kept)
    attack.details(task, spec, asked, theme)
    one_training.show(spec, own)
with st.container(key="buttons-next"):
    links.claims_about(spec.mechanism)
if not ordinary:
    all_mechanisms.board(spec, theme)
