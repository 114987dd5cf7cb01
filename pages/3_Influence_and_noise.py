"""The same person, seen five ways: pull on the model, noise, rule, individual epsilon, an attacker's odds."""

import streamlit as st

from dpviz.dashboard import choice, controls, influence_map, inspected, noised_rows, parts, person, validation

theme = parts.page("Influence and noise")
spec = controls.sidebar(choice.OWN, choice.check)
reports = st.container()
seen = parts.working(spec, inspected.inspect)
if seen is not None:
    pull = inspected.influence(spec)
    chosen = choice.choose(seen, pull.newton_norm)
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
    validation.draw(seen, pull, chosen, theme)
    influence_map.rows(seen, pull, chosen)
    parts.guarantee(seen.calibration)
    validation.how(seen)
with reports:
    parts.problems()
