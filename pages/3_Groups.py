"""Groups: who pays for privacy, over epsilon, and what a threshold does with the scores."""

import streamlit as st

from dpviz.dashboard.components import folds, guarantee
from dpviz.dashboard.frame import fields, guessing, metric, page, pinned, sidebar
from dpviz.dashboard.groups import KEYS, cost_by_group, over_epsilon, scores

theme = page.start("Groups", "Does privacy cost some groups more than others?")
own = fields.Group(KEYS, over_epsilon.fields_of)
answer = st.container()
budget = st.container(key="budget")
spec = sidebar.Sidebar(own, budget).draw()
page.problems()
over_epsilon.controls(own, spec)
view = over_epsilon.compute(spec, over_epsilon.grouping(own), pinned.other_run(spec))
if view is not None:
    with answer:
        over_epsilon.headline(view, own["of"].value())
        guessing.say(metric.measure_outcome(view.outcome))
    over_epsilon.draw(view, own["of"].value(), theme)
    page.top_first()
    over_epsilon.table(view, own["of"].value())
    cost_by_group.draw(spec, over_epsilon.grouping(own), own["why"], theme)
    with folds.fold("Scores and threshold: distributions, ROC, precision and recall, reliability", "scores"):
        scores.draw(view.outcome, own["threshold"], theme)
    guarantee.badge(view.outcome.calibration, spec.build())
    over_epsilon.draw_sources(spec, over_epsilon.grouping(own))
