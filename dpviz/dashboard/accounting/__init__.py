"""The page Privacy accounting."""

#: what it keeps in the address beside the run
KEYS = ("compare", "relation", "q", "z", "releases")
