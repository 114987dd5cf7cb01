"""Lessons: ten questions with a link to the page that answers each, a check of the reader's answer, and why."""

from dpviz.dashboard.frame import fields, page, sidebar
from dpviz.dashboard.lessons import KEYS, view

theme = page.start("Lessons", "Lessons: a question, a page that answers it, and why")
own = fields.Group(KEYS, view.fields_of)
sidebar.Sidebar(own, shows="nothing").draw()
page.problems()
view.draw(own, theme)
view.terms()
