"""What a mechanism publishes, in the few numbers that an accountant needs, and what its noise is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from dpviz.common.validate import InvalidInput, positive
from dpviz.common.words import Words
from dpviz.privacy.accounting import rdp, steps
from dpviz.privacy.accounting.gaussian import log_gaussian_delta
from dpviz.privacy.accounting.mixture import mixture_rdp_epsilon, rdp_to_epsilon
from dpviz.privacy.accounting.steps import Method, Steps
from dpviz.privacy.budget import Neighbouring
from dpviz.privacy.search import smallest

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Releases:
    """Gaussian releases: `count` steps, each a query plus N(0, sigma^2 I).

    Attributes:
        sensitivities: (J,) L2 distances that replacing one row can cause in one release, > 0. J > 1 where secret
            randomness that does not depend on data picks one of them.
        weights: (J,) its probabilities.
        count: releases, >= 1.
        rate: share of the rows in each release; below 1 for Poisson batches, where J is 1 and the sensitivity is twice
            what one row contributes.
    """

    sensitivities: Floats
    weights: Floats
    count: int = 1
    rate: float = 1.0

    @classmethod
    def one(cls, sensitivity: float, count: int = 1, rate: float = 1.0) -> Releases:
        """Releases of one fixed sensitivity."""
        return cls(np.array([positive("sensitivity", sensitivity)]), np.ones(1), count, rate)

    def __post_init__(self) -> None:
        if len(self.sensitivities) > 1 and (self.rate < 1 or self.count > 1):
            raise InvalidInput("sensitivities", "random sensitivities are accounted for in one release only", "Give the largest.")

    @property
    def worst(self) -> float:
        """The largest sensitivity of one release."""
        return float(self.sensitivities.max())

    @property
    def total(self) -> float:
        """Sensitivity of all releases together where every row is in each: sqrt(count) times the largest, exactly."""
        return self.worst * math.sqrt(self.count)

    def repeated(self, times: int) -> Releases:
        """The same `times` times over; a random sensitivity counts as its largest."""
        return Releases.one(self.worst, self.count * times, self.rate)


@dataclass(frozen=True)
class Bound:
    """A worst-case sensitivity from one source.

    Attributes:
        label: short name for people.
        value: L2 distance under replace-one.
        formula: LaTeX.
        source: author, year, number.
        proved: False where the published bound was stated for another step size or rests on more than is checked.
    """

    label: Words
    value: float
    formula: Words
    source: Words
    proved: bool = True


TWO_HOP = Method("pld", Neighbouring.REPLACE_ONE, "two-hop")


def log_delta(r: Releases, sigma: float, epsilon: float) -> float:
    """ln delta at which the releases are proved (epsilon, delta)-DP under replace-one, by the tightest proof here.

    Exact for one sensitivity and full batches, the hockey-stick mixture for random ones, PLD and two hops for Poisson
    batches.

    Args:
        epsilon: >= 0; > 0 for Poisson batches.
    """
    if r.rate < 1:
        return steps.log_delta_of(Steps(2 * sigma / r.worst, r.rate, r.count), TWO_HOP, epsilon)
    if r.count > 1 or len(r.sensitivities) == 1:
        return float(log_gaussian_delta(epsilon, r.total / sigma))
    return float(logsumexp(log_gaussian_delta(epsilon, r.sensitivities / sigma), b=r.weights))


def epsilon(r: Releases, sigma: float, delta: float) -> float:
    """The smallest epsilon >= 0, to a relative 1e-8, at which `log_delta` is at most ln(delta)."""
    if r.rate < 1:
        return steps.epsilon_of(Steps(2 * sigma / r.worst, r.rate, r.count), TWO_HOP, delta)
    target, mu = math.log(delta), r.total / sigma
    if log_delta(r, sigma, 0.0) <= target:
        return 0.0
    high = mu**2 / 2 + mu * math.sqrt(-2 * target)
    return smallest(lambda e: log_delta(r, sigma, e) - target, math.log(high), tolerance=1e-12)


def renyi(r: Releases, sigma: float) -> tuple[Floats, Floats, Neighbouring]:
    """(orders, R at each, relation): the RDP curve of all releases together.

    Replace-one where every row is in each release; add-remove for Poisson batches (Mironov, Talwar, Zhang 2019), from
    where two hops lead to replace-one.
    """
    if r.rate < 1:
        orders = np.array(rdp.ORDERS, float)
        return orders, r.count * rdp.sampled_gaussian(r.rate, 2 * sigma / r.worst), Neighbouring.ADD_REMOVE
    orders = 1 + np.geomspace(0.05, 1000, 241)
    if len(r.sensitivities) == 1 or r.count > 1:
        return orders, orders * (r.total / sigma) ** 2 / 2, Neighbouring.REPLACE_ONE
    a = orders[:, None]
    curve = logsumexp(a * (a - 1) * (r.sensitivities / sigma) ** 2 / 2, b=r.weights, axis=1) / (orders - 1)
    return orders, curve, Neighbouring.REPLACE_ONE


def best_order(r: Releases, sigma: float, delta: float, conversion: str) -> tuple[float, float]:
    """(order, epsilon) at the minimum over the orders of `renyi`; "mironov" or "improved".

    Over all real orders where every row is in each release.
    """
    if r.rate == 1:
        single = r if len(r.sensitivities) > 1 else replace(r, sensitivities=np.array([r.total]), count=1)
        found, order = mixture_rdp_epsilon(delta, single.sensitivities, single.weights, sigma, conversion)
        return order, found
    orders, curve, _ = renyi(r, sigma)
    values = rdp_to_epsilon(orders, curve, delta, conversion)
    k = int(np.argmin(values))
    return float(orders[k]), float(values[k])


def detections(r: Releases, sigma: float, false_alarms: Floats) -> Floats:
    """The most that any attacker can detect at each rate of false alarms, 1 - f, by the tightest proof here.

    Exact for one sensitivity and full batches (Dong, Roth, Su 2022, Theorem 2.7), otherwise from delta(eps) at many eps:
    every single one bounds the attacker (Dong, Roth, Su 2022, Proposition 2.13), so a grid errs in the attacker's favour.
    """
    a = np.asarray(false_alarms, float)
    if r.rate == 1 and (len(r.sensitivities) == 1 or r.count > 1):
        with np.errstate(divide="ignore"):
            return ndtr(ndtri(a) + r.total / sigma)
    top = epsilon(r, sigma, 1e-9)
    grid = np.geomspace(max(top, 1e-3) * 1e-3, max(top, 1e-3), 49)
    deltas = np.exp([log_delta(r, sigma, float(e)) for e in grid])
    missed = np.zeros_like(a)
    for e, d in zip(grid, deltas, strict=True):
        missed = np.maximum(missed, np.maximum(1 - d - np.exp(e) * a, np.exp(-e) * (1 - d - a)))
    return 1 - missed


def total_variation(mu: float) -> float:
    """2 Phi(mu/2) - 1: how far two Gaussians at distance mu are apart; an even bet is won with chance (1 + this)/2."""
    return float(-np.expm1(log_ndtr(-mu / 2) + math.log(2)))
