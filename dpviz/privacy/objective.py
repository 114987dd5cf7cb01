"""Privacy of objective perturbation: minimise sum_i phi(<z_i, theta>) + Lam/2 |theta|^2 + <b, theta> and publish theta.

Everything is in the scale of the sum: b is N(0, sigma^2 I), Lam = n lam + Delta, |z_i| <= 1, |phi'| <= G,
0 <= phi'' <= beta. The map from theta to b is one to one, so the density of theta at a point is that of b there times
a Jacobian determinant, and the privacy loss between neighbours has two parts:

- the determinants' log-ratio, at most J = ln(1 + beta/Lam): a replacement adds one rank-one term, which is bounded,
  and removes one, which only helps (CMS 2011 bound both terms and get 2 J);
- b meets the shift v = g' - g between the gradients of the two rows at theta: (2<b, v> + |v|^2)/(2 sigma^2).

v depends on theta and so on b; treating <b, v> as if v were fixed is the gap in Kifer, Smith, Thakurta (2012). For
margin losses g = phi'(m) z keeps its line whatever theta is, which closes the gap. Both bounds are ours:

"two-sided" uses |phi'| <= G only: with s = G/sigma the loss is at most J + 2 s^2 + s(|u1| + |u2|) for a replacement,
J + s^2/2 + s|u| for an addition or removal, u standard normal, of any correlation.

"one-sided" uses that phi' has one sign, as for every loss that falls with the margin. Then v lies in the parallelogram
spanned by -G z and G z', the loss is convex in v, and its largest value is at a corner. Writing the corners as four
Gaussian densities at the vertices of a rhombus with side s, moving them from one collinear position to the other
changes the profile monotonically up to one point and back after it (the mixed kinks of their minimum cancel, the two
others are never active together), so the worst rows are collinear: z' = -z, where the loss is that of a Gaussian
mechanism of sensitivity 2 G, or z' = z. So delta(eps) = delta_Gauss(eps - J; 2 G/sigma), which rows far from all
others attain as Lam grows.

Noise with density proportional to exp(-kappa |b|/G) is pure: the loss is at most kappa |v|/G and the determinants' part, at
every theta. Bounded one by one they cost 2 kappa + J. `joint_remainder` bounds them together [ours]: the row that is added
at a slope t G, 0 <= t <= 1, costs kappa t, and for a sigmoid slope its curvature is at most 4 t (1 - t) beta, so that J is
at most ln(1 + 4 t (1 - t) beta/Lam) (a shorter row or one of less weight has both smaller at the same t). The row that is
taken away costs at most kappa, and its curvature only helps. So

    epsilon = max over t in [0, 1] of kappa (1 + t) + ln(1 + 4 t (1 - t) beta/Lam).

This is concave in t, its derivative is 0 at the one t > 1/2 with kappa t^2 - (kappa - 2) t = 1 + kappa Lam/(4 beta), and from
Lam >= 4 beta/kappa on the largest value is that of t = 1: curvature costs nothing. In two dimensions rows nearly orthogonal
to a long theta attain it, where the others' curvature is 0. A loss that is quadratic up to its steepest point, as the
Huberised hinge, has both at their bounds at once, and nothing is gained.
"""

import math
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtr

from dpviz.common.validate import InvalidInput, check_choice, positive
from dpviz.privacy.accounting.gaussian import gaussian_delta
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.search import smallest

BOUNDS = ("two-sided", "one-sided")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(160)


def curvature_term(beta: float, Lam: float) -> float:
    """J = ln(1 + beta/Lam), the most that one row's curvature adds to the privacy loss [ours]."""
    return math.log1p(beta / Lam)


def joint_remainder(epsilon: float, beta: float, Lam: float) -> float:
    """eps' = 2 kappa that noise may cost of a pure epsilon beside the curvature of a loss with a sigmoid slope [ours].

    kappa is the least (epsilon - ln(1 + 4 t (1 - t) beta/Lam))/(1 + t) over t: each kappa has its worst t, whose ratio is a
    smaller kappa, down to the root (Dinkelbach 1967).

    Returns:
        at most epsilon; 0 or less where curvature alone may cost more than epsilon.

    >>> round(joint_remainder(1.0, 0.25, 1.0), 4), joint_remainder(1.0, 0.25, 2.0)
    (0.9456, 1.0)
    """
    r, kappa, before = Lam / beta, epsilon / 2, math.inf
    while 0 < kappa < before:
        # the worst t, without cancellation for small kappa
        t = min(1.0, (4 + kappa * r) / (2 * (math.sqrt(kappa**2 * (1 + r) + 4) + 2 - kappa)))
        before, kappa = kappa, (epsilon - math.log1p(4 * t * (1 - t) / r)) / (1 + t)
    return 2 * min(kappa, before)


