"""Who moves the model most, and which rows receive noise: a map of the rows, a card about one of them, the row after noise."""

import streamlit as st

from dpviz.dashboard.audit import exposed_rows
from dpviz.dashboard.components import folds, guarantee
from dpviz.dashboard.components.folds import Section
from dpviz.dashboard.frame import fields, links, page, pinned, sidebar
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.rows import (
    KEYS,
    before_after,
    finder,
    influence_map,
    new_rows,
    person,
    retraining,
    rows_with_noise,
    selection,
)
from dpviz.experiments.studies import inspected

theme = page.start("Person", "Who moves the model most, and which rows receive noise?")
own = fields.Group(KEYS, selection.fields_of)
answer = st.container()
left, right = st.columns([2, 3], gap="medium")
with left:
    budget = st.container(key="budget")
spec = sidebar.sidebar(own, budget=budget, measured=True)
with right:
    selection.offer_methods(spec)
doing = "Training and measuring each row's influence"
found = tasks.compute_once("rows", doing, inspected.inspect_with_influence, spec)
if found is not None:
    inspection, influence = found
    attacked = exposed_rows.cached_attacks(spec)
    chosen = selection.choose(own, inspection, influence.newton_norm)
    kept = pinned.other_run(spec)
    theirs = None if kept is None else tasks.compute_once("pinned-rows", doing, inspected.inspect_with_influence, kept)
    a = None if theirs is None else theirs[0]
    with answer:
        influence_map.headline(inspection, influence)
        influence_map.guessing_note(inspection)
        if a is not None:
            influence_map.other_run(inspection, a)
    with st.container(key="map-and-card"):
        left, right = st.columns([3, 2], gap="medium")
    with left:
        influence_map.draw(inspection, influence, chosen, theme, a)
    with right:
        person.card(own, inspection, influence, chosen, a, attacked)
    influence_map.privacy_warning()
    before_after.draw(inspection, influence, chosen, theme)

    def guaranteed() -> None:
        guarantee.badge(inspection.calibration, spec.build(), fold=False)
        links.examine(spec.mechanism)
        links.page_link("Groups", "Does privacy cost some groups of these rows more?")

    idea = "Another method: noise on the most influential rows only"
    folds.sections(
        Section("All about this row, beside another one", lambda: person.draw(own, inspection, influence, chosen)),
        Section("New rows: what would adding one change?", lambda: new_rows.draw(inspection, influence), asked="new"),
        Section("Find people by their values", lambda: finder.draw(inspection, influence)),
        Section("Axes of the map", lambda: influence_map.axes(own)),
        Section(
            "Which rows received noise, and the rule",
            lambda: rows_with_noise.draw(inspection, influence, chosen, theme),
            sent="received",
        ),
        Section("Which rows do membership attacks find?", lambda: exposed_rows.draw(spec, theme), asked="attacked"),
        Section(idea, lambda: rows_with_noise.explanation(inspection, influence, theme), asked="idea"),
        Section("Is the influence right?", lambda: retraining.draw(inspection, influence, chosen, theme), sent="right"),
        Section("All rows as a table", lambda: influence_map.rows(inspection, influence, chosen, attacked), sent="rows"),
        Section("Guarantee", guaranteed),
    )
    retraining.draw_sources(inspection)
page.problems()
