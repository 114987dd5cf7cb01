"""The page Groups and scores."""

#: what it keeps in the address beside the run
KEYS = ("group", "cuts", "of", "threshold", "why")
#: what "Influence and noise" keeps of it, to show who pays among the same rows
PAYS = ("group", "cuts", "why")
