"""The first page: one run, one epsilon, one picture; and the app with its guard, which a server imports from here."""

import streamlit as st

from dpviz.dashboard.frame import fields, guessing, links, page, pinned, server, sidebar
from dpviz.dashboard.one_run import KEYS, compare, details, playing, presenter, settings, views

if __name__ == "__main__":  # Streamlit draws the page
    theme = page.start(links.FIRST, "What does privacy cost a model, and does it protect anyone?")
    playing.step()
    answer = st.container()
    above, beside = st.columns(2, gap="medium", vertical_alignment="center")
    own = fields.Group(KEYS, settings.of)
    controls = sidebar.Sidebar(own, budget=above.container(key="budget"), measured=True)
    spec = controls.spec
    page.problems()
    presents = presenter.look()
    soon = views.soon(spec)
    if not soon:
        views.around(beside, controls)
    outcome = views.run(spec)
    if outcome is not None:
        kept = pinned.outcome()
        with answer:
            views.headline(outcome)
        if presents:
            views.first(outcome, theme, kept)
        else:
            left, right = st.columns(2, gap="medium")
            with left:
                views.first(outcome, theme, kept)
            with right:
                views.scale(outcome, theme, kept)
            if kept is not None:
                compare.differences(kept, outcome)
        page.top_first()
    if soon:
        views.around(beside, controls)
    if outcome is not None and not presents:
        guessing.tried(outcome)
        views.actions(spec)
        details.details(outcome, theme)
    playing.go_on()
else:
    app = st.App(__file__, **server.settings())
