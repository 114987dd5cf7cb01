"""Claims: a verdict on every claim of five papers, computed for this version, and tested again at a click."""

import streamlit as st

from dpviz.dashboard.claims import KEYS, views
from dpviz.dashboard.components import panels
from dpviz.dashboard.frame import fields, page, sidebar

theme = page.start("Claims", "Do the claims of the papers hold?")
own = fields.Group(KEYS, views.fields_of)
spec = sidebar.Sidebar(own, shows="nothing").draw()
page.problems()
answer = st.container()
full = bool(own["thorough"].value())
shown = views.shown_claims(spec, own["about"].value(), full)
if shown:
    field = views.open_field(shown)
    one = next(s for s in shown if s.claim.id == field.value())
    with answer:
        views.headline(shown)
    left, right = st.columns(2, gap="medium")
    with left:
        own["about"].draw()
        views.board(shown, one, field, theme)
    with right:
        views.card(one, field, full, spec.seed)
    views.details(one, theme)
    views.test_again(shown, own, spec.seed)
    views.papers(shown)
    views.figures(shown)
else:
    own["about"].draw()
    panels.empty("No claim of the papers is about this mechanism. Choose “All papers”, or another mechanism.")
