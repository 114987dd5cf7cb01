"""From a sensitivity to noise: accountants, relations, composition, and what is left to an attacker."""

import streamlit as st

from dpviz.dashboard.accounting import KEYS, comparison, curves, settings
from dpviz.dashboard.shell import fields, guessing, page, pinned, sidebar

theme = page.start("Privacy accounting", "How much noise does a proof need, and what is left to an attacker?")
own = fields.Group(KEYS, settings.of)
answer = st.container()
left, right = st.columns(2, gap="large", vertical_alignment="center")
spec = sidebar.sidebar(own, budget=left.container(key="budget"), measured=True)
page.problems()
with right:
    subject = comparison.chosen(spec, own["compare"])
there = subject is None or comparison.computed(spec, *subject)
if subject is not None and there:
    mechanism, released, calibration = subject
    options = comparison.options(released, calibration)
    attack, kept = comparison.attack_of(spec, mechanism, calibration), pinned.outcome()
    with answer:
        comparison.headline(released, calibration, options)
        guessing.watch(spec)
        if kept is not None:
            comparison.beside(kept, attack, mechanism, calibration)
    same = kept is not None and kept.spec.mechanism == mechanism.id and kept.calibration.noise_scale > 0
    left, right = st.columns(2, gap="large")
    with left:
        comparison.bars(theme, mechanism, calibration, options, kept.calibration if kept is not None and same else None)
    with right:
        curves.attacker(theme, attack, None if kept is None else kept.attack)
    page.top_first()
    comparison.promised(spec, calibration)
    with st.expander("What each of these noises does to the model"):
        comparison.usefulness(spec, theme, mechanism, calibration, options)
    with st.expander("Rényi: one line per order, and the best order"):
        curves.renyi(spec, theme, mechanism, released, calibration)
    with st.expander("The whole curve: δ for every ε"):
        curves.delta_curve(theme, mechanism, released, calibration)
    with st.expander("Composition: ε over steps"):
        curves.composition(theme, released, spec)
    with st.expander("Who is compared: replace-one or add-remove"):
        curves.relations(theme, released, calibration)
if there:
    with st.expander("What each paper would add, and what is needed"):
        comparison.papers(spec)
if subject is not None and there:
    comparison.how(spec, mechanism, options)
