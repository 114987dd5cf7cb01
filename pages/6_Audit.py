"""Audit: how often an attacker guesses right which of two neighbouring datasets was used, and what epsilon allows."""

import streamlit as st

from dpviz.dashboard.audit import KEYS, all_mechanisms, attack, one_training
from dpviz.dashboard.shell import fields, guessing, links, page, pinned, sidebar

theme = page.start("Audit", "Can an attacker tell that one row was in the data?")
answer = st.container()
own = fields.Group(KEYS, lambda spec: (*attack.of(spec), *one_training.of(spec)))
spec = sidebar.sidebar(own)
asked = attack.controls(own)
page.problems()
task = attack.attack(spec, asked)
with answer:
    attack.headline(task, spec)
    guessing.watch(spec)
    kept = pinned.outcome()
    if kept is not None:
        attack.beside(kept)
attack.show(task, spec, theme, kept)
attack.details(task, spec, asked, theme)
one_training.show(spec, own)
with st.container(key="buttons-next"):
    links.claims_about(spec.mechanism)
all_mechanisms.board(spec, theme)
