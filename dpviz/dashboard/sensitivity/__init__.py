"""The page Sensitivity."""

#: what it keeps in the address beside the run
KEYS = ("part", "algorithm", "over", "risk", "sizes", "table", "sort", "tn", "td", "te", "tdelta", "tt", "tk")
