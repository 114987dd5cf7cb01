"""Which method is best at an epsilon, and which epsilon a value of the metric needs: all methods, while they are computed."""

import streamlit as st

from dpviz.dashboard.frame import fields, page, pinned, ranking, sidebar
from dpviz.dashboard.jobs import tasks, watching
from dpviz.dashboard.trade_off import KEYS, curves, method_comparison, presets, running, settings, tuning
from dpviz.reporting import words

theme = page.start("Trade-off", "Which method is best, and how much ε does it need?")
settings.apply_chosen_knobs()
own = fields.Group(KEYS, settings.fields_of)
answer = st.container()
budget = st.container(key="budget")
spec = sidebar.Sidebar(own, budget=budget, measured=True).draw()
chosen = settings.read(own, spec)
page.problems()
with answer:
    kept = pinned.outcome_beside(spec)
ranked = ranking.start(spec)
measuring = not watching.is_over(ranked)
if not measuring and own["methods"].default != settings.methods_field(spec).default:
    st.rerun()  # the ranking has ended since the methods were read that it chooses
view = running.start(ranked, spec, chosen, theme, kept)
left, right = st.columns([2, 3], gap="medium")
if view is not None:
    with answer:
        tasks.follow(ranked, lambda measured: method_comparison.headline(view, measured), working=measuring, every=2.0)
    with left:
        work = "Measuring every method"
        tasks.follow(ranked, lambda measured: method_comparison.rank(view, measured), work, working=measuring, every=2.0)
    with right:
        running.draw_live(view, running.progress)
        running.draw_live(view, curves.picture, every=running.PICTURES)
settings.draw(own, chosen.metric)
if view is not None:
    method_comparison.section(view)
with st.expander(f"Tune and cross-validate at ε = {words.three(spec.epsilon)}", expanded=chosen.tune is not None):
    tuning.section(spec, chosen, theme)
    if view is not None:
        method_comparison.cross_validation(view)
presets.section(spec, chosen, view)
