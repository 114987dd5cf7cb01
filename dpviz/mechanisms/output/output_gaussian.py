"""Output perturbation with exact Gaussian noise."""

from dataclasses import dataclass

from dpviz.common.arrays import Floats
from dpviz.mechanisms.base import Calibration
from dpviz.mechanisms.capabilities import ReleasesGaussians
from dpviz.mechanisms.output.minimiser_noise import MinimiserNoise, minimiser_sensitivity
from dpviz.models import Setting
from dpviz.privacy.accounting.events import Event, Gaussian
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAUSSIAN
from dpviz.privacy.utility_bounds import output_excess, output_excess_near_minimum


@dataclass(frozen=True)
class OutputGaussian(MinimiserNoise, ReleasesGaussians):
    """Minimiser + N(0, sigma^2 I), sigma = 2G/(n lam mu*(eps, delta))."""

    id = "output-gaussian"
    label = "Output perturbation (Gaussian)"
    citation = (
        "Sensitivity: Chaudhuri, Monteleoni, Sarwate, JMLR 12 (2011), Corollary 8; noise: Balle, Wang, ICML 2018, Theorem 8"
    )
    noise_enters = "The finished parameters: one Gaussian draw is added to the minimiser."
    guarantee = "(ε, δ)-DP, proved: replacing one row moves the minimiser by a bounded distance."

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        sensitivity, source, notes = minimiser_sensitivity(setting, self.refined)  # CMS11 Corollary 8
        mu = gaussian_mu(budget)
        return Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query="the minimiser",
            sensitivity_source=source,
            noise_scale=sensitivity / mu,  # Balle & Wang 2018, Theorem 8
            noise_family=GAUSSIAN,
            accountant="exact Gaussian mechanism (Balle & Wang 2018)",
            notes=notes,
            mu=mu,
        )

    def releases(self, setting: Setting) -> Event:
        return Gaussian(minimiser_sensitivity(setting, self.refined)[0])

    def excess_theory(self, setting: Setting, noise_scale: float, start: float, eigenvalues: Floats) -> dict[str, float]:
        bound = output_excess(noise_scale, setting.m, setting.L)
        return {"bound": bound, "near the minimum": output_excess_near_minimum(eigenvalues, noise_scale)}
