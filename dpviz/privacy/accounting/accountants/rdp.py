"""Rényi differential privacy: Gaussians on full and on Poisson batches, of one kind or several, and mixtures."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.accountants.base import Accountant, Line, Method, full_release_mu
from dpviz.privacy.accounting.events import CannotAccount, Gaussian, Mixture, PureEpsilon, Step
from dpviz.privacy.accounting.mixture import mixture_rdp, mixture_rdp_sigma
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.search import smallest

_ORDERS = np.array(rdp.ORDERS)
_PAIR = r"R(\alpha)=\tfrac1{\alpha-1}\ln\int p^\alpha q^{1-\alpha},\ p,q=(1-q)N(0)+qN(\pm1)"
_OF_MIXTURE = r"R(\alpha)=\tfrac1{\alpha-1}\ln\sum_j q_j e^{\alpha(\alpha-1)\Delta_j^2/2\sigma^2}"


class RDP(Accountant):
    """Rényi curves at `rdp.ORDERS`; those of one run add up, of whatever kinds its releases are."""

    name = "rdp"
    words = "Rényi DP of the subsampled Gaussian (Mironov, Talwar, Zhang 2019)"
    label = "RDP"
    conversion_words = "Canonne, Kamath, Steinke 2020"
    place = 20
    kinds = (Gaussian, Mixture)
    samplings = ("full", "poisson")
    columns = (("RDP, Mironov's conversion", "mironov"), ("RDP, improved conversion", "improved"))

    def log_delta(self, step: Step, method: Method, epsilon: float, floor: float, directions: tuple[str, ...]) -> float:
        return self.log_delta_of_kinds((step,), method, epsilon)

    def log_delta_of_kinds(self, steps: tuple[Step, ...], method: Method, epsilon: float) -> float:
        return rdp.log_delta(curve_of_steps(steps, method), epsilon, method.conversion)

    def lines(self, step: Step) -> Sequence[Line]:
        if isinstance(step.event, Mixture):
            return _of_mixture(step.event)
        names = "RDP, Mironov's conversion", "RDP, improved conversion"
        if step.sampling != "full":
            return (
                Line(
                    name=names[0], formula=_PAIR, source="opposite rows [ours]; Mironov 2017, Proposition 3", conversion="mironov"
                ),
                Line(
                    name=names[1],
                    formula=_PAIR,
                    source="opposite rows [ours]; Canonne, Kamath, Steinke 2020",
                    conversion="improved",
                ),
            )
        total = step.total
        return (
            Line(
                name=names[0],
                formula=r"\varepsilon=\min_\alpha R(\alpha)+\tfrac{\ln(1/\delta)}{\alpha-1}",
                source="Mironov 2017, Propositions 3 and 7",
                sigma=lambda budget: rdp.gaussian_sigma(budget, total),
            ),
            Line(
                name=names[1],
                formula=r"\varepsilon=\min_\alpha R(\alpha)+\ln\tfrac{\alpha-1}{\alpha}-\tfrac{\ln\delta+\ln\alpha}{\alpha-1}",
                source="Canonne, Kamath, Steinke 2020, Proposition 12",
                sigma=lambda budget: total * _improved_sigma(budget),
            ),
        )


def curve_of_steps(steps: tuple[Step, ...], method: Method) -> Floats:
    """(orders,) R(a) of all releases together under the method's relation, at `rdp.ORDERS`.

    Raises:
        CannotAccount: no Rényi curve is known for one of them.
    """
    return np.sum([step.count * _curve(step, method) for step in steps], axis=0)


@lru_cache(maxsize=1024)  # searches for epsilon and noise ask again for the same curve
def _curve(step: Step, method: Method) -> Floats:
    event = step.event
    if isinstance(event, PureEpsilon):
        return _pure(event.epsilon)
    if isinstance(event, Mixture):
        return mixture_rdp(_ORDERS, *event.parts, event.sigma)
    if isinstance(event, Gaussian) and step.sampling == "full":
        return rdp.gaussian(full_release_mu(event, method))
    if isinstance(event, Gaussian) and step.sampling == "poisson":
        z = event.noise_multiplier
        replaced = method.relation is Neighbouring.REPLACE_ONE
        return rdp.opposite_rows(step.rate, 1 / z) if replaced else rdp.sampled_gaussian(step.rate, z)
    raise CannotAccount("mechanism", "no Rényi curve is known for its releases", "Choose a method with Gaussian noise.")


def _pure(epsilon: float) -> Floats:
    """RDP of randomised response, the worst epsilon-DP release (Mironov 2017, Proposition 5)."""
    log_p, log_q = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon))  # ln of e^eps/(1 + e^eps) and 1/(1 + e^eps)
    a = _ORDERS
    both = np.logaddexp(a * log_p + (1 - a) * log_q, a * log_q + (1 - a) * log_p)
    return np.clip(both / (a - 1), 0.0, epsilon)


def _of_mixture(event: Mixture) -> Sequence[Line]:
    return (
        Line(
            name="Mixture, RDP as published",
            formula=_OF_MIXTURE,
            source="Chen, Lee, Kifer 2019, Propositions 1 and 3",
            sigma=lambda budget: mixture_rdp_sigma(budget, *event.parts, "mironov"),
        ),
        Line(
            name="Mixture, RDP improved",
            formula=_OF_MIXTURE,
            source="Chen, Lee, Kifer 2019, Proposition 3; Canonne, Kamath, Steinke 2020",
            sigma=lambda budget: mixture_rdp_sigma(budget, *event.parts, "improved"),
        ),
    )


def _improved_sigma(budget: Budget) -> float:
    """sigma of one Gaussian of sensitivity 1 by the improved conversion over all real orders."""

    def excess(sigma: float) -> float:
        return rdp.zcdp_epsilon(1 / (2 * sigma**2), budget.delta) - budget.epsilon

    # Mironov's conversion needs more; far more where delta is large beside epsilon
    return smallest(excess, -0.5 * math.log(2 * rdp.zcdp_rho(budget)) + 0.1, step=2.0)


ACCOUNTANT = RDP()
