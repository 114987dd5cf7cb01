"""The cost of a preparation: what a release about the rows before training took of a run's budget. It travels with the rows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paid:
    """A preparation that was made, with its guarantee for the unit of the run's budget.

    Attributes:
        id: of the preparation.
        what: the name of what was found, in words.
        mu: its release is mu-Gaussian DP.
        epsilon: its release is epsilon-DP with delta = 0; 0 where it is not.
        condition: what the guarantee supposes beside the noise; "" for nothing.
    """

    id: str
    what: str
    mu: float
    epsilon: float = 0.0
    condition: str = ""
