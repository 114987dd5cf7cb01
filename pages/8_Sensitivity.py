"""Where the noise comes from: what one row can change and how that falls with n; published rates beside what is observed."""

import streamlit as st

from dpviz.dashboard.frame import fields, guessing, page, sidebar
from dpviz.dashboard.sensitivity import KEYS, excess_risk, recursion, scaling, settings

theme = page.start("Sensitivity", "How far can one row move what is released?")
own = fields.Group(KEYS, settings.fields_of)
answer = st.container()
budget = st.container(key="budget")
spec = sidebar.Sidebar(own, budget=budget).draw()
page.problems()
with answer:
    recursion.headline(spec)
    guessing.watch(spec)
left, right = st.columns([3, 2], gap="medium")
with left:
    scaling.curves(spec, theme, own["over"])
with right:
    recursion.bounds_section(spec, theme)
recursion.guarantee_badge(spec)
part = own["part"].draw()
if part != "none":
    st.header(settings.PARTS[part], anchor=False)
if part == "training":
    recursion.training_section(spec, theme, own["algorithm"])
elif part == "rates":
    found = excess_risk.picture(spec, theme)
    if found is not None:
        excess_risk.details(spec, found)
    scaling.table(spec)
