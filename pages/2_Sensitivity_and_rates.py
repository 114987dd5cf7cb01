"""Where the noise comes from: sensitivity over training and over every setting, and the papers' rates beside both."""

from dpviz.dashboard import controls, own, parts, rates_view, sensitivity_view

theme = parts.page("Sensitivity and rates")
spec = controls.sidebar(("algorithm", "over", *rates_view.KEYS))
over = sensitivity_view.over_choice(spec)
own.check((sensitivity_view.algorithm_choice(spec), over, *rates_view.CONTROLS))
parts.problems()
sensitivity_view.over_training(spec, theme)
sensitivity_view.one_picture(spec, theme)
sensitivity_view.falls(spec, theme, over)
rates_view.excess(spec, theme)
rates_view.table(spec)
