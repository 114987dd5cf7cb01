"""Theorems that leave a constant open, refuted for every value of it: the exact privacy of one step over n rows [ours].

One step from theta = 0, logistic loss. One row lies on an axis of its own, e, and all others have nothing there. The slope at
0 is 1/2 whatever noise a row has, so the released coordinate along e is, up to a public factor,

    Z = y x_e [the row is in the batch] + sum of the e-coordinates of the noise of all B rows of the batch,

a sum of B independent N(0, sigma^2). Its distribution is known exactly, and so is the smallest epsilon at delta; the whole model
shows at least as much. What the theorems suppose holds here: rows in the unit ball, G = 1, and noise on a row reaches its
gradient with the weight (1/2)^2 > 0.

Input perturbation (Theorem 1; B = n, sigma ~ 1/n): the labels y = +1 and -1 of that row give N(+-1, n sigma^2), two Gaussians at
the distance 2/(sqrt(n) sigma) ~ sqrt(n/c) standard deviations.
DBDP (Theorem 1; B ~ sqrt(n), sigma ~ 1/sqrt(n)): the row against a row of zeros gives (1 - q) N(0, B sigma^2) + q N(1, B sigma^2)
against N(0, B sigma^2), at the distance 1/(sqrt(B) sigma) ~ n^(1/4)/c, with q = B/n.

Both distances are over sqrt(ln(1/delta)) as well. delta is `default_delta(n)`, below 1/n as it must be: with one delta for all n
the batch that holds the row would at last be rarer than delta.
"""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from dpviz.mechanisms import Calibration, Mechanism, protection
from dpviz.models import get_model
from dpviz.papers.claims.audits import CLAIMED
from dpviz.papers.claims.context import Context, Test
from dpviz.papers.claims.numerics import slope
from dpviz.papers.claims.tables import lines
from dpviz.papers.verdict import Outcome, Picture, Verdict
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, log_gaussian_delta
from dpviz.privacy.budget import Budget, default_delta
from dpviz.privacy.search import smallest

SIZES = tuple(10**k for k in range(3, 13))
CONSTANTS = (1.0, 4.0, 10.0, 30.0)
_LAM, _GROWS = 0.01, 0.02  # regularisation; how near to the derived exponent of n a fitted one is

#: (context, rows, c) -> (distance in standard deviations, exact epsilon at `default_delta`)
Exact = Callable[[Context, int, float], tuple[float, float]]


def input_perturbation_step(context: Context, n: int, c: float) -> tuple[float, float]:
    """One full step on rows with a draw of their own; the label of one row is the other one."""
    cal = _calibrated(context.build("input-perturbation", steps=1, c=c), n)
    distance = 2 / (math.sqrt(n) * cal.noise_scale)
    return distance, float(gaussian_epsilon(default_delta(n), distance))


def dbdp_step(context: Context, n: int, c: float) -> tuple[float, float]:
    """One step on a batch; one row is there, or a row of zeros."""
    cal = _calibrated(context.build("dbdp", steps=1, c=c), n)
    size = cal.details["batch_size"]
    distance = 1 / (math.sqrt(size) * cal.noise_scale)
    return distance, mixture_epsilon(size / n, distance, default_delta(n))


def mixture_epsilon(q: float, distance: float, delta: float) -> float:
    """The smallest epsilon >= 0 of (1 - q) N(0, 1) + q N(distance, 1) against N(0, 1) at a delta.

    delta(eps) = q delta_G(ln(1 + (e^eps - 1)/q)) exactly (Balle, Barthe, Gaboardi 2018, Theorem 2).
    """

    def excess(epsilon: float) -> float:
        inner = epsilon + math.log1p((q - 1) * math.exp(-epsilon)) - math.log(q)
        return max(-1e300, math.log(q) + float(log_gaussian_delta(inner, distance)) - math.log(delta))

    return 0.0 if excess(1e-9) <= 0 else smallest(excess, 0.0)


def constant_test(mechanism: str, exact: Exact, exponent: float) -> Test:
    """Some constant c makes the theorem's noise enough for every number of rows.

    Args:
        exponent: of n in the distance, by the derivation.
    """

    def test(context: Context) -> Verdict:
        found = {c: [exact(context, n, c) for n in SIZES] for c in CONSTANTS}
        # noise grows with sqrt(ln(1/delta)) as well
        grows = slope(
            *np.array([(n, d * math.sqrt(-math.log(default_delta(n)))) for n, (d, _) in zip(SIZES, found[1.0], strict=True)]).T
        )
        first = {c: next((n for n, (_, e) in zip(SIZES, each, strict=True) if e > CLAIMED), None) for c, each in found.items()}
        refuted = abs(grows - exponent) < _GROWS and all(n is not None for n in first.values())
        table = pd.concat(
            [
                # a bound of 0 has no place on a logarithmic axis
                lines("bounds", f"c = {c:g}", mechanism, SIZES, np.array([[e if e > 0 else math.nan] for _, e in each]))
                for c, each in found.items()
            ]
        )
        return Verdict(
            Outcome.FAILS if refuted else Outcome.UNDECIDED,
            f"One row moves the model by a multiple of the noise that grows as n^{grows:.2f}, whatever c is: for every constant "
            "there is a number of rows from which on the claim is exceeded."
            if refuted
            else "The distance does not grow as derived, or a constant was not exceeded.",
            f"Fails if the exact ε of one step exceeds the claimed {CLAIMED:g} at some number of rows up to {SIZES[-1]:.0e} for "
            f"each of these c, and the distance in standard deviations times √ln(1/δ) grows as n^{exponent:g} (within "
            f"{_GROWS:g}). δ is 1e-5, and at most 1/(10 n). Computed in closed form from the distribution of what is released; "
            "an audit would hardly see the rare event.",
            (
                ("Fitted exponent of n", f"{grows:.3f}"),
                *((f"ε above {CLAIMED:g} from n, c = {c:g}", "none" if n is None else f"{n:,}") for c, n in first.items()),
                *((f"ε at n = {SIZES[2]:,}, c = {c:g}", f"{each[2][1]:.2f}") for c, each in found.items()),
            ),
            "",
            table,
            Picture("training rows n", "ε of one step", log_x=True, log_y=True, limit=CLAIMED, limit_label="claimed"),
        )

    return test


def _calibrated(mechanism: Mechanism, n: int) -> Calibration:
    return protection.calibrate(mechanism, get_model("logistic").setting(n, 2, _LAM), Budget(CLAIMED, default_delta(n)))
