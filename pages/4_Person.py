"""One person: what the model loses without them, the odds of an attack, the noise they received; a map to choose from."""

from functools import partial

import streamlit as st

from dpviz.dashboard.components import folds, guarantee
from dpviz.dashboard.frame import fields, links, page, pinned, sidebar
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.rows import KEYS, finder, influence_map, person, retraining, rows_with_noise, selection
from dpviz.experiments.studies import inspected

theme = page.start("Person", "Who moves the model most, and which rows receive noise?")
own = fields.Group(KEYS, selection.fields_of)
answer = st.container()
left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
with left:
    budget = st.container(key="budget")
spec = sidebar.Sidebar(own, budget=budget, measured=True).draw()
doing = "Training and measuring each row's influence"
found = tasks.current_result("rows", doing, partial(inspected.inspect_with_influence, spec), of=spec, kept=False)
if found is not None:
    inspection, influence = found
    chosen = selection.choose(own, inspection, influence)
    kept = pinned.other_run(spec)
    its = None if kept is None else partial(inspected.inspect_with_influence, kept)
    theirs = None if its is None else tasks.current_result("pinned-rows", doing, its, of=kept, kept=False)
    a = None if theirs is None else theirs[0]
    with answer:
        influence_map.headline(inspection, influence)
        influence_map.guessing_note(inspection)
        if a is not None:
            influence_map.other_run(inspection, a)
    with right:
        person.choose(own, inspection, chosen)
    with st.container(key="map-and-card"):
        left, right = st.columns([3, 2], gap="medium")
    with left:
        influence_map.draw(own, inspection, influence, chosen, theme, a)
    with right:
        person.card(inspection, influence, chosen, a)
        selection.offer_methods(spec)
    influence_map.privacy_warning()
    rows_with_noise.before_after(inspection, influence, chosen, theme)

    def find() -> None:
        influence_map.axes(own)
        finder.draw(inspection, influence)
        influence_map.rows(inspection, influence, chosen)

    def trust() -> None:
        if not folds.in_closed_fold():  # it retrains without every row of a small set
            retraining.draw(inspection, influence, chosen, theme)
        guarantee.badge(inspection.calibration, spec.build(), fold=False)
        retraining.draw_sources(inspection)
        links.examine(spec.mechanism)

    noise = "Which rows received noise, and the rule"
    folds.sections(
        folds.Section(noise, lambda: rows_with_noise.draw(inspection, influence, chosen, theme), sent="received"),
        folds.Section(
            "All about this row, beside another one", lambda: person.draw(own, inspection, influence, chosen), asked="about"
        ),
        folds.Section("Find people by their values, or in the table of all rows", find, asked="rows"),
        folds.Section("Is the influence right? Guarantee, formulas, calls", trust, sent="right"),
    )
page.problems()
