"""The same person, seen five ways: influence on the model, noise, rule, individual epsilon, an attacker's odds."""

import streamlit as st

from dpviz.dashboard.kit import guarantee, progress
from dpviz.dashboard.rows import influence_map, noised_rows, person, retraining, selection
from dpviz.dashboard.shell import links, page, sidebar
from dpviz.experiments import inspected

theme = page.start("Influence and noise")
spec = sidebar.sidebar(selection.OWN, selection.check)
reports = st.container()
seen = progress.working(spec, inspected.inspect)
if seen is not None:
    influence = inspected.row_influence(spec)
    chosen = selection.choose(seen, influence.newton_norm)
    influence_map.headline(seen, influence)
    left, right = st.columns([4, 3], gap="large")
    with left:
        influence_map.draw(seen, influence, chosen, theme)
        person.finder(seen, influence)
        person.readable(seen, chosen)
    with right:
        person.draw(seen, influence, chosen)
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
