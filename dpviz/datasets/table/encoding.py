"""From a table to rows in the unit ball, as the papers do it: one-hot, min-max to [0, 1], then a scaling of the rows.

Ranges and category lists taken from the data are not covered by any epsilon; the app says so.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common import norms
from dpviz.common.validate import InvalidInput

INTERCEPT = "(intercept)"
_ROWS = 4096  # at once, so that what is made on the way is small
CENTRED, AUTOMATIC = "centred", "automatic"
#: ways into the unit ball, in words; the papers ask for |x| <= 1 only
SCALINGS: dict[str, str] = {
    CENTRED: "centred: numbers from their ranges to [−1, 1], all rows divided by √k/2 for k columns, longer ones clipped to 1",
    "unit": "unit length: each row divided by its own norm",
    "clip": "clip: rows with a norm above 1 clipped to 1",
    "bound": "largest possible norm: all rows divided by √k for k columns",
    "largest": "largest norm: all rows divided by the largest norm",
}


def min_max(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns to [0, 1] by their own range; a constant column becomes 0, because it tells nothing apart.

    >>> min_max(np.array([[1.0], [3.0], [2.0]])).ravel().tolist()
    [0.0, 1.0, 0.5]
    """
    low = values.min(axis=0)
    span = values.max(axis=0) - low
    return (values - low) / np.where(span > 0, span, 1.0)


def encode(frame: pd.DataFrame) -> tuple[NDArray[np.float64], list[str]]:
    """One-hot for text, categories and booleans, min-max for numbers.

    Args:
        frame: (n, columns), no missing values.

    Returns:
        (n, d) float64 in [0, 1] and the d column names ("column=value" for one-hot columns, in sorted order).
    """
    blocks: list[NDArray[np.float64]] = []
    names: list[str] = []
    for column in frame.columns:
        series = frame[column]
        if series.isna().any():
            raise InvalidInput(
                str(column), f"{int(series.isna().sum())} values are missing", "Drop those rows or choose a default value first."
            )
        if pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
            values = series.to_numpy(dtype=np.float64)
            if not np.isfinite(values).all():
                raise InvalidInput(str(column), "holds infinite values", "Remove or replace them.")
            blocks.append(min_max(values[:, None]))
            names.append(str(column))
        else:
            codes, levels = pd.factorize(series.astype(str), sort=True)
            blocks.append((codes[:, None] == np.arange(len(levels))).astype(np.float64))
            names.extend(f"{column}={level}" for level in levels)
    return np.hstack(blocks), names


@dataclass(frozen=True, eq=False)
class OneHot:
    """The 0/1 columns of a category in narrow form.

    Attributes:
        codes: (n,) column in which a row has its 1; -1 for none.
        width: number of columns.
    """

    codes: NDArray[np.int32]
    width: int


Block = OneHot | NDArray[np.float64]


def unit_rows_of(blocks: list[Block], intercept: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """((n, d) rows of unit norm, with the constant feature where it is wanted; (n,) norms that they had before).

    The same as `norms.unit` and `add_intercept`, written into one array: categories become wide only here, and nothing else is
    as large as the result.

    Args:
        blocks: (n, k) values or narrow categories, column by column; the list is emptied.
    """
    widths = [block.width if isinstance(block, OneHot) else block.shape[1] for block in blocks]
    n, d = len(blocks[0].codes if isinstance(blocks[0], OneHot) else blocks[0]), sum(widths)
    x = np.zeros((n, d + intercept))
    end = d
    while blocks:
        block, width = blocks.pop(), widths.pop()
        end -= width
        if isinstance(block, OneHot):
            coded = np.flatnonzero(block.codes >= 0)
            x[coded, end + block.codes[coded]] = 1.0
        else:
            x[:, end : end + width] = block
    before = np.empty(n)
    for start in range(0, n, _ROWS):
        part = x[start : start + _ROWS, :d]
        rows, norm, divisors = norms.scaled(part)
        before[start : start + _ROWS] = norm * divisors
        part[:] = rows / np.where(norm > 0, norm, 1.0)[:, None]
    if intercept:
        x[:, d] = 1.0
        x /= np.sqrt(2.0)
    return x, before


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


def centred(x: NDArray[np.float64], numbers: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n, d) rows with their numbers moved from [0, 1] to [-1, 1]; one-hot columns stay.

    Args:
        numbers: (d,) which columns are numbers with a range.

    >>> centred(np.array([[0.25, 1.0]]), np.array([True, False])).tolist()
    [[-0.5, 1.0]]
    """
    return np.where(numbers, 2.0 * x - 1.0, x)


def add_intercept(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """(x, 1)/sqrt 2: a constant feature that keeps rows of norm <= 1 in the unit ball.

    The intercept is regularised with the rest; otherwise the objective would not be strongly convex and every
    output- and objective-perturbation guarantee would be void.

    >>> add_intercept(np.array([[1.0, 0.0]])).round(3).tolist()
    [[0.707, 0.0, 0.707]]
    """
    made = np.hstack([x, np.ones((len(x), 1))])
    made /= np.sqrt(2.0)
    return made
