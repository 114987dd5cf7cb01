"""Output perturbation of mini-batch SGD in a fixed order."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpviz.mechanisms.base import Floats, Streams, Training, knob
from dpviz.mechanisms.output.permuted_sgd import MiniBatch, Noise
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, Gaussian
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.accounting.rdp import gaussian_sigma
from dpviz.privacy.budget import Budget


@dataclass(frozen=True)
class NSGD(MiniBatch):
    """w_T + N(0, sigma^2 I) after T cyclic epochs with step eta0/s; the worst batch position sets sigma."""

    id = "nsgd"
    label = "NSGD (fixed order)"
    citation = "Chen, Lee, Kifer, AISTATS 2019, Algorithm 1 and Lemma 2; noise: Balle, Wang, ICML 2018, Theorem 8"
    guarantee = "(ε, δ)-DP, proved from the worst batch that can hold the replaced row."

    published_form: ClassVar = {"accounting": "published"}

    accounting: str = knob(
        "exact",
        "Accounting",
        "The exact Gaussian mechanism, or Rényi divergence with the published conversion.",
        options=("exact", "published"),
    )

    def noise(self, setting: Setting, budget: Budget, delta: Floats) -> Noise:
        # not the last position: with steps above 2/L an early one can be the worst
        worst = float(delta.max())
        if self.accounting == "exact":  # Balle & Wang 2018, Theorem 8
            return Noise(worst / gaussian_mu(budget), "exact Gaussian mechanism (Balle & Wang 2018)")
        sigma = gaussian_sigma(budget, worst)  # Chen 2019, Lemma 1 and Proposition 1 at the best order
        exact = float(gaussian_epsilon(budget.delta, worst / sigma))
        return Noise(
            sigma,
            "Gaussian mechanism, Rényi divergence (Chen et al. 2019, Lemma 1)",
            "Mironov 2017, Proposition 3",
            (f"The exact Gaussian mechanism proves ε = {exact:.4g} at this noise.",),
            {"exact_epsilon": exact},
        )

    def over_positions(self, setting: Setting, values: Floats) -> Event:
        return Gaussian(float(values.max()))

    def released_centre(self, training: Training, step_sizes: Floats) -> Floats:
        return self.centre(training.problem, None, step_sizes, training.monitor)[..., 0, :]

    def query(self, problem: Problem, theta: np.ndarray, streams: Streams) -> np.ndarray:
        return np.repeat(self.centre(problem, None), len(streams), axis=0)
