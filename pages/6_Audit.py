"""Audit: an attacker bets on one row, and claimed, proved and audited epsilon stand side by side."""

from dpviz.dashboard.audit import all_mechanisms, attack
from dpviz.dashboard.kit import parts
from dpviz.dashboard.shell import sidebar

theme = parts.page("Audit")
spec = sidebar.sidebar(own=attack.OWN)
pair, row, other, runs = attack.controls()
parts.problems()
task = attack.attack(spec, pair, row, other, runs)
attack.show(task, spec, theme)
parts.claims_about(spec.mechanism)
all_mechanisms.board(spec, theme)
