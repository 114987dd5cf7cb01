"""All datasets, one's own, and what is trained on."""

import streamlit as st

from dpviz.dashboard.components import panels
from dpviz.dashboard.data import KEYS, bounds, settings, upload
from dpviz.dashboard.data import dataset as data_page
from dpviz.dashboard.frame import fields, page, sidebar

theme = page.start("Data", "What is in the data, and are there enough rows for privacy?")
own = fields.Group(KEYS, lambda spec: (settings.FIRST, settings.COMPARED))
bar = sidebar.Sidebar(own, shows="data")
spec, comparing = bar.spec, own["bounds"].value()
page.problems()
dataset = data_page.chosen_dataset(spec)
above, below = st.container(), st.container()
lesson = comparing and bool(st.query_params.get(panels.TASK))
tabs_first = own["upload"].value() or lesson
with above if tabs_first else below:
    titles = ["Your own table", "All datasets", "What is trained on", "Feature ranges", bounds.TITLE]
    mine, every, rows, features, compared = st.tabs(titles, default=bounds.TITLE if lesson else None)
if comparing:
    bar.show_run(compared.container())
bar.draw()
with below if tabs_first else above:
    if dataset is not None:
        data_page.headline(dataset, spec)
        left, right = st.columns((3, 2), gap="large")
        with left:
            data_page.first_rows(dataset)
        with right:
            data_page.balance(dataset, theme)
        data_page.describe(dataset, spec)
with mine:
    upload.draw_upload()
with every:
    data_page.cards(spec)
if dataset is not None:
    with rows:
        data_page.encoded_rows(dataset)
        data_page.preprocessing(dataset, spec)
    with features:
        data_page.ranges(dataset, theme)
        data_page.private(dataset, spec)
    with compared:
        bounds.section(dataset, spec, own, theme)
