"""Audit: an attacker bets on one row, and claimed, proved and audited epsilon stand side by side."""

from dpviz.dashboard import audits, board, controls, parts

theme = parts.page("Audit")
spec = controls.sidebar(own=audits.OWN)
pair, row, other, runs = audits.controls()
parts.problems()
task = audits.attack(spec, pair, row, other, runs)
audits.show(task, spec, theme)
parts.claims_about(spec.mechanism)
board.board(spec, theme)
