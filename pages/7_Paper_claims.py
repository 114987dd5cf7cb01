"""Paper claims: every claim as a card with a test that can come out false."""

from dpviz.dashboard.claims import KEYS, cards
from dpviz.dashboard.kit import panels
from dpviz.dashboard.shell import fields, page, sidebar

theme = page.start("Paper claims")
own = fields.Group(KEYS, cards.of)
spec = sidebar.sidebar(own)
shown, full = cards.choose(spec, own)
page.problems()
cards.overview(shown, full, spec.seed)
if not shown:
    panels.empty("No claim of the four papers is about this mechanism. Choose “All four papers”, or another mechanism.")
for claim in shown:
    cards.card(claim, full, spec.seed, theme, opened=len(shown) <= 3)
