"""DP-SGD whose noisy gradients are smoothed by an inverse Laplacian."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpviz.common.words import Words
from dpviz.mechanisms.base import Calibration, Floats, Training, knob
from dpviz.mechanisms.gradient.shared import Plan, PoissonSGD
from dpviz.models import Setting
from dpviz.privacy.budget import Budget


def laplacian_spectrum(m: int, smoothing: float) -> Floats:
    """(m//2 + 1,) eigenvalues 1 + 2s(1 - cos(2 pi k/m)) of A_s = I - s Lap, circulant with 1 + 2s and -s."""
    return 1 + 2 * smoothing * (1 - np.cos(2 * np.pi * np.arange(m // 2 + 1) / m))


def smooth(gradient: Floats, smoothing: float) -> Floats:
    """A_s^-1 applied to each row of an array (..., m) by FFT (Wang et al. 2020, section 2)."""
    m = gradient.shape[-1]
    return np.fft.irfft(np.fft.rfft(gradient, axis=-1) / laplacian_spectrum(m, smoothing), n=m, axis=-1)


@dataclass(frozen=True)
class DPLSSGD(PoissonSGD):
    """DP-SGD with A_s^-1 applied to every noisy gradient, A_s = I - s Laplacian on a ring of coordinates."""

    id = "dp-lssgd"
    label = "DP-LSSGD"
    citation = "Wang, Gu, Boedihardjo, Wang, Barekat, Osher, MSML 2020 (DP-LSSGD); noise as in DP-SGD, not by its Theorem 1"
    guarantee = "(ε, δ)-DP, proved: smoothing is post-processing of DP-SGD's noisy gradients, so the same accountant applies."
    rate = r"O\!\left(\frac{G\sqrt{G^2 p\log(1/\delta)}}{n\varepsilon}\right)"

    smoothing: float = knob(1.0, "Smoothing", "s; 0 is DP-SGD, larger smooths more.", low=0.0, high=10.0)
    step_size: float = knob(1.0, "Step size", "Length of a step.", low=0.01, high=10.0, log=True, unit="1/L")

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        base = super().calibrate(setting, budget)
        impulse = np.zeros(setting.m)
        impulse[0] = 1.0
        kept = float(np.sum(smooth(impulse, self.smoothing) ** 2))  # mean_k lam_k^-2 by Parseval
        notes: tuple[Words, ...] = (
            "Noise scale and sensitivity are those before smoothing.",
            "Smoothing averages neighbouring coordinates, so the result depends on the order of the features.",
        )
        return replace(base, notes=base.notes + notes, details={**base.details, "noise_power_kept": kept})

    def plan(self, training: Training) -> Plan:
        lengths = np.full(self.steps, self.step_size * training.problem.setting.unit_step)
        # the regulariser is smoothed too: A^-1 grad F = 0 exactly where grad F = 0
        return self.poisson_plan(training.problem, lengths, smooth=lambda gradient: smooth(gradient, self.smoothing))
