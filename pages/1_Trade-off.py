"""Accuracy and optimality gap over epsilon, many mechanisms at once, while they are computed."""

from dpviz.dashboard import choices, controls, papers, parts, sweep_controls, sweep_view, trade_off, tuning

theme = parts.page("Trade-off")
choices.before()
spec = controls.sidebar(choices.OWN, choices.read)
chosen = choices.read(spec)
parts.problems()
view = sweep_view.start(spec, chosen, theme)
sweep_view.live(view, trade_off.headline, every=sweep_view.PICTURES)
sweep_controls.draw(spec, chosen)
sweep_view.live(view, sweep_view.progress)
sweep_view.live(view, trade_off.picture, trade_off.numbers, trade_off.best, every=sweep_view.PICTURES)
if view is not None:
    trade_off.take_away(view)
tuning.section(spec, chosen, theme)
papers.section(spec, chosen, view)
if view is not None:
    trade_off.how(view)
