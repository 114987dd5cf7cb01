"""Objective perturbation with Gaussian noise, as published."""

import math
from dataclasses import dataclass

from dpviz.mechanisms.base import Calibration, knob
from dpviz.mechanisms.capabilities import BoundsDistance
from dpviz.mechanisms.objective.perturbed_objective import (
    EXACT,
    QUERY,
    GaussianObjective,
    Regularised,
    cap_epsilon,
    distance_by_density,
    gradient_bound,
    kink_notes,
    proof_of,
)
from dpviz.models import Setting
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.objective import curvature_term


@dataclass(frozen=True)
class KSTObjective(GaussianObjective, BoundsDistance):
    """Minimiser of F + <b, theta>/n + Delta/(2n) |theta|^2, b ~ N(0, sigma^2 I), Delta = 2 beta_0/eps."""

    id = "kst-objective"
    label = "Objective perturbation (KST)"
    citation = "Kifer, Smith, Thakurta, COLT 2012, Algorithm 1; proof for margin losses completed here"
    guarantee = (
        "(ε, δ)-DP, proved for margin losses whose slope has one sign. The published proof treats "
        "the gradients as fixed while they depend on the noise; ours does not."
    )
    rate = r"O\!\left(\frac{\|b\|^2}{n^2\Delta}+\Delta\,\|\hat\theta\|^2\right)"

    relation: str = knob(
        "replace-one",
        "Neighbours",
        "replace-one takes ζ = 2G in the published noise, add-remove ζ = G.",
        options=[r.value for r in Neighbouring],
    )

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        budget.need_delta(fix="Choose delta > 0 or cms-objective.")
        relation = Neighbouring(self.relation)
        # zeta bounds the difference of the neighbours' gradients: with zeta = G the constants balance for add/remove only
        zeta = gradient_bound(setting, relation)
        delta = 2 * setting.beta / budget.epsilon  # KST 2012, Algorithm 1: Delta >= 2 lambda_max/eps
        total = setting.n * setting.lam + delta
        # KST 2012, Algorithm 1: sigma^2 = zeta^2 (8 ln(2/delta) + 4 eps)/eps^2
        sigma = zeta * math.sqrt(8 * math.log(2 / budget.delta) + 4 * budget.epsilon) / budget.epsilon
        reached = proof_of(setting, total, relation, "one-sided").epsilon(budget.delta, sigma)
        return Calibration.proved(
            budget,
            sensitivity=zeta,
            query=QUERY,
            sensitivity_source=f"at every point one row moves the sum of gradients by at most ζ = {zeta:g} ({relation.value})",
            noise_scale=sigma,
            neighbouring=relation,
            proves=cap_epsilon(budget, reached),
            accountant="published formula, checked by the density of the minimiser",
            notes=(
                f"The published constants are loose: this noise gives ε = {reached:.3g} at the same δ.",
                "The publication bounds ⟨b, g − g'⟩ as if the gradients did not depend on b. For margin losses a row's gradient "
                "keeps its direction whatever the noise is, which closes the gap; for other losses it stays open.",
                *kink_notes(setting),
            ),
            for_training=Regularised(total),
            details={"zeta": zeta, "Delta": delta, "J": curvature_term(setting.beta, total), "certified_epsilon": reached},
        ).conditional(*EXACT)

    def distance(self, setting: Setting, calibration: Calibration) -> float:
        return distance_by_density(setting, calibration, "one-sided")
