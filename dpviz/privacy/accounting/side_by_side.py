"""The noise that every accountant asks for, for the same release: how much is privacy and how much is the proof."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.common.words import Words
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.accountants import noise_for
from dpviz.privacy.accounting.events import CannotAccount, Event, Gaussian, Mixture, Repeated, Sampled, Step, only_step
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.accounting.methods import TWO_HOP, Method
from dpviz.privacy.accounting.mixture import mixture_rdp_sigma, mixture_sigma
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.privacy.search import smallest


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

    name: Words
    sigma: float
    status: Status
    formula: Words
    source: Words
    note: Words = ""


def options(event: Event, budget: Budget) -> list[Option]:
    """The noise that every accountant asks for under replace-one, largest proof first: from classical to exact.

    Args:
        event: Gaussian releases of one kind; its own noise does not count.

    Raises:
        InvalidInput: delta = 0, which no Gaussian noise can meet.
        CannotAccount: the event holds other releases.
    """
    mu, step = gaussian_mu(budget), only_step(event)
    return _unsampled(step, budget, mu) if step.sampling == "full" else _sampled(step, budget, mu)


def _unsampled(step: Step, budget: Budget, mu: float) -> list[Option]:
    total, proved = step.total, Status.PROVED
    small = budget.epsilon < 1
    root = r"\sqrt T\,\Delta" if step.count > 1 else r"\Delta"
    found = [
        Option(
            "Classical Gaussian",
            total * math.sqrt(2 * math.log(1.25 / budget.delta)) / budget.epsilon,
            proved if small else Status.CLAIM,
            rf"\sigma={root}\sqrt{{2\ln(1.25/\delta)}}/\varepsilon",
            "Dwork, Roth 2014, Theorem A.1",
            "" if small else f"proved for ε < 1 only, and ε = {budget.epsilon:.3g}",
        ),
        Option(
            "zCDP",
            total / math.sqrt(2 * rdp.zcdp_rho(budget)),
            proved,
            rf"\varepsilon=\rho+2\sqrt{{\rho\ln(1/\delta)}},\ \rho=({root})^2/2\sigma^2",
            "Bun, Steinke 2016, Proposition 1.3",
            "the same as RDP with Mironov's conversion: both take the best order of the same line",
        ),
        Option(
            "RDP, Mironov's conversion",
            rdp.gaussian_sigma(budget, total),
            proved,
            r"\varepsilon=\min_\alpha R(\alpha)+\tfrac{\ln(1/\delta)}{\alpha-1}",
            "Mironov 2017, Propositions 3 and 7",
        ),
        Option(
            "RDP, improved conversion",
            total * _improved_sigma(budget),
            proved,
            r"\varepsilon=\min_\alpha R(\alpha)+\ln\tfrac{\alpha-1}{\alpha}-\tfrac{\ln\delta+\ln\alpha}{\alpha-1}",
            "Canonne, Kamath, Steinke 2020, Proposition 12",
        ),
        Option(
            "PLD",
            total / mu,
            proved,
            r"\delta(\varepsilon)=\mathbb E_P[(1-e^{\varepsilon-\ell})_+]",
            "Sommer, Meiser, Mohammadi 2019",
            "for Gaussian releases the privacy loss is Gaussian: the same as exact",
        ),
        Option(
            "Exact Gaussian",
            total / mu,
            proved,
            r"\Phi(\tfrac\mu2-\tfrac\varepsilon\mu)-e^\varepsilon\Phi(-\tfrac\mu2-\tfrac\varepsilon\mu)=\delta,"
            rf"\ \mu={root}/\sigma",
            "Balle, Wang 2018, Theorem 8",
        ),
    ]
    return found + _of_mixture(step.event, budget) if isinstance(step.event, Mixture) else found


def _of_mixture(event: Mixture, budget: Budget) -> list[Option]:
    s, q, proved = np.array(event.sensitivities), np.array(event.weights), Status.PROVED
    line = r"R(\alpha)=\tfrac1{\alpha-1}\ln\sum_j q_j e^{\alpha(\alpha-1)\Delta_j^2/2\sigma^2}"
    return [
        Option(
            "Mixture, RDP as published",
            mixture_rdp_sigma(budget, s, q, "mironov"),
            proved,
            line,
            "Chen, Lee, Kifer 2019, Propositions 1 and 3",
        ),
        Option(
            "Mixture, RDP improved",
            mixture_rdp_sigma(budget, s, q, "improved"),
            proved,
            line,
            "Chen, Lee, Kifer 2019, Proposition 3; Canonne, Kamath, Steinke 2020",
        ),
        Option(
            "Mixture, hockey-stick",
            mixture_sigma(budget, s, q),
            proved,
            r"\delta(\varepsilon)\le\sum_j q_j\,\delta_G(\varepsilon,\Delta_j/\sigma)",
            "joint convexity [ours]",
        ),
    ]


def _improved_sigma(budget: Budget) -> float:
    """sigma of one Gaussian of sensitivity 1 by the improved conversion over all real orders."""

    def excess(sigma: float) -> float:
        return rdp.zcdp_epsilon(1 / (2 * sigma**2), budget.delta, "cks") - budget.epsilon

    # Mironov's conversion needs more; far more where delta is large beside epsilon
    return smallest(excess, -0.5 * math.log(2 * rdp.zcdp_rho(budget)) + 0.1, step=2.0)


def _sampled(step: Step, budget: Budget, mu: float) -> list[Option]:
    if not isinstance(step.event, Gaussian):
        raise CannotAccount("event", "batches are accounted for with Gaussian noise only", "Use another accountant.")
    replace_one, row = Neighbouring.REPLACE_ONE, step.event.sigma / step.event.noise_multiplier
    unit = Repeated(Sampled(Gaussian.of_rows(1.0), step.rate, step.sampling), step.count)
    plain = r"\sqrt T\,\Delta/\mu^*"
    found = [
        Option(
            "Sampling ignored, exact Gaussian",
            step.total / mu,
            Status.PROVED,
            rf"\sigma={plain}",
            "Balle, Wang 2018; every step is at worst a full one",
            "leaves out that batches are sampled",
        )
    ]
    hop = r"\delta(\varepsilon)\le(1+e^{\varepsilon/2})\,\delta_\pm(\varepsilon/2)"
    tries = [
        ("zCDP", Method("zcdp", replace_one, "two-hop"), r"\rho=T\mu^2/2", "Bun, Steinke 2016", Status.PROVED),
        (
            "RDP, Mironov's conversion",
            Method("rdp", replace_one, "two-hop", "mironov"),
            hop,
            "Mironov, Talwar, Zhang 2019",
            Status.PROVED,
        ),
        (
            "RDP, improved conversion",
            Method("rdp", replace_one, "two-hop", "cks"),
            hop,
            "Mironov, Talwar, Zhang 2019; Canonne, Kamath, Steinke 2020",
            Status.PROVED,
        ),
        ("PLD, two hops", TWO_HOP, hop, "Doroshenko et al. 2022", Status.PROVED),
        (
            "PLD, opposite pair",
            Method("pld", replace_one, "opposite"),
            r"(1-q)N(0)+qN(\pm1)",
            "dp_accounting's convention",
            Status.CLAIM,
        ),
    ]
    for name, method, formula, source, status in tries:
        try:
            z, note = noise_for(unit, method, budget), ""
        except CannotAccount as refused:
            z, note, status = math.nan, refused.cause, Status.NONE
        if method.route == "opposite":
            note = "that this pair dominates every replacement is not proved"
        found.append(Option(name, z * row, status, formula, source, note))
    return found
