"""The page Data."""

#: what it keeps in the address beside the run
KEYS = ("upload", "bounds")
