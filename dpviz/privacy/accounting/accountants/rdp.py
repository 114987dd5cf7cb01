"""Rényi differential privacy: Gaussians on full and on Poisson batches, of one kind or several, and mixtures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.accountants.base import Accountant, Line, Method, full_release_mu
from dpviz.privacy.accounting.events import CannotAccount, Gaussian, Mixture, Step
from dpviz.privacy.accounting.mixture import mixture_rdp, mixture_rdp_sigma
from dpviz.privacy.budget import Budget
from dpviz.privacy.search import smallest

_HOPS = r"\delta(\varepsilon)\le(1+e^{\varepsilon/2})\,\delta_\pm(\varepsilon/2)"
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
    columns = (("RDP, Mironov's conversion", "mironov"), ("RDP, improved conversion", "cks"))

    def log_delta(self, step: Step, method: Method, epsilon: float, floor: float, directions: tuple[str, ...]) -> float:
        event = step.event
        if isinstance(event, Mixture):
            curve = mixture_rdp(np.array(rdp.ORDERS), *event.parts, event.sigma)
            return rdp.log_delta(curve, epsilon, method.conversion)
        assert isinstance(event, Gaussian)
        if step.sampling == "full":
            return rdp.log_delta(rdp.gaussian(full_release_mu(event, method) * math.sqrt(step.count)), epsilon, method.conversion)
        return rdp.log_delta(step.count * rdp.sampled_gaussian(step.rate, event.noise_multiplier), epsilon, method.conversion)

    def log_delta_of_kinds(self, steps: tuple[Step, ...], method: Method, epsilon: float) -> float:
        return rdp.log_delta(curve_of_kinds(steps, method), epsilon, method.conversion)

    def log_delta_of_replacement(self, steps: tuple[Step, ...], method: Method, epsilon: float, floor: float) -> float:
        return rdp.log_delta(curve_of_replacement(steps, method), epsilon, method.conversion)

    def route(self, steps: tuple[Step, ...]) -> str | None:
        return "two-hop" if len(steps) > 1 else None

    def lines(self, step: Step) -> Sequence[Line]:
        if isinstance(step.event, Mixture):
            return _of_mixture(step.event)
        names, sampled = ("RDP, Mironov's conversion", "RDP, improved conversion"), "Mironov, Talwar, Zhang 2019"
        if step.sampling != "full":
            improved = f"{sampled}; Canonne, Kamath, Steinke 2020"
            return (
                Line(names[0], _HOPS, sampled, route="two-hop", conversion="mironov"),
                Line(names[1], _HOPS, improved, route="two-hop", conversion="cks"),
            )
        total = step.total
        return (
            Line(
                names[0],
                r"\varepsilon=\min_\alpha R(\alpha)+\tfrac{\ln(1/\delta)}{\alpha-1}",
                "Mironov 2017, Propositions 3 and 7",
                sigma=lambda budget: rdp.gaussian_sigma(budget, total),
            ),
            Line(
                names[1],
                r"\varepsilon=\min_\alpha R(\alpha)+\ln\tfrac{\alpha-1}{\alpha}-\tfrac{\ln\delta+\ln\alpha}{\alpha-1}",
                "Canonne, Kamath, Steinke 2020, Proposition 12",
                sigma=lambda budget: total * _improved_sigma(budget),
            ),
        )


def curve_of_kinds(steps: tuple[Step, ...], method: Method) -> Floats:
    """R(a) of Gaussians of several kinds, added up under the method's relation (add/remove where one is sampled)."""
    curve = np.zeros(len(rdp.ORDERS))
    for step in steps:
        if not isinstance(step.event, Gaussian):
            raise CannotAccount("event", "different kinds of releases are added up for Gaussians only", "Account for one kind.")
        if step.sampling == "full":
            curve = curve + step.count * rdp.gaussian(full_release_mu(step.event, method))
        else:
            curve = curve + step.count * rdp.sampled_gaussian(step.rate, step.event.noise_multiplier)
    return curve


def curve_of_replacement(steps: tuple[Step, ...], method: Method) -> Floats:
    """R(a) under replace-one: the row moves a batch that holds it by 2C and no other, a mixture with weights q and 1 - q."""
    curve = np.zeros(len(rdp.ORDERS))
    for step in steps:
        assert isinstance(step.event, Gaussian)
        curve = curve + step.count * rdp.sampled_replacement(step.rate, full_release_mu(step.event, method))
    return curve


def _of_mixture(event: Mixture) -> Sequence[Line]:
    return (
        Line(
            "Mixture, RDP as published",
            _OF_MIXTURE,
            "Chen, Lee, Kifer 2019, Propositions 1 and 3",
            sigma=lambda budget: mixture_rdp_sigma(budget, *event.parts, "mironov"),
        ),
        Line(
            "Mixture, RDP improved",
            _OF_MIXTURE,
            "Chen, Lee, Kifer 2019, Proposition 3; Canonne, Kamath, Steinke 2020",
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
