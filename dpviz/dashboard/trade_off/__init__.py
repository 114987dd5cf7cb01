"""The page Trade-off."""

#: what it keeps in the address beside the run
KEYS = (
    "methods",
    "knobs",
    "from",
    "to",
    "points",
    "shown",
    "band",
    "want",
    "want_loss",
    "odds",
    "figure",
    "tune",
    "by",
    "repeats",
)
