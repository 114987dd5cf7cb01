"""One search for the noise that a budget needs: where a monotone function of a positive number crosses 0.

`smallest` is for noise scales, and for the epsilon of a given noise; `largest_argument` is for sensitivity over noise (mu) and
for local budgets. Both search on a logarithmic scale and never stop on the side where the budget is exceeded.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

from scipy.optimize import brentq

from dpviz.common.validate import InvalidInput

_LARGE = 1e300  # stands for infinite values, which the root finder cannot interpolate
_RELATIVE = 2.5e-7  # of the tolerance, for each unit of |ln x|
_ROUNDING = 1e-12  # excess up to here is rounding of the function itself

NO_NOISE = InvalidInput(
    "epsilon", "no noise is large enough for this budget", "Choose a larger epsilon, a larger delta or another accountant."
)


def smallest(
    excess: Callable[[float], float],
    log_start: float,
    *,
    step: float = 1.0,
    tolerance: float = 1e-14,
    margin: float = 0.0,
    even: bool = False,
    limits: tuple[float, float] = (1e-300, 1e300),
    refusal: InvalidInput = NO_NOISE,
    towards: Literal[1, -1] = 1,
) -> float:
    """The smallest x at which excess(x) <= 0, for a function that falls as x grows; never below it.

    One bracket rule: steps of ln x from `log_start` that double until the sign changes. The root is then found to `tolerance`
    and raised until excess(x) <= 1e-12 holds at the very number that is returned.

    Args:
        excess: what x costs beyond what is allowed, for example ln delta minus its target.
        log_start: ln of a guess.
        step: the first step of ln x.
        tolerance: of ln x.
        margin: added to ln x before the check, for functions that are rough on the scale of the tolerance.
        even: all steps are equal, and the bracket reaches back to `log_start`: for cheap functions and known brackets.
        limits: (lowest, highest) x; the lowest is returned where it is enough.
        refusal: the error raised where even the highest x is not enough.
        towards: the direction of ln x in which excess falls; -1 is `largest_argument`.

    Raises:
        InvalidInput: `refusal`.
    """
    known: dict[float, float] = {}  # the root finder asks for both ends again, and the check for the root

    def bounded_excess(log_x: float) -> float:
        if log_x not in known:
            known[log_x] = max(-_LARGE, min(_LARGE, excess(math.exp(log_x))))
        return known[log_x]

    bounds = math.log(limits[0]), math.log(limits[1])
    ends = _bracket(bounded_excess, min(max(log_start, bounds[0]), bounds[1]), towards, step, even, bounds)
    if ends is None:
        raise refusal
    low, high = ends
    if low == high:
        return math.exp(low)
    root = float(brentq(bounded_excess, low, high, xtol=tolerance, rtol=max(8.9e-16, _RELATIVE * tolerance))) + towards * margin
    while bounded_excess(root) > _ROUNDING:
        root += towards * max(tolerance, 1e-15 * abs(root))
    return math.exp(root)


def _bracket(
    at: Callable[[float], float], first: float, towards: int, step: float, even: bool, bounds: tuple[float, float]
) -> tuple[float, float] | None:
    """Points with a change of sign between them; the last bound twice where it is allowed, None where even that is not."""
    over, here = at(first) > 0, first
    direction = towards if over else -towards
    last = bounds[1] if direction > 0 else bounds[0]
    while here != last:
        before, here = here, min(max(here + direction * step, bounds[0]), bounds[1])
        if (at(here) > 0) != over:
            start = first if even else before
            return min(start, here), max(start, here)
        step = step if even else 2 * step
    return None if over else (last, last)


def largest_argument(excess: Callable[[float], float], log_start: float, **how: Any) -> float:
    """The largest x at which excess(x) <= 0, for a function that grows with x; never above it.

    The mirror image of `smallest`: the highest x is returned where it is allowed, `refusal` is raised where even the lowest
    is not, and the margin is taken off.
    """
    return smallest(excess, log_start, towards=-1, **how)
