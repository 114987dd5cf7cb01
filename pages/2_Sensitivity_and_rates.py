"""Where the noise comes from: sensitivity over training and over every setting, and the papers' rates beside both."""

from dpviz.dashboard.sensitivity import excess_risk, rates, recursion, scaling
from dpviz.dashboard.shell import fields, page, sidebar

theme = page.start("Sensitivity and rates")
more = (*excess_risk.CONTROLS, *rates.CONTROLS)
spec = sidebar.sidebar(("algorithm", "over", *(c.key for c in more)))
over = scaling.over_choice(spec)
fields.check((recursion.algorithm_choice(spec), over, *more))
page.problems()
recursion.over_training(spec, theme)
recursion.one_picture(spec, theme)
scaling.curves(spec, theme, over)
excess_risk.excess(spec, theme)
rates.table(spec)
