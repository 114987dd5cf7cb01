"""Privacy amplification by iteration: noise in every step of mini-batch SGD, and only the last iterate is released.

Feldman, Mironov, Talwar, Thakurta (FOCS 2018), Theorem 22: two runs w_k = psi_k(w_(k-1)) + N(0, sigma_k^2 I) of maps that are
1-Lipschitz, and differ by at most s_k, end within Rényi divergence (alpha/2) sum_k a_k^2/sigma_k^2, for any shifts a_k >= 0
whose partial sums stay below those of s_k and reach them at the end. A step on an L-smooth, mu-strongly convex objective is
rho_k-Lipschitz; divided by rho_1 ... rho_k it is 1-Lipschitz, so with P_k = prod_(i>k) rho_i shifts count P_k s_k and noise
P_k sigma_k [ours]. The best shifts are the slopes of the greatest convex minorant of the partial sums over the variance so far
[ours]. Their proof holds for trade-off functions too, where composition is that of Dong, Roth, Su (2022): the two runs differ as
N(0, 1) and N(m, 1) do, m^2 = sum_k a_k^2/sigma_k^2, which Bok, Su, Altschuler (ICML 2024) call shifted interpolation.
"""

import numpy as np
from scipy.optimize import isotonic_regression

from dpviz.common.arrays import Floats
from dpviz.privacy.sensitivity.algorithm2 import Algorithm2, contraction, log_factor

_LEAST = -300.0  # ln of the smallest contraction that is kept: its square is above 0, and nothing beside 1


def iteration(steps: Floats, batches: int, batch_size: float, mu: float, L: float, G: float = 1.0) -> tuple[Floats, float]:
    """Gaussian bounds on the last iterate of w <- w - eta_s (mean gradient + N(0, I)), and the spread of its noise.

    With noise of standard deviation sigma the bounds are divided by sigma, and the spread is multiplied by it. A projection on a
    closed convex set after each step changes nothing. Batches and steps must not depend on the data.

    Args:
        steps: (T,) step size of each epoch.
        batches: m, each used once an epoch in the same order.
        batch_size: size of the smallest batch, nu; one replaced row moves a step by at most 2 eta G/nu.
        mu, L: strong convexity (0: convex) and smoothness of the objective of every batch.

    Returns:
        (m,) m of the Gaussian pair for a replaced row in each batch: Rényi divergence alpha m^2/2, and the trade-off function.
        Standard deviation of the last iterate's noise along a direction that contracts as little as the bound allows.

    >>> one_pass, _ = iteration(np.array([1.0]), 4, 1, 0.0, 1.0)
    >>> one_pass**2 / 2  # Theorem 23: 2 G^2/(sigma^2 (n + 1 - t)) for row t
    array([0.5       , 0.66666667, 1.        , 2.        ])
    """
    Algorithm2(len(steps), batches, float(steps[0]), batch_size, mu, L, G)  # refuses what means nothing
    eta = np.repeat(steps, batches)
    log_rho = log_factor(contraction(eta, mu, L))
    log_later = log_rho[::-1].cumsum()[::-1] - log_rho
    top = max(0.0, float(log_later.max()))  # a common factor of distances and noise: only their ratio counts
    later = np.exp(np.maximum(log_later - top, _LEAST))
    moved = (2 * G / batch_size * eta * later).reshape(len(steps), batches)
    variance = ((eta * later) ** 2).reshape(moved.shape)
    # noise between two uses of the replaced row, its own step included: earlier noise cannot hide what is yet to come
    between = variance[:, ::-1].cumsum(axis=1)[:, ::-1]
    between[:-1, 1:] += variance[1:, :-1].cumsum(axis=1)
    slopes = [isotonic_regression(s / v, weights=v).x for s, v in zip(moved.T, between.T, strict=True)]
    return np.sqrt((np.array(slopes) ** 2 * between.T).sum(axis=1)), float(np.sqrt(variance.sum()) * np.exp(top))
