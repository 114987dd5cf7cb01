"""The page Accounting."""

#: what it keeps in the address beside the run
KEYS = ("compare", "relation", "q", "z", "releases")
