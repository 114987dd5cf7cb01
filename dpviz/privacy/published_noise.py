"""Noise formulas of three publications of Kang et al., exactly as printed, each with its open constant.

Kang-IP: Kang, Liu, Niu, Tong, Zhang, Wang, "Input Perturbation: A New Paradigm between Central and Local
Differential Privacy". Kang-DBDP: Kang, Liu, Ding, Liu, Tong, Wang, "Differentially Private ERM Based on Data
Perturbation". Kang-PIDP: Kang, Li, Liu, Wang, "Data Heterogeneity Differential Privacy: From Theory to Algorithm".

None of these functions is a proof: the constant c is left open in print, and the arguments have gaps that the
mechanisms name. Common arguments: `lipschitz` is G, `n` the number of training rows, `steps` the iterations T,
`epsilon` and `delta` the budget, `c` the open constant (1 where nothing better is known).
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.validate import positive


def input_perturbation_sigma(
    n: int,
    steps: int,
    epsilon: float,
    delta: float,
    *,
    lipschitz: float = 1.0,
    strong_convexity: float | None = None,
    c: float = 1.0,
) -> float:
    """Standard deviation on every feature, Kang-IP eq. (9), or eq. (12) without strong convexity.

    sigma^2 = c G^2 T ln(1/delta) / (n (n - 1) sqrt(Delta) eps^2); the PL form leaves sqrt(Delta) out.

    Args:
        strong_convexity: Delta > 0, or None for the PL form.
    """
    root = 1.0 if strong_convexity is None else math.sqrt(positive("strong_convexity", strong_convexity))
    return math.sqrt(c * lipschitz**2 * steps * math.log(1 / delta) / (n * (n - 1) * root)) / epsilon


def dbdp_sigma(q: float, steps: int, epsilon: float, delta: float, *, lipschitz: float = 1.0, c: float = 1.0) -> float:
    """Standard deviation on every feature, Kang-DBDP eq. (10): sigma = c q G sqrt(T ln(1/delta)) / eps.

    Args:
        q: sampling probability |B|/n; the theorem asks for q of the same order as 1/|B|, that is q ~ n^(-1/2).
    """
    return c * q * lipschitz * math.sqrt(steps * math.log(1 / delta)) / epsilon


def sgd_sigma(n: int, steps: int, epsilon: float, delta: float, *, lipschitz: float = 1.0, c: float = 1.0) -> float:
    """c G sqrt(T ln(1/delta)) / (n eps).

    The gradient noise of Kang-PIDP eq. (2) and Theorem 5 (with epsilon_1, delta_1), and the data noise of
    Kang-DBDP eq. (15) for a row of weight w = 1.
    """
    return c * lipschitz * math.sqrt(steps * math.log(1 / delta)) / (n * epsilon)


def contribution_sigma(n: int, rounds: int, zeta: float, epsilon: float, delta: float, *, lipschitz: float) -> float:
    """Noise on a row's contribution, Kang-PIDP proof of Theorem 5: 2 sqrt 2 G R sqrt(ln(1.25 R/delta_2)) / (n zeta eps_2).

    Args:
        rounds: R.
        zeta: smallest eigenvalue of the Hessian.
        epsilon, delta: epsilon_2, delta_2.
    """
    return 2 * math.sqrt(2) * lipschitz * rounds * math.sqrt(math.log(1.25 * rounds / delta)) / (n * zeta * epsilon)


def pidp_passes(contribution: Floats, radius: float, epsilon: float, delta: float) -> NDArray[np.bool_]:
    """Kang-PIDP Algorithm 1, lines 9 and 10, as printed: whether rows train without noise.

    Both lines are multiplied through by e^(-eps_1), so that no epsilon overflows; nothing else is changed.

    Args:
        contribution: (..., m) values c_t after line 9's noise.
        radius: r.
        epsilon, delta: epsilon_1, delta_1.
    """
    size = np.abs(contribution)  # sign([c]_i) [c]_i
    whole = 2 * radius * delta  # 2 r e^eps delta / e^eps
    taken = -math.expm1(-epsilon) * size  # (e^eps - 1) sign(c) c / e^eps
    too_large = (size >= whole / -math.expm1(-epsilon)).any(axis=-1)  # line 9: jump to line 13
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(whole / (whole - taken))  # line 10; where it is undefined line 9 has decided already
        small = (loss <= 2 * epsilon).all(axis=-1)
    return np.asarray(~too_large & small)


def pidp_threshold(radius: float, epsilon: float, delta: float) -> float:
    """The one number that lines 9 and 10 compare max_i |[c_t]_i| with [ours].

    Line 10 says ln(A/(A - B)) <= eps + ln kappa with A = 2 r kappa delta and B = (kappa - 1)|c|, that is
    B <= A (1 - e^-eps/kappa), hence |c| <= 2 r delta (kappa - e^-eps)/(kappa - 1). The paper sets kappa = e^eps,
    which gives 2 r delta (1 + e^-eps): it *falls* as epsilon grows. Line 9's bound 2 r kappa delta/(kappa - 1) is
    always larger, so line 9 never decides. Any value above 2 r delta is reached by some kappa > 1.
    """
    return 2 * radius * delta * (1 + math.exp(-epsilon))


def ratio_norm(model: Floats, contribution: Floats) -> Floats:
    """|(c + theta)/theta|_2 of Kang-DBDP Algorithm 2, line 9, division by elements.

    A ratio is 1 where its contribution is 0, whatever theta is; elsewhere theta = 0 gives infinity.

    Args:
        model, contribution: (..., m).
    """
    with np.errstate(over="ignore"):
        return np.linalg.norm(1 + _relative(model, contribution), axis=-1)


def largest_log_ratio(model: Floats, contribution: Floats) -> Floats:
    """max_i |ln((c_i + theta_i)/theta_i)|, infinite where a ratio is not positive.

    The rule that the text around Kang-DBDP line 9 describes, e^-eps <= (c_i + theta_i)/theta_i <= e^eps for every
    element, is: this number is at most epsilon.
    """
    change = _relative(model, contribution)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(change > -1, np.abs(np.log1p(change)), np.inf).max(axis=-1)


def _relative(model: Floats, contribution: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(contribution == 0, 0.0, contribution / model)
