"""The page Guarantees."""

#: what it keeps in the address beside the run
KEYS = ("order", "attacker")
