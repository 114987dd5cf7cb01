"""The page Lessons."""

#: what it keeps in the address beside the run; every page knows "task", the lesson that it was opened for
KEYS = ("lesson", "given", "task")
