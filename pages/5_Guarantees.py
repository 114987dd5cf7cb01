"""Guarantees: which methods are proved, under which conditions, which are only claimed, and which an audit refuted."""

from dpviz.dashboard.guarantees import KEYS, table
from dpviz.dashboard.shell import fields, page, pinned, sidebar

theme = page.start("Guarantees", "Which guarantees are proved?")
own = fields.Group(KEYS, table.of)
spec = sidebar.sidebar(own, measured=True)
page.problems()
task = table.start(spec)
table.show(task, spec, theme, own["order"], pinned.outcome_beside(spec))
table.how(spec)
