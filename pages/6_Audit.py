"""Audit: an attacker bets on one row, and claimed, proved and audited epsilon stand side by side."""

from dpviz.dashboard.audit import KEYS, all_mechanisms, attack
from dpviz.dashboard.shell import fields, links, page, sidebar

theme = page.start("Audit")
own = fields.Group(KEYS, attack.of)
spec = sidebar.sidebar(own)
pair, row, other, runs = attack.controls(own)
page.problems()
task = attack.attack(spec, pair, row, other, runs)
attack.show(task, spec, theme)
links.claims_about(spec.mechanism)
all_mechanisms.board(spec, theme)
