"""From a table to rows in the unit ball, as the papers do it: one-hot, min-max to [0, 1], then a scaling of the rows.

Ranges and category lists taken from the data are not covered by any epsilon; the app says so.
"""

import numpy as np
from numpy.typing import NDArray

INTERCEPT = "(intercept)"
CENTRED, AUTOMATIC = "centred", "automatic"
#: ways into the unit ball, in words; the papers ask for |x| <= 1 only
SCALINGS: dict[str, str] = {
    CENTRED: "centred: numbers from their ranges to [−1, 1], all rows divided by √k/2 for k columns, longer ones clipped to 1",
    "unit": "unit length: each row divided by its own norm",
    "clip": "clip: rows with a norm above 1 clipped to 1",
    "bound": "largest possible norm: all rows divided by √k for k columns",
    "largest": "largest norm: all rows divided by the largest norm",
}


def row_factors(norms: NDArray[np.float64], scaling: str, columns: int) -> NDArray[np.float64]:
    """(n,) factors that bring rows into the unit ball, one for each row.

    Args:
        norms: (n,) row norms.
        scaling: one of `SCALINGS`. "unit" is 1/|x| and "clip" min(1, 1/|x|): each row on its own, which costs no privacy.
            "bound" is 1/√k: numbers in [0, 1] and one-hot columns add at most 1 each to |x|², so no row is looked at.
            "largest" is 1/max |x| for all rows: it reads the largest norm from the rows. "centred" is min(2/√k, 1/|x|), for the
            norms of rows whose numbers are in [-1, 1]: each row on its own.
        columns: k, the columns of the table before one-hot encoding.
    """
    safe = np.where(norms > 0, norms, 1.0)
    if scaling == "unit":
        with np.errstate(over="ignore"):  # a norm below 1e-308 is as good as 0
            return np.asarray(1.0 / safe)
    if scaling == "clip":
        return 1.0 / np.maximum(1.0, safe)
    if scaling == CENTRED:
        return np.minimum(2.0 / np.sqrt(columns), 1.0 / np.maximum(safe, 1e-300))
    if scaling == "bound":
        return np.full(len(norms), 1.0 / np.sqrt(columns))
    return np.full(len(norms), 1.0 / safe.max(initial=1e-300))


def centre_numbers(x: NDArray[np.float64], numbers: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n, d) rows with their numbers moved from [0, 1] to [-1, 1]; one-hot columns stay.

    Args:
        numbers: (d,) which columns are numbers with a range.

    >>> centre_numbers(np.array([[0.25, 1.0]]), np.array([True, False])).tolist()
    [[-0.5, 1.0]]
    """
    return np.where(numbers, 2.0 * x - 1.0, x)


def constant_of(scaling: str) -> float:
    """c of the constant feature beside rows of this scaling: 1 as in the papers; ½ beside centred rows, whose offset is small.

    With ½ the other features keep 4/5 of the squared norm and not 1/2 (docs/default_rules.md has what that gains).
    """
    return 0.5 if scaling == CENTRED else 1.0
