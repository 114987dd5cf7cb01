"""The page Groups."""

#: what it keeps in the address beside the run
KEYS = ("group", "cuts", "of", "threshold", "why")
