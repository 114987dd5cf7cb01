"""Paper claims: every claim as a card with a test that can come out false."""

from dpviz.dashboard import cards, controls, parts

theme = parts.page("Paper claims")
spec = controls.sidebar(own=cards.OWN)
shown, full = cards.choose(spec)
parts.problems()
cards.overview(shown, full, spec.seed)
if not shown:
    parts.empty("No claim of the four papers is about this mechanism. Choose “All four papers”, or another mechanism.")
for claim in shown:
    cards.card(claim, full, spec.seed, theme, opened=len(shown) <= 3)
