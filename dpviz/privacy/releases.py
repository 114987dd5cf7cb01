"""What a mechanism publishes, in the few numbers that an accountant needs, and the noise that each accountant asks for.

The same release under several accountants is how much of the noise is privacy and how much is the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from dpviz.privacy import accounting, rdp
from dpviz.privacy.accounting import CannotAccount, Method, Steps
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.privacy.calibration import gaussian_mu, log_gaussian_delta
from dpviz.privacy.mixture import mixture_rdp_epsilon, mixture_rdp_sigma, mixture_sigma, rdp_to_epsilon
from dpviz.validate import InvalidInput, positive

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

    label: str
    value: float
    formula: str
    source: str
    proved: bool = True


@dataclass(frozen=True)
class Option:
    """The noise that one accountant asks for.

    Attributes:
        name: for people.
        sigma: standard deviation per coordinate; NaN where the accountant gives none.
        status: how far it is proved for this release and this budget.
        formula: LaTeX.
        source: author, year, number.
        note: why there is no number, why it is not proved, or what it equals; "" for none.
    """

    name: str
    sigma: float
    status: Status
    formula: str
    source: str
    note: str = ""


TWO_HOP = Method("pld", Neighbouring.REPLACE_ONE, "two-hop")


def options(releases: Releases, budget: Budget) -> list[Option]:
    """The noise that every accountant asks for under replace-one, largest proof first: from classical to exact.

    Raises:
        InvalidInput: delta = 0, which no Gaussian noise can meet.
    """
    mu = gaussian_mu(budget)
    return _sampled(releases, budget, mu) if releases.rate < 1 else _unsampled(releases, budget, mu)


def _unsampled(r: Releases, budget: Budget, mu: float) -> list[Option]:
    total, proved = r.total, Status.PROVED
    small = budget.epsilon < 1
    root = r"\sqrt T\,\Delta" if r.count > 1 else r"\Delta"
    found = [
        Option(
            "Classical Gaussian", total * math.sqrt(2 * math.log(1.25 / budget.delta)) / budget.epsilon,
            proved if small else Status.CLAIM, rf"\sigma={root}\sqrt{{2\ln(1.25/\delta)}}/\varepsilon",
            "Dwork, Roth 2014, Theorem A.1", "" if small else f"proved for ε < 1 only, and ε = {budget.epsilon:.3g}",
        ),
        Option(
            "zCDP", total / math.sqrt(2 * rdp.zcdp_rho(budget)), proved,
            rf"\varepsilon=\rho+2\sqrt{{\rho\ln(1/\delta)}},\ \rho=({root})^2/2\sigma^2", "Bun, Steinke 2016, Proposition 1.3",
            "the same as RDP with Mironov's conversion: both take the best order of the same line",
        ),
        Option(
            "RDP, Mironov's conversion", rdp.gaussian_sigma(budget, total), proved,
            r"\varepsilon=\min_\alpha R(\alpha)+\tfrac{\ln(1/\delta)}{\alpha-1}", "Mironov 2017, Propositions 3 and 7",
        ),
        Option(
            "RDP, improved conversion", total * _improved_sigma(budget), proved,
            r"\varepsilon=\min_\alpha R(\alpha)+\ln\tfrac{\alpha-1}{\alpha}-\tfrac{\ln\delta+\ln\alpha}{\alpha-1}",
            "Canonne, Kamath, Steinke 2020, Proposition 12",
        ),
        Option(
            "PLD", total / mu, proved, r"\delta(\varepsilon)=\mathbb E_P[(1-e^{\varepsilon-\ell})_+]",
            "Sommer, Meiser, Mohammadi 2019", "for Gaussian releases the privacy loss is Gaussian: the same as exact",
        ),
        Option(
            "Exact Gaussian", total / mu, proved,
            rf"\Phi(\tfrac\mu2-\tfrac\varepsilon\mu)-e^\varepsilon\Phi(-\tfrac\mu2-\tfrac\varepsilon\mu)=\delta,\ \mu={root}/\sigma",
            "Balle, Wang 2018, Theorem 8",
        ),
    ]  # fmt: skip
    if len(r.sensitivities) > 1:
        s, q = r.sensitivities, r.weights
        line = r"R(\alpha)=\tfrac1{\alpha-1}\ln\sum_j q_j e^{\alpha(\alpha-1)\Delta_j^2/2\sigma^2}"
        found += [
            Option("Mixture, RDP as published", mixture_rdp_sigma(budget, s, q, "mironov"), proved, line,
                   "Chen, Lee, Kifer 2019, Propositions 1 and 3"),
            Option("Mixture, RDP improved", mixture_rdp_sigma(budget, s, q, "improved"), proved, line,
                   "Chen, Lee, Kifer 2019, Proposition 3; Canonne, Kamath, Steinke 2020"),
            Option("Mixture, hockey-stick", mixture_sigma(budget, s, q), proved,
                   r"\delta(\varepsilon)\le\sum_j q_j\,\delta_G(\varepsilon,\Delta_j/\sigma)", "joint convexity [ours]"),
        ]  # fmt: skip
    return found


def _improved_sigma(budget: Budget) -> float:
    """sigma of one Gaussian of sensitivity 1 by the improved conversion over all real orders."""

    def excess(log_mu: float) -> float:
        return rdp.zcdp_epsilon(math.exp(2 * log_mu) / 2, budget.delta, "cks") - budget.epsilon

    centre = 0.5 * math.log(2 * rdp.zcdp_rho(budget))
    return math.exp(-brentq(excess, centre - 0.1, centre + 3, xtol=1e-13))


def _sampled(r: Releases, budget: Budget, mu: float) -> list[Option]:
    row, replace_one = r.worst / 2, Neighbouring.REPLACE_ONE
    plain = r"\sqrt T\,\Delta/\mu^*"
    found = [Option("Sampling ignored, exact Gaussian", r.total / mu, Status.PROVED, rf"\sigma={plain}",
                    "Balle, Wang 2018; every step is at worst a full one", "leaves out that batches are sampled")]  # fmt: skip
    hop = r"\delta(\varepsilon)\le(1+e^{\varepsilon/2})\,\delta_\pm(\varepsilon/2)"
    tries = [
        ("zCDP", Method("zcdp", replace_one, "two-hop"), r"\rho=T\mu^2/2", "Bun, Steinke 2016", Status.PROVED),
        ("RDP, Mironov's conversion", Method("rdp", replace_one, "two-hop", "mironov"), hop, "Mironov, Talwar, Zhang 2019",
         Status.PROVED),
        ("RDP, improved conversion", Method("rdp", replace_one, "two-hop", "cks"), hop,
         "Mironov, Talwar, Zhang 2019; Canonne, Kamath, Steinke 2020", Status.PROVED),
        ("PLD, two hops", TWO_HOP, hop, "Doroshenko et al. 2022", Status.PROVED),
        ("PLD, opposite pair", Method("pld", replace_one, "opposite"), r"(1-q)N(0)+qN(\pm1)", "dp_accounting's convention",
         Status.CLAIM),
    ]  # fmt: skip
    for name, method, formula, source, status in tries:
        try:
            z, note = accounting.noise_multiplier_for(budget, method, rate=r.rate, count=r.count), ""
        except CannotAccount as refused:
            z, note, status = math.nan, refused.cause, Status.NONE
        if method.route == "opposite":
            note = "that this pair dominates every replacement is not proved"
        found.append(Option(name, z * row, status, formula, source, note))
    return found


def log_delta(r: Releases, sigma: float, epsilon: float) -> float:
    """ln delta at which the releases are proved (epsilon, delta)-DP under replace-one, by the tightest proof here.

    Exact for one sensitivity and full batches, the hockey-stick mixture for random ones, PLD and two hops for Poisson
    batches.

    Args:
        epsilon: >= 0; > 0 for Poisson batches.
    """
    if r.rate < 1:
        return accounting.log_delta_of(Steps(2 * sigma / r.worst, r.rate, r.count), TWO_HOP, epsilon)
    if r.count > 1 or len(r.sensitivities) == 1:
        return float(log_gaussian_delta(epsilon, r.total / sigma))
    return float(logsumexp(log_gaussian_delta(epsilon, r.sensitivities / sigma), b=r.weights))


def epsilon(r: Releases, sigma: float, delta: float) -> float:
    """The smallest epsilon, to 1e-9, at which `log_delta` is at most ln(delta)."""
    if r.rate < 1:
        return accounting.epsilon_of(Steps(2 * sigma / r.worst, r.rate, r.count), TWO_HOP, delta)
    target, mu = math.log(delta), r.total / sigma
    if log_delta(r, sigma, 0.0) <= target:
        return 0.0
    high = mu**2 / 2 + mu * math.sqrt(-2 * target)
    return float(brentq(lambda e: max(log_delta(r, sigma, e), -1e300) - target, 0.0, high, xtol=1e-12, rtol=1e-12))


def renyi(r: Releases, sigma: float) -> tuple[Floats, Floats, Neighbouring]:
    """(orders, R at each, relation): the RDP curve of all releases together.

    Replace-one where every row is in each release; add-remove for Poisson batches, at whole orders (Mironov, Talwar,
    Zhang 2019), from where two hops lead to replace-one.
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
