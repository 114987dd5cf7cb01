"""Epsilon of one person: what a run gives away about row i, given all other rows as they are.

A worst-case epsilon holds for every possible dataset; an individual one compares this dataset with the one that lacks
row i (n stays public) or has another row in its place. It is a diagnostic: it is computed from private data, so the
numbers themselves reveal data and no budget of the run covers them (Redberg & Wang, NeurIPS 2021, give an example in
which publishing them discloses the dataset).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtri

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_range, positive
from dpviz.privacy.accounting.events import Sampled
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.accounting.rdp import sampled_gaussian

DIAGNOSTIC: str = (
    "Diagnostic for the data's owner: individual ε is computed from private rows, reveals data itself and is not "
    "covered by the run's guarantee."
)

#: Renyi orders of the subsampled Gaussian, fewer than `rdp.ORDERS` because there is a curve for every row
ORDERS: tuple[int, ...] = (*range(2, 64), *(int(64 * 2 ** (k / 6)) for k in range(25)))

_KNOTS = 4000  # exact values below many Gaussian epsilons
_SHARES = 128  # intervals between exact divergences of a Poisson step, even in u and so fine where u^2 is small


@dataclass(frozen=True)
class IndividualEpsilon:
    """Individual epsilon of n training rows, for S seeds or one value for all of them.

    Attributes:
        epsilon: (S, n) or (1, n): this dataset against the one without row i.
        delta: its delta; 0 for pure and for ex-post values.
        method: how it was computed and from which publication, for people.
        replace: the same shape: upper bound over every row that could stand in place of row i; None where there is none.
        publishable: the same shape: bound that may be reported to person i without extra budget; None where there is none.
        conditions: what must hold for the numbers to be what they say.
        caveat: goes wherever a number is shown.
        gaussian: whether epsilon is that of two Gaussians at its delta, so that the whole trade-off curve is known.
    """

    epsilon: Floats
    delta: float
    method: str
    replace: Floats | None = None
    publishable: Floats | None = None
    conditions: tuple[str, ...] = ()
    caveat: str = DIAGNOSTIC
    gaussian: bool = False


def gaussian_epsilons(delta: float, mu: Floats) -> Floats:
    """`gaussian_epsilon` for very many mu: a cubic spline through exact values; absolute error below 1e-8 (1 + epsilon)."""
    values = np.asarray(mu, float)
    if values.size <= _KNOTS:
        return gaussian_epsilon(delta, values)
    # total variation 2 Phi(mu/2) - 1 reaches delta here; below, epsilon is 0
    start = 2 * ndtri((1 + delta) / 2)
    stop = max(values.max() * (1 + 1e-9), start * 1.01)
    knots = np.geomspace(start, stop, _KNOTS)
    spline = CubicSpline(np.log(knots), gaussian_epsilon(delta, knots))
    return np.where(values <= start, 0.0, np.maximum(spline(np.log(np.maximum(values, start))), 0.0))


def gaussian_output(
    change: Floats, sigma: float, delta: float, reach: float | None = None, cap: float = np.inf
) -> tuple[Floats, Floats | None]:
    """Output perturbation with N(0, sigma^2 I): the exact epsilon of two Gaussians |theta* - theta_{-i}| apart.

    Wang, J. Privacy and Confidentiality 9(1), 2019 (per-instance DP), with the exact Gaussian of Balle & Wang 2018.

    Args:
        change: (n,) |theta_{-i} - theta*|.
        sigma: noise scale, > 0.
        delta: in (0, 1).
        reach: how far any row can move the minimiser of the other rows, G/(n lam); with it, a row in place of i moves
            the minimiser by at most change + reach [ours: triangle inequality through theta_{-i}].
        cap: sensitivity under replace-one, which no replacement exceeds.

    Returns:
        (n,) epsilon, and (n,) bound over replacements (None without reach).
    """
    scale = positive("sigma", sigma)
    worst = None if reach is None else gaussian_epsilons(delta, np.minimum(change + reach, cap) / scale)
    return gaussian_epsilons(delta, change / scale), worst


def gamma_output(change: Floats, scale: float, reach: float | None = None, cap: float = np.inf) -> tuple[Floats, Floats | None]:
    """Output perturbation with density ~ exp(-|b|/scale): pure epsilon |theta* - theta_{-i}| / scale, attained.

    Args and returns as in `gaussian_output`.
    """
    unit = positive("scale", scale)
    return change / unit, None if reach is None else np.minimum(change + reach, cap) / unit


def gaussian_path(energy: Floats, steps: int, bound: float, sigma: float, delta: float) -> tuple[Floats, Floats]:
    """Noisy full-batch gradient descent: mu_i^2 = sum_t |clipped g_i(theta_t)|^2 / sigma^2 along the realised path.

    Feldman & Zrnic, NeurIPS 2021 (Renyi filters); Koskela, Tobaben, Honkela, ICLR 2023 (Gaussian DP).

    Args:
        energy: (..., n) sum over the steps of the squared norm of the row's clipped gradient.
        steps: number of steps.
        bound: longest gradient that any row may contribute, min(C, G).
        sigma: noise scale on the *sum* of gradients, n times the noise on their mean.
        delta: in (0, 1).

    Returns:
        Epsilon without the row, and a bound over all rows in its place: |g_i - g'| <= |g_i| + bound in every step, so by
        Minkowski mu <= (sqrt(energy) + bound sqrt(steps))/sigma [ours].
    """
    norm = np.sqrt(np.asarray(energy, float))
    scale = positive("sigma", sigma)
    return gaussian_epsilons(delta, norm / scale), gaussian_epsilons(delta, (norm + bound * np.sqrt(steps)) / scale)


@dataclass(frozen=True)
class PoissonPath:
    """Gaussian steps with Poisson batches, looked at from one row: Renyi sums along the realised path.

    Feldman & Zrnic, NeurIPS 2021, with Mironov, Talwar, Zhang 2019: sum_t R(a; q, z/u_t), where u_t is the norm of
    the row's clipped gradient as a share of the largest one. All steps count, also those whose batch left the row out.

    Attributes:
        event: one step.
    """

    event: Sampled

    @cached_property
    def table(self) -> Floats:
        """(knots, orders) divergence of one step at u = 0, 1/K, ..., 1 and at `ORDERS`."""
        shares = np.arange(1, _SHARES + 1) / _SHARES
        rows = [sampled_gaussian(self.event.rate, self.event.event.noise_multiplier / u, ORDERS) for u in shares]
        return np.vstack([np.zeros(len(ORDERS)), *rows])

    def divergence(self, shares: Floats) -> Floats:
        """(n, orders) divergences of n rows, never below the exact ones.

        In u^2 the divergence is convex, a logarithm of a sum of exponentials of multiples of u^2, so the chord between
        two knots lies above it [ours].

        Args:
            shares: (n, T) norms of clipped gradients as shares of the largest one, in [0, 1].
        """
        if shares.ndim != 2 or not (np.all(shares >= 0) and np.all(shares <= 1 + 1e-9)):
            raise InvalidInput("shares", "must be (rows, steps) numbers in [0, 1]", "Divide clipped norms by the clip norm.")
        place = np.minimum(shares * _SHARES, _SHARES)
        low = np.minimum(place.astype(np.int32), _SHARES - 1)
        place = (np.square(place) - np.square(low)) / (2 * low + 1)  # between the squares of two knots
        low += np.arange(0, len(low) * (_SHARES + 1), _SHARES + 1, dtype=np.int32)[:, None]
        size, low, place = len(low) * (_SHARES + 1), low.ravel(), place.ravel()
        upper = np.bincount(low, place, minlength=size)
        weights = np.bincount(low, minlength=size) - upper
        weights[1:] += upper[:-1]
        return np.maximum(weights.reshape(-1, _SHARES + 1) @ self.table, 0.0)


def objective_ex_post(slope: Floats, curvature: Floats, norm: Floats, leverage: Floats, noise: Floats, sigma: float) -> Floats:
    """Objective perturbation: the privacy loss about row i at the very model that was released, |ln p_D/p_{D-i}|.

    Redberg & Wang, NeurIPS 2021 (ex-post per-instance DP), for a linear model with N(0, sigma^2 I) added
    to the sum-normalised gradient, J = sum phi + Lam/2 |theta|^2 + b.theta, minimised exactly. At theta,
    b_{D-i} = b + g_i and the Jacobians differ by the factor 1 - phi'' leverage.

    Args:
        slope, curvature: (n,) phi' and phi'' at the row's margin under theta.
        norm: (n,) |x_i|.
        leverage: (n,) x_i' (grad^2 J_D(theta))^{-1} x_i.
        noise: (n,) y_i b.x_i for the noise b = -grad J_D(theta) (without the linear term).
        sigma: noise scale, > 0.

    Returns:
        (n,) epsilon of removing the row.
    """
    variance = positive("sigma", sigma) ** 2
    return np.abs(-np.log1p(-curvature * leverage) + slope * noise / variance + (slope * norm) ** 2 / (2 * variance))


def objective_publishable(slope: Floats, curvature: Floats, norm: Floats, lam_sum: float, sigma: float, rho: float) -> Floats:
    """Bound on `objective_ex_post` that depends on the others' data through the released model alone.

    Redberg & Wang, NeurIPS 2021: ln(1 + phi''|x|^2/Lam) + |phi'|^2|x|^2/(2 sigma^2)
    + |phi'||x| Phi^{-1}(1 - rho/2)/sigma, valid for one row with probability 1 - rho over the noise.
    It uses row i itself, so it may be reported to person i and to no one else.

    Args:
        lam_sum: Lam = n lam + Delta, regularisation of the sum-normalised objective.
        rho: probability with which the bound may fail, in (0, 1).
    """
    scale = positive("sigma", sigma)
    g_norm = np.abs(slope) * norm
    quantile = -ndtri(check_range("rho", rho, 1e-300, 1.0) / 2)
    return np.log1p(curvature * norm**2 / positive("lam_sum", lam_sum)) + g_norm**2 / (2 * scale**2) + g_norm * quantile / scale
