"""The same person, seen five ways: influence on the model, noise, rule, individual epsilon, an attacker's odds."""

import streamlit as st

from dpviz.dashboard.kit import guarantee, progress
from dpviz.dashboard.rows import KEYS, influence_map, noised_rows, person, retraining, selection
from dpviz.dashboard.shell import fields, links, page, sidebar
from dpviz.experiments import inspected

theme = page.start("Influence and noise")
own = fields.Group(KEYS, selection.of)
spec = sidebar.sidebar(own)
reports = st.container()
seen = progress.working(spec, inspected.inspect)
if seen is not None:
    influence = inspected.row_influence(spec)
    chosen = selection.choose(own, seen, influence.newton_norm)
    influence_map.headline(seen, influence)
    left, right = st.columns([4, 3], gap="large")
    with left:
        influence_map.draw(own, seen, influence, chosen, theme)
        person.finder(seen, influence)
        person.readable(seen, chosen)
    with right:
        person.draw(own, seen, influence, chosen)
    noised_rows.draw(seen, influence, chosen, theme)
    person.before_after(seen, influence, chosen, theme)
    noised_rows.idea(seen, influence, theme)
    retraining.draw(seen, influence, chosen, theme)
    influence_map.rows(seen, influence, chosen)
    guarantee.badge(seen.calibration)
    links.examine(spec.mechanism)
    retraining.how(seen)
with reports:
    page.problems()
