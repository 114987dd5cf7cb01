"""From a sensitivity to noise: accountants, relations, composition, and what is left to an attacker."""

from dpviz.dashboard import accounting_view, controls, own, parts

theme = parts.page("Privacy accounting")
spec = controls.sidebar(accounting_view.KEYS)
choice = accounting_view.compare_choice(spec)
own.check((choice, *accounting_view.CONTROLS))
parts.problems()
found = accounting_view.chosen(spec, choice)
if found is not None:
    mechanism, released, calibration = found
    accounting_view.bars(spec, theme, mechanism, released, calibration)
    accounting_view.attacker(theme, released, calibration)
    accounting_view.renyi(spec, theme, mechanism, released, calibration)
    accounting_view.delta_curve(theme, mechanism, released, calibration)
    accounting_view.composition(theme, released, spec)
    accounting_view.relations(theme, released, calibration)
accounting_view.papers(spec)
