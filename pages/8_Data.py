"""All datasets, one's own, and what is trained on."""

import streamlit as st

from dpviz.dashboard.data import KEYS, settings, upload
from dpviz.dashboard.data import dataset as data_page
from dpviz.dashboard.shell import fields, page, sidebar

theme = page.start("Data", "What is in the data, and are there enough rows for privacy?")
own = fields.Group(KEYS, lambda spec: (settings.FIRST,))
spec = sidebar.sidebar(own, shows="data")
page.problems()
dataset = data_page.chosen(spec)
above, below = st.container(), st.container()
with below if own["upload"].value() else above:
    if dataset is not None:
        data_page.headline(dataset, spec)
        left, right = st.columns(2, gap="large")
        with left:
            data_page.balance(dataset, theme)
        with right:
            data_page.lengths(dataset, theme)
        data_page.about(dataset, spec)
with above if own["upload"].value() else below:
    mine, every, rows, prepared, features = st.tabs(
        ["Your own table", "All datasets", "What is trained on", "What preprocessing did", "Feature ranges"]
    )
with mine:
    upload.own()
with every:
    data_page.cards(spec)
if dataset is not None:
    with rows:
        data_page.preview(dataset)
    with prepared:
        data_page.preprocessing(dataset)
    with features:
        data_page.ranges(dataset, theme)
        data_page.private(dataset, spec)
