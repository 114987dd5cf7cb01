"""A worst-case sensitivity with its source."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """A worst-case sensitivity from one source.

    Attributes:
        label: short name for people.
        value: L2 distance under replace-one.
        formula: LaTeX.
        source: author, year, number.
        proved: False where the published bound was stated for another step size or rests on more than is checked.
    """

    label: str
    value: float
    formula: str
    source: str
    proved: bool = True