@dataclass(frozen=True)
class PerturbedObjective:
    """An objective to which Gaussian noise b is added, minimised exactly; a margin loss.

    Attributes:
        G: bound on |phi'| max|z|.
        beta: bound on phi'' max|z|^2.
        Lam: l2 regularisation of the sum, > 0.
        relation: the neighbouring relation.
        bound: "two-sided", or "one-sided" for losses whose slope has one sign.
    """

    G: float
    beta: float
    Lam: float
    relation: Neighbouring = Neighbouring.REPLACE_ONE
    bound: str = "two-sided"

    def __post_init__(self) -> None:
        check_choice("bound", self.bound, BOUNDS)
        positive("G", self.G)
        positive("Lam", self.Lam)
        if not 0 <= self.beta < math.inf:
            raise InvalidInput(
                "beta", f"must be finite and at least 0, got {self.beta}", "Give the largest curvature of the loss."
            )

    def delta(self, epsilon: float, sigma: float) -> float:
        """delta at which it is (epsilon, delta)-DP.

        Args:
            epsilon: >= 0.
            sigma: standard deviation per coordinate of b, > 0, in the scale of the sum.
        """
        s = self.G / positive("sigma", sigma)
        left = epsilon - curvature_term(self.beta, self.Lam)
        if self.relation is Neighbouring.ADD_REMOVE:
            profile = partial(_folded, s=s) if self.bound == "two-sided" else partial(_gauss, mu=s)
        elif self.bound == "two-sided":
            return _two_rows(left, s)
        else:
            profile = partial(_one_sided, s=s)
        # below 0 the integrand is positive everywhere: 1 - e^left E[e^-M], with M >= 0 the rest of the loss
        return profile(left) if left >= 0 else 1.0 - math.exp(left) * (1.0 - profile(0.0))

    def log_delta(self, epsilon: float, sigma: float) -> float:
        """ln of `delta`, at least that of 1e-300."""
        return math.log(max(self.delta(epsilon, sigma), 1e-300))

    def sigma(self, budget: Budget) -> float:
        """The smallest noise, in the scale of the sum, that meets a budget.

        Raises:
            InvalidInput: delta = 0, or the curvature term alone uses up epsilon.
        """
        return _sigma(self, budget)

    def epsilon(self, delta: float, sigma: float) -> float:
        """The smallest epsilon >= 0 that a noise scale gives at delta in (0, 1)."""

        def excess(epsilon: float) -> float:
            return self.log_delta(epsilon, sigma) - math.log(delta)

        return 0.0 if excess(0.0) <= 0 else smallest(excess, 0.0)


@lru_cache(maxsize=4096)
def _sigma(proof: PerturbedObjective, budget: Budget) -> float:
    budget.need_delta(fix="Choose delta > 0 or cms-objective, which is pure.")
    cost = curvature_term(proof.beta, proof.Lam)
    if cost >= budget.epsilon:
        cause = f"the curvature of one row alone costs {cost:.3g}"
        raise InvalidInput("epsilon", cause, "Raise lam, or add regularisation.")
    target = math.log(budget.delta)
    return smallest(lambda sigma: proof.log_delta(budget.epsilon, sigma) - target, math.log(proof.G), step=2.0)


def _gauss(left: float, mu: float) -> float:
    return float(gaussian_delta(left, mu))


def _folded(left: float, s: float) -> float:
    """E (1 - e^(left - s^2/2 - s|u|))_+ for left >= 0."""
    if left >= s * s / 2:
        return 2.0 * float(gaussian_delta(left, s))
    return 1.0 - 2.0 * math.exp(left + float(log_ndtr(-s)))


def _one_sided(left: float, s: float) -> float:
    """Replacement, slope of one sign: the larger of the two collinear positions (z' = -z, z' = z)."""
    return max(float(gaussian_delta(left, 2 * s)), _folded(left, s))


def _two_rows(left: float, s: float) -> float:
    """E (1 - e^(left - 2 s^2 - s(|u1| + |u2|)))_+ at the worst correlation of u1 and u2."""
    grid = np.linspace(0.0, 1.0, 61)  # symmetric in the sign of the correlation
    values = _two_rows_at(grid, left, s)
    k = int(values.argmax())
    best = float(values[k])
    if 0 < k < 60:  # refine where the worst case lies inside
        inside = minimize_scalar(
            lambda rho: -float(_two_rows_at(np.array([rho]), left, s)[0]),
            bounds=(grid[k - 1], grid[k + 1]),
            method="bounded",
            options={"xatol": 1e-6},
        )
        best = max(best, -float(inside.fun))
    return best


def _two_rows_at(rho: NDArray[np.float64], left: float, s: float) -> NDArray[np.float64]:
    """For each correlation: integral of s e^(e0 - s t) P(|u1| + |u2| > t) over t > max(e0, 0)/s, + (1 - e^e0)_+.

    |u1| + |u2| = max(|u1 + u2|, |u1 - u2|), and sum and difference are independent with variances 2 +- 2 rho, so
    P = p1 + p2 - p1 p2. The first two integrate in closed form, their product numerically.
    """
    e0 = left - 2 * s * s
    low = max(e0, 0.0) / s
    spreads = (np.sqrt(2 + 2 * rho), np.sqrt(np.maximum(2 - 2 * rho, 1e-30)))

    def single(c: NDArray[np.float64]) -> NDArray[np.float64]:
        head = np.exp(e0 - s * low + math.log(2) + log_ndtr(-low / c))
        return head - np.exp(e0 + (s * c) ** 2 / 2 + math.log(2) + log_ndtr(-low / c - s * c))

    t = low + 20.0 * (_NODES + 1.0)  # the product is below 1e-170 beyond low + 40
    both = 4 * ndtr(-t / spreads[0][:, None]) * ndtr(-t / spreads[1][:, None])
    product = (20.0 * _WEIGHTS * s * np.exp(e0 - s * t) * both).sum(axis=1)
    return single(spreads[0]) + single(spreads[1]) - product + -math.expm1(min(e0, 0.0))
