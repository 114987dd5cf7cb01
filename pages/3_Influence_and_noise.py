"""The same person, seen five ways: pull on the model, noise, rule, individual epsilon, an attacker's odds."""

import streamlit as st

from dpviz.dashboard.kit import parts
from dpviz.dashboard.rows import influence_map, inspected, noised_rows, person, retraining, selection
from dpviz.dashboard.shell import sidebar

theme = parts.page("Influence and noise")
spec = sidebar.sidebar(selection.OWN, selection.check)
reports = st.container()
seen = parts.working(spec, inspected.inspect)
if seen is not None:
    pull = inspected.influence(spec)
    chosen = selection.choose(seen, pull.newton_norm)
    influence_map.headline(seen, pull)
    left, right = st.columns([4, 3], gap="large")
    with left:
        influence_map.draw(seen, pull, chosen, theme)
        person.finder(seen, pull)
        person.readable(seen, chosen)
    with right:
        person.draw(seen, pull, chosen)
    noised_rows.draw(seen, pull, chosen, theme)
    person.before_after(seen, pull, chosen, theme)
    noised_rows.idea(seen, pull, theme)
    retraining.draw(seen, pull, chosen, theme)
    influence_map.rows(seen, pull, chosen)
    parts.guarantee(seen.calibration)
    retraining.how(seen)
with reports:
    parts.problems()
