"""The page Trade-off."""

#: what it keeps in the address beside the run
KEYS = ("methods", "knobs", "from", "to", "points", "shown", "band", "want", "odds", "figure", "tune", "by")
