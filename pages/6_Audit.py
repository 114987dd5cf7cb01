"""Audit: an attacker bets on one row, and claimed, proved and audited epsilon stand side by side."""

from dpviz.dashboard.audit import all_mechanisms, attack
from dpviz.dashboard.shell import links, page, sidebar

theme = page.start("Audit")
spec = sidebar.sidebar(own=attack.OWN)
pair, row, other, runs = attack.controls()
page.problems()
task = attack.attack(spec, pair, row, other, runs)
attack.show(task, spec, theme)
links.claims_about(spec.mechanism)
all_mechanisms.board(spec, theme)
