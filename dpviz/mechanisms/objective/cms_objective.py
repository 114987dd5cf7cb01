"""Objective perturbation with pure epsilon-DP."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, knob
from dpviz.mechanisms.objective.perturbed_objective import (
    EXACT,
    QUERY,
    ObjectivePerturbation,
    Regularised,
    gradient_bound,
    kink_notes,
    regularisation,
)
from dpviz.models import Setting
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.noise import GAMMA_SPHERE
from dpviz.privacy.objective import curvature_term, joint_remainder


@dataclass(frozen=True)
class CMSObjective(ObjectivePerturbation):
    """Minimiser of F + <b, theta>/n + Delta/2 |theta|^2, density of b proportional to exp(-beta |b|), beta = eps'/(2 G)."""

    id = "cms-objective"
    label = "Objective perturbation (CMS)"
    citation = "Chaudhuri, Monteleoni, Sarwate, JMLR 12 (2011), Algorithm 2 and Theorem 9; tighter slacks are ours"
    guarantee = "ε-DP, proved for margin losses with bounded slope and curvature."
    rate = r"O\!\left(\frac{p^2\log^2(p/\delta)}{\lambda n^2\varepsilon^2}\right)"
    pure = True

    published_form: ClassVar = {"slack": "published"}

    slack: str = knob(
        "joint",
        "Slack",
        "Bound on the cost of the change of curvature. Tight: one log term. Published: two log terms. Balanced: one log term, of "
        "at most ε/2. Joint: balanced, and for logistic regression slope and curvature are bounded together.",
        options=("tight", "balanced", "joint", "published"),
    )

    @property
    def _log_terms(self) -> int:
        """The number of terms ln(1 + c/(n lam)) that the proof counts."""
        return 2 if self.slack == "published" else 1

    def value(self, knob: str, setting: Setting, budget: Budget | None = None) -> Any:
        """As set; "joint" is "balanced" for a loss without a sigmoid slope."""
        chosen = super().value(knob, setting, budget)
        return "balanced" if chosen == "joint" and not setting.sigmoid_slope else chosen

    def automatic_lam(self, setting: Setting, budget: Budget) -> float:
        # the share of curvature bounded alone; bounded together with the slope it costs a few hundredths there at most
        share = rules.curvature_share(setting, budget.epsilon, self._log_terms)
        least = rules.round_lambda(regularisation(setting, budget.epsilon / self._log_terms, share) / setting.n)
        return super().automatic_lam(replace(setting, lam=max(setting.lam, least)), budget)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        n, lam, c, G, eps = setting.n, setting.lam, setting.beta, setting.G, budget.epsilon
        # CMS11 Algorithm 2 and Theorem 9: eps' = eps - ln(1 + 2c/(n lam) + c^2/(n lam)^2), which is two log terms.
        # A replacement adds one rank-one term to the Hessian and takes one away; only the first can raise the
        # determinants' ratio, so one term is enough [ours]; with a sigmoid slope `joint_remainder` leaves more.
        terms, slack = self._log_terms, self.value("slack", setting)
        remaining, delta = eps - terms * curvature_term(c, n * lam), 0.0
        if remaining <= (eps / 2 if slack in ("balanced", "joint") else 0.0):
            # CMS11 Algorithm 2: Delta = c/(n(e^(eps/4) - 1)) - lam; with one term eps/2 takes the place of eps/4
            delta, remaining = c / (n * math.expm1(eps / (2 * terms))) - lam, eps / 2
        total = n * (lam + delta)
        if slack == "joint":
            remaining = joint_remainder(eps, c, total)
        beta = remaining / (2 * G)  # CMS11 Algorithm 2: eps'/2 for G = 1
        published = remaining + 2 * curvature_term(c, total)
        notes: tuple[str, ...] = kink_notes(setting)
        if slack != "published":
            notes += (f"The publication's two log terms would say ε = {published:.4g} where this proof says {eps:.4g}.",)
        if remaining < eps / 2:
            notes += ("Curvature takes more than half of ε: 'joint' needs less noise, for more regularisation.",)
        return Calibration.proved(
            budget,
            sensitivity=gradient_bound(setting, Neighbouring.REPLACE_ONE),
            query=QUERY,
            sensitivity_source="one replaced row moves the sum of gradients by at most 2G, at every point",
            noise_scale=1 / beta,
            noise_family=GAMMA_SPHERE,
            claims=Budget(eps) if slack == "published" else "nothing",
            proves=Budget(eps),
            accountant="density of the minimiser: the gradients' change of at most 2G and the change of curvature, pure ε",
            notes=notes,
            for_training=Regularised(total),
            details={"eps_prime": remaining, "Delta": delta, "beta": beta, "J": curvature_term(c, total)},
        ).conditional(*EXACT)
