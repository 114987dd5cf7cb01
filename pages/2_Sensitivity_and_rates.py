"""Where the noise comes from: what one row can change, how that falls with n, and on request training and the papers' rates."""

import streamlit as st

from dpviz.dashboard.sensitivity import KEYS, excess_risk, rates, recursion, scaling, settings
from dpviz.dashboard.shell import fields, guessing, page, sidebar

theme = page.start("Sensitivity and rates", "How far can one row move what is released?")
own = fields.Group(KEYS, settings.of)
spec = sidebar.sidebar(own)
page.problems()
recursion.headline(spec)
guessing.watch(spec)
left, right = st.columns(2, gap="medium")
with left:
    scaling.curves(spec, theme, own["over"])
with right:
    recursion.one_picture(spec, theme)
recursion.promised(spec)
part = own["part"].draw()
if part != "none":
    st.header(settings.PARTS[part], anchor=False)
if part == "training":
    recursion.over_training(spec, theme, own["algorithm"])
elif part == "risk":
    excess_risk.excess(spec, theme)
elif part == "rates":
    rates.table(spec)
