"""Objective perturbation with Gaussian noise, calibrated numerically."""

from dataclasses import dataclass

from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, knob
from dpviz.mechanisms.capabilities import BoundsDistance
from dpviz.mechanisms.objective.perturbed_objective import (
    EXACT,
    QUERY,
    GaussianObjective,
    Regularised,
    distance_by_density,
    gradient_bound,
    kink_notes,
    proof_of,
    regularisation,
)
from dpviz.models import Setting
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.objective import BOUNDS, curvature_term


@dataclass(frozen=True)
class ObjectiveTight(GaussianObjective, BoundsDistance):
    """Minimiser of F + <b, theta>/n + Delta/(2n) |theta|^2, b ~ N(0, sigma^2 I), sigma solved from the proof."""

    id = "objective-tight"
    label = "Objective perturbation (tight)"
    automatic_from = 1280.0
    citation = (
        "Calibration derived here; method: Kifer, Smith, Thakurta, COLT 2012, Algorithm 1; "
        "add/remove form also in Redberg, Koskela, Wang, NeurIPS 2023"
    )
    guarantee = "(ε, δ)-DP, proved for margin losses."

    relation: str = knob(
        "replace-one", "Neighbours", "Which datasets count as neighbours.", options=[r.value for r in Neighbouring]
    )
    bound: str = knob(
        "two-sided",
        "Slopes",
        "Use only that slopes are at most G, or also that they all have one sign, which needs less noise, by 1 to 10 "
        "per cent, and by more where ε is small and δ large.",
        options=BOUNDS,
    )
    curvature_share: float = knob(
        0.0,
        "Curvature share",
        "Largest share of ε for the change of curvature; where that needs more, regularisation is added.",
        low=0.01,
        high=0.9,
        automatic=rules.CURVATURE_SHARE,
    )

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        return rules.curvature_share(setting, 0.0 if budget is None else budget.epsilon)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        relation = Neighbouring(self.relation)
        total = regularisation(setting, budget.epsilon, self.value("curvature_share", setting, budget))
        sigma = proof_of(setting, total, relation, self.bound).sigma(budget)
        extra = total - setting.n * setting.lam
        notes: tuple[str, ...] = kink_notes(setting)
        if extra > 0:
            notes += (
                f"ε is small beside the curvature of one row: the regularisation is raised to λ = {total / setting.n:.3g}.",
            )
        return Calibration.proved(
            budget,
            sensitivity=gradient_bound(setting, relation),
            query=QUERY,
            sensitivity_source=f"at every point one row moves the sum of gradients by at most this ({relation.value})",
            noise_scale=sigma,
            neighbouring=relation,
            claims="nothing",
            accountant=f"density of the minimiser, {self.bound} slopes, solved for the noise",
            notes=notes,
            for_training=Regularised(total),
            details={"Delta": extra, "J": curvature_term(setting.beta, total)},
        ).conditional(*EXACT)

    def distance(self, setting: Setting, calibration: Calibration) -> float:
        return distance_by_density(setting, calibration, self.bound)
