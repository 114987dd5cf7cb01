"""Epsilon of one person: what a run gives away about row i, given all other rows as they are.

A worst-case epsilon holds for every possible dataset; an individual one compares this dataset with the one that lacks
row i (n stays public) or has another row in its place. It is a diagnostic: it is computed from private data, so the
numbers themselves reveal data and no budget of the run covers them (Redberg & Wang, NeurIPS 2021, give an example in
which publishing them discloses the dataset).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import gammaln, logsumexp, ndtri

from dpviz.privacy.calibration import gaussian_epsilon
from dpviz.validate import InvalidInput, in_range, positive

Floats = NDArray[np.float64]

DIAGNOSTIC = (
    "Diagnostic for whoever owns the data: individual ε is computed from private rows, reveals data itself and is not "
    "covered by the run's guarantee."
)

#: Renyi orders of the subsampled Gaussian, integers as the closed form needs them
ORDERS = np.unique(np.r_[2:64, np.geomspace(64, 1024, 25).astype(int)])


_KNOTS = 4000


@dataclass(frozen=True)
class IndividualEpsilon:
    """Individual epsilon of n training rows, for S seeds or one value for all of them.

    Attributes:
        epsilon: (S, n) or (1, n): this dataset against the one without row i.
        delta: its delta; 0 for pure and for ex-post values.
        method: how it was computed and from which publication, for people.
        replace: the same shape: upper bound over every row that could stand in place of row i; None where there is none.
        publishable: the same shape: bound that may be told to person i without extra budget; None where there is none.
        conditions: what must hold for the numbers to be what they say.
        caveat: goes wherever a number is shown.
    """

    epsilon: Floats
    delta: float
    method: str
    replace: Floats | None = None
    publishable: Floats | None = None
    conditions: tuple[str, ...] = ()
    caveat: str = DIAGNOSTIC


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
        energy: (..., n) sum over the steps of the squared length of the row's clipped gradient.
        steps: number of steps.
        bound: longest gradient that any row may contribute, min(C, G).
        sigma: noise scale on the *sum* of gradients, n times the noise on their mean.
        delta: in (0, 1).

    Returns:
        Epsilon without the row, and a bound over all rows in its place: |g_i - g'| <= |g_i| + bound in every step, so by
        Minkowski mu <= (sqrt(energy) + bound sqrt(steps))/sigma [ours].
    """
    length = np.sqrt(np.asarray(energy, float))
    scale = positive("sigma", sigma)
    return gaussian_epsilons(delta, length / scale), gaussian_epsilons(delta, (length + bound * np.sqrt(steps)) / scale)


def poisson_rdp(orders: NDArray[np.integer], q: float, multipliers: Floats) -> Floats:
    """(multipliers, orders) Renyi divergence of one Poisson-subsampled Gaussian release, add/remove.

    Mironov, Talwar, Zhang 2019, section 3.3: ln( sum_k C(a,k) (1-q)^(a-k) q^k e^{k(k-1)/(2 z^2)} ) / (a - 1), a integer.
    """
    z = np.asarray(multipliers, float)
    out = np.empty((len(z), len(orders)))
    for column, a in enumerate(orders):
        k = np.arange(a + 1)
        weight = gammaln(a + 1) - gammaln(k + 1) - gammaln(a - k + 1) + k * np.log(q)
        # at q = 1 only k = a is left
        weight = weight + (a - k) * np.log1p(-q) if q < 1 else np.where(k == a, weight, -np.inf)
        out[:, column] = logsumexp(weight + k * (k - 1) / (2 * z[:, None] ** 2), axis=1) / (a - 1)
    return np.maximum(out, 0.0)


def poisson_path(counts: NDArray[np.integer], edges: Floats, q: float, noise_multiplier: float, delta: float) -> Floats:
    """DP-SGD with Poisson batches: Renyi sums over the realised path with each row's own noise multiplier.

    Feldman & Zrnic, NeurIPS 2021, with Mironov, Talwar, Zhang 2019: sum_t R(a; q, z C/|clipped g_i(theta_t)|). All steps
    count, also those whose batch left the row out. Norms are rounded up to bin edges, so epsilon is rounded up.

    Args:
        counts: (..., n, B) steps in which the row's clipped gradient fell into each bin; they sum to the steps.
        edges: (B,) upper edges of the bins as shares of the clip norm, ascending in [0, 1]; 0 is a bin of its own.
        q: sampling probability, in (0, 1].
        noise_multiplier: z, noise on the sum divided by the clip norm.
        delta: in (0, 1).

    Returns:
        (..., n) epsilon without the row (add/remove).
    """
    share = np.asarray(edges, float)
    if share.ndim != 1 or np.any(np.diff(share) <= 0) or share[0] < 0 or share[-1] > 1:
        raise InvalidInput("edges", "must ascend within [0, 1]", "Give the upper edges of the bins as shares of the clip norm.")
    if counts.shape[-1] != len(share):
        raise InvalidInput("counts", f"has {counts.shape[-1]} bins for {len(share)} edges", "Give one count for each edge.")
    in_range("q", q, 1e-12, 1.0)
    table = np.zeros((len(share), len(ORDERS)))
    visible = share > 0
    table[visible] = poisson_rdp(ORDERS, q, positive("noise_multiplier", noise_multiplier) / share[visible])
    return rdp_epsilon(counts.astype(float) @ table, delta)


def rdp_epsilon(divergence: Floats, delta: float) -> Floats:
    """(..., ) epsilon from (..., orders) Renyi divergences at `ORDERS`.

    Canonne, Kamath, Steinke 2020, Proposition 12: min_a R(a) + ln((a-1)/a) - (ln delta + ln a)/(a - 1).
    """
    a = ORDERS.astype(float)
    eps = divergence + np.log1p(-1 / a) - (np.log(delta) + np.log(a)) / (a - 1)
    # the conversion does not see that nothing at all was released
    return np.where(divergence.max(axis=-1) == 0, 0.0, np.maximum(eps.min(axis=-1), 0.0))


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
    It uses row i itself, so it may be told to person i and to no one else.

    Args:
        lam_sum: Lam = n lam + Delta, regularisation of the sum-normalised objective.
        rho: probability with which the bound may fail, in (0, 1).
    """
    scale = positive("sigma", sigma)
    pull = np.abs(slope) * norm
    quantile = -ndtri(in_range("rho", rho, 1e-300, 1.0) / 2)
    return np.log1p(curvature * norm**2 / positive("lam_sum", lam_sum)) + pull**2 / (2 * scale**2) + pull * quantile / scale
