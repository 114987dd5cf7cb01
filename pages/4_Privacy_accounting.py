"""From a sensitivity to noise: accountants, relations, composition, and what is left to an attacker."""

import streamlit as st

from dpviz.dashboard.accounting import KEYS, comparison, curves, settings
from dpviz.dashboard.shell import fields, page, sidebar

theme = page.start("Privacy accounting")
own = fields.Group(KEYS, settings.of)
spec = sidebar.sidebar(own, measured=True)
page.problems()
found = comparison.chosen(spec, own["compare"])
if found is not None:
    mechanism, released, calibration = found
    comparison.bars(spec, theme, mechanism, released, calibration)
    curves.attacker(theme, comparison.attack_of(spec, mechanism, calibration))
    with st.expander("Rényi: one line per order, and the best order"):
        curves.renyi(spec, theme, mechanism, released, calibration)
    with st.expander("The whole curve: δ for every ε"):
        curves.delta_curve(theme, mechanism, released, calibration)
    with st.expander("Composition: ε over steps"):
        curves.composition(theme, released, spec)
    with st.expander("Who is compared: replace-one or add-remove"):
        curves.relations(theme, released, calibration)
with st.expander("What each paper would add, and what is needed"):
    comparison.papers(spec)
