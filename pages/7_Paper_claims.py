"""Paper claims: every claim as a card with a test that can come out false."""

from dpviz.dashboard.claims import cards
from dpviz.dashboard.kit import panels
from dpviz.dashboard.shell import page, sidebar

theme = page.start("Paper claims")
spec = sidebar.sidebar(own=cards.OWN)
shown, full = cards.choose(spec)
page.problems()
cards.overview(shown, full, spec.seed)
if not shown:
    panels.empty("No claim of the four papers is about this mechanism. Choose “All four papers”, or another mechanism.")
for claim in shown:
    cards.card(claim, full, spec.seed, theme, opened=len(shown) <= 3)
