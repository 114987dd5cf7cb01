"""Accuracy and optimality gap over epsilon, many mechanisms at once, while they are computed."""

from dpviz.dashboard.shell import fields, page, sidebar
from dpviz.dashboard.trade_off import KEYS, controls, curves, presets, running, settings, tuning

theme = page.start("Trade-off")
settings.before()
own = fields.Group(KEYS, settings.of)
spec = sidebar.sidebar(own)
chosen = settings.read(own)
page.problems()
view = running.start(spec, chosen, theme)
running.live(view, curves.headline, every=running.PICTURES)
controls.draw(spec, own)
running.live(view, running.progress)
running.live(view, curves.picture, curves.numbers, curves.best, every=running.PICTURES)
if view is not None:
    curves.take_away(view)
tuning.section(spec, chosen, theme)
presets.section(spec, chosen, view)
if view is not None:
    curves.how(view)
