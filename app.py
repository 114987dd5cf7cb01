"""The first page: a story of five scenes; and the app with its guard, which a server imports from here."""

import streamlit as st

from dpviz.dashboard.frame import current_run, fields, guessing, links, page, server, sidebar
from dpviz.dashboard.story import KEYS, playing, scenes, settings

if __name__ == "__main__":  # Streamlit draws the page
    question = "Train a model with differential privacy, and watch what it costs and whom it protects."
    theme = page.start(links.FIRST, question)
    playing.step()
    with st.container(key="stage"):
        left, right = st.columns([5, 2], vertical_alignment="center")
    spec = sidebar.Sidebar(fields.Group(KEYS, settings.fields_of), budget=left.container(key="budget"), measured=True).draw()
    with right:
        playing.controls()
    page.problems()
    scenes.look(theme)
    outcome, fresh = current_run.current_run(spec)
    if outcome is not None:
        scenes.draw(outcome, theme)
        guessing.say(outcome)
    if not settings.PRESENT.value():
        scenes.entries()
    playing.advance(fresh=fresh)
else:
    app = st.App(__file__, **server.settings())
