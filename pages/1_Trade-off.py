"""Accuracy and optimality gap over epsilon, many mechanisms at once, while they are computed."""

from dpviz.dashboard import choices, controls, parts, sweep_controls, trade_off

theme = parts.page("Trade-off")
choices.before()
spec = controls.sidebar(choices.OWN)
chosen = choices.read(spec)
parts.problems()
view = trade_off.start(spec, chosen, theme)
trade_off.live(view, trade_off.headline)
sweep_controls.draw(spec, chosen)
trade_off.live(view, trade_off.progress, trade_off.picture, trade_off.numbers, trade_off.best)
if view is not None:
    trade_off.take_away(view)
    trade_off.how(view)
