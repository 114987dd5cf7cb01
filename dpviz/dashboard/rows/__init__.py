"""The page Person."""

#: what it keeps in the address beside the run
KEYS = ("row", "other", "x", "y", "colour")
