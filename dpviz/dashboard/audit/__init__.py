"""The page Audit."""

#: what it keeps in the address beside the run
KEYS = ("pair", "row", "other", "runs", "canaries", "attacked", "shadows")
