"""The page Claims."""

#: what it keeps in the address beside the run
KEYS = ("about", "claim", "thorough")
