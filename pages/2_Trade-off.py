"""Which method is best at an epsilon, and which epsilon a value of the metric needs: many mechanisms, while they are computed."""

import streamlit as st

from dpviz.dashboard.frame import fields, page, pinned, sidebar
from dpviz.dashboard.trade_off import KEYS, answers, curves, numbers, presets, repeated, running, settings, tuning

theme = page.start("Trade-off", "Which method is best, and how much ε does it need?")
settings.apply_chosen_knobs()
own = fields.Group(KEYS, settings.fields_of)
answer = st.container()
left, right = st.columns([5, 2], vertical_alignment="center")
with left:
    budget = st.container(key="budget")
spec = sidebar.sidebar(own, budget=budget, measured=True)
chosen = settings.read(own, spec)
page.problems()
with right:
    settings.target_field(chosen.metric)
with answer:
    kept = pinned.outcome_beside(spec)
view = running.start(spec, chosen, theme, kept)
with answer:
    running.draw_live(view, answers.headline, answers.other_run, every=running.PICTURES)
running.draw_live(view, running.progress)
running.draw_live(view, curves.picture, answers.guessing, every=running.PICTURES)
settings.draw(spec, own)
running.draw_live(view, numbers.method_table, every=running.PICTURES)
if view is not None:
    numbers.evidence_links(view)
    numbers.downloads(view)
tuning.section(spec, chosen, theme)
if view is not None:
    repeated.section(view)
presets.section(spec, chosen, view)
if view is not None:
    numbers.draw_sources(view)
