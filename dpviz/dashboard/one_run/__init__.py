"""The first page: one run."""

#: what it keeps in the address beside the run
KEYS = ("present", "training", "pinned")
