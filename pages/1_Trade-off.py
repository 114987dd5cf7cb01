"""Accuracy and optimality gap over epsilon, many mechanisms at once, while they are computed."""

from dpviz.dashboard.shell import page, sidebar
from dpviz.dashboard.trade_off import controls as sweep_controls
from dpviz.dashboard.trade_off import curves, presets, running, settings, tuning

theme = page.start("Trade-off")
settings.before()
spec = sidebar.sidebar(settings.OWN, settings.read)
chosen = settings.read(spec)
page.problems()
view = running.start(spec, chosen, theme)
running.live(view, curves.headline, every=running.PICTURES)
sweep_controls.draw(spec, chosen)
running.live(view, running.progress)
running.live(view, curves.picture, curves.numbers, curves.best, every=running.PICTURES)
if view is not None:
    curves.take_away(view)
tuning.section(spec, chosen, theme)
presets.section(spec, chosen, view)
if view is not None:
    curves.how(view)
