"""From a sensitivity to noise: accountants, relations, composition, and what is left to an attacker."""

from dpviz.dashboard.accounting import KEYS, comparison, curves, settings
from dpviz.dashboard.shell import fields, page, sidebar

theme = page.start("Privacy accounting")
own = fields.Group(KEYS, settings.of)
spec = sidebar.sidebar(own)
page.problems()
found = comparison.chosen(spec, own["compare"])
if found is not None:
    mechanism, released, calibration = found
    comparison.bars(spec, theme, mechanism, released, calibration)
    curves.attacker(theme, comparison.attack_of(spec, mechanism, calibration))
    curves.renyi(spec, theme, mechanism, released, calibration)
    curves.delta_curve(theme, mechanism, released, calibration)
    curves.composition(theme, released, spec)
    curves.relations(theme, released, calibration)
comparison.papers(spec)
