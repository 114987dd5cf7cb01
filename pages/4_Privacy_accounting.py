"""From a sensitivity to noise: accountants, relations, composition, and what is left to an attacker."""

from dpviz.dashboard import accounting_curves, accounting_view, controls, own, parts

theme = parts.page("Privacy accounting")
spec = controls.sidebar((accounting_view.KEY, *(c.key for c in accounting_curves.CONTROLS)))
choice = accounting_view.compare_choice(spec)
own.check((choice, *accounting_curves.CONTROLS))
parts.problems()
found = accounting_view.chosen(spec, choice)
if found is not None:
    mechanism, released, calibration = found
    accounting_view.bars(spec, theme, mechanism, released, calibration)
    accounting_curves.attacker(theme, released, calibration)
    accounting_curves.renyi(spec, theme, mechanism, released, calibration)
    accounting_curves.delta_curve(theme, mechanism, released, calibration)
    accounting_curves.composition(theme, released, spec)
    accounting_curves.relations(theme, released, calibration)
accounting_view.papers(spec)
