"""Accuracy and optimality gap over epsilon, many mechanisms at once, while they are computed."""

from dpviz.dashboard import choices, controls, papers, parts, sweep_controls, sweep_job, trade_off, tuning

theme = parts.page("Trade-off")
choices.before()
spec = controls.sidebar(choices.OWN)
chosen = choices.read(spec)
parts.problems()
view = sweep_job.start(spec, chosen, theme)
sweep_job.live(view, trade_off.headline, every=sweep_job.PICTURES)
sweep_controls.draw(spec, chosen)
sweep_job.live(view, sweep_job.progress)
sweep_job.live(view, trade_off.picture, trade_off.numbers, trade_off.best, every=sweep_job.PICTURES)
if view is not None:
    trade_off.take_away(view)
tuning.section(spec, chosen, theme)
papers.section(spec, chosen, view)
if view is not None:
    trade_off.how(view)
