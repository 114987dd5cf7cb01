"""The first page: a story of five scenes, one control and one picture each."""

#: what it keeps in the address beside the run
KEYS = ("present", "scene", "who", "bets", "trainings", "pinned")
