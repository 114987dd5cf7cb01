"""The page Lessons."""

#: what it keeps in the address beside the run
KEYS = ("lesson",)
