"""The losses of a table on its way to the rows that are trained on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lost:
    """One thing that was lost.

    Attributes:
        kind: "rows", "column", "values" or "lengths" (of rows, by scaling).
        what: the column; empty where rows were lost through several columns.
        count: rows or values that were lost; for a column, its values.
        sentence: all of it in words.
        share: for "lengths", the share of the features' variance that is lost.
        looked: whether the values of several rows decided it, so that it tells about them; epsilon does not cover that.
    """

    kind: str
    what: str
    count: int
    sentence: str
    looked: bool = False
    share: float = 0.0
