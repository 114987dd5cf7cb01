"""Output perturbation with pure epsilon-DP."""

from dataclasses import dataclass

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.mechanisms.base import Calibration
from dpviz.mechanisms.capabilities import BoundsDistance, DeclaresEvent
from dpviz.mechanisms.output.minimiser_noise import MinimiserNoise, minimiser_sensitivity
from dpviz.models import Setting
from dpviz.privacy.accounting.distance import gamma_sphere_distance
from dpviz.privacy.accounting.events import Event, PureEpsilon
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAMMA_SPHERE
from dpviz.privacy.utility_bounds import output_excess, output_excess_near_minimum


@dataclass(frozen=True)
class CMSOutput(MinimiserNoise, BoundsDistance, DeclaresEvent):
    """Minimiser + b, density of b proportional to exp(-beta |b|), beta = n lam eps/(2 G)."""

    id = "cms-output"
    label = "Output perturbation (CMS)"
    citation = "Chaudhuri, Monteleoni, Sarwate, JMLR 12 (2011), Algorithm 1 and Theorem 6"
    noise_enters = "The finished parameters: one draw with a Gamma-distributed norm is added to the minimiser."
    guarantee = "ε-DP, proved: replacing one row moves the minimiser by a bounded distance."
    rate = r"O\!\left(\frac{p^2\log^2(p/\delta)\,(L+\lambda)}{\lambda^2 n^2\varepsilon^2}\right)"
    pure = True

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        # CMS11 Corollary 8: 2/(n lam) for G = 1
        sensitivity, source, notes = minimiser_sensitivity(setting, self.refined)
        return Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query="the minimiser",
            sensitivity_source=source,
            noise_scale=sensitivity / budget.epsilon,  # CMS11 Algorithm 1: beta = n lam eps / 2
            noise_family=GAMMA_SPHERE,
            claims=Budget(budget.epsilon),
            proves=Budget(budget.epsilon),
            accountant="L2 Laplace mechanism, pure ε",
            notes=notes,
            details={"beta": budget.epsilon / sensitivity, "expected_noise_norm": setting.m * sensitivity / budget.epsilon},
        )

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        return PureEpsilon(minimiser_sensitivity(setting, self.refined)[0] / calibration.noise_scale)

    def distance(self, setting: Setting, calibration: Calibration) -> float:
        return gamma_sphere_distance(calibration.sensitivity, calibration.noise_scale, setting.m)

    def excess_theory(self, setting: Setting, noise_scale: float, start: float, eigenvalues: Floats) -> dict[str, float]:
        # E b b' = (d + 1)/beta^2 I for this noise
        near = output_excess_near_minimum(eigenvalues, noise_scale * np.sqrt(setting.m + 1))
        return {"bound": output_excess(noise_scale, setting.m, setting.L, GAMMA_SPHERE), "near the minimum": near}
