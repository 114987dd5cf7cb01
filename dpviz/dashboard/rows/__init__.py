"""The page Influence and noise."""

#: what it keeps in the address beside the run
KEYS = ("row", "other", "x", "y", "share")
