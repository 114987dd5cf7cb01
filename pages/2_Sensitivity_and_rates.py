"""Where the noise comes from: sensitivity over training and over every setting, and the papers' rates beside both."""

from dpviz.dashboard import controls, excess_view, falls_view, own, parts, rates_view, sensitivity_view

theme = parts.page("Sensitivity and rates")
more = (*excess_view.CONTROLS, *rates_view.CONTROLS)
spec = controls.sidebar(("algorithm", "over", *(c.key for c in more)))
over = falls_view.over_choice(spec)
own.check((sensitivity_view.algorithm_choice(spec), over, *more))
parts.problems()
sensitivity_view.over_training(spec, theme)
sensitivity_view.one_picture(spec, theme)
falls_view.falls(spec, theme, over)
excess_view.excess(spec, theme)
rates_view.table(spec)
