"""The page One model."""

#: what it keeps in the address beside the run
KEYS = ("training", "pinned")
