"""Where the noise comes from: sensitivity over training and over every setting, and the papers' rates beside both."""

from dpviz.dashboard.sensitivity import KEYS, excess_risk, rates, recursion, scaling, settings
from dpviz.dashboard.shell import fields, page, sidebar

theme = page.start("Sensitivity and rates")
own = fields.Group(KEYS, settings.of)
spec = sidebar.sidebar(own)
page.problems()
recursion.over_training(spec, theme, own["algorithm"])
recursion.one_picture(spec, theme)
scaling.curves(spec, theme, own["over"])
excess_risk.excess(spec, theme)
rates.table(spec)
