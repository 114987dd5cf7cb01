"""DP-SGD whose noisy gradients are smoothed by an inverse Laplacian."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.linalg import circulant

from dpviz.mechanisms.base import Calibration, Floats, Training, knob
from dpviz.mechanisms.gradient.noisy_sgd import Plan
from dpviz.mechanisms.gradient.poisson_sgd import LONGEST_STEP, EqualSteps
from dpviz.models import Setting
from dpviz.privacy.budget import Budget

_SHORT = 256  # parameters up to which a product with A_s^-1 takes less time than FFT


def laplacian_spectrum(m: int, smoothing: float) -> Floats:
    """(m//2 + 1,) eigenvalues 1 + 2s(1 - cos(2 pi k/m)) of A_s = I - s Lap, circulant with 1 + 2s and -s."""
    return 1 + 2 * smoothing * (1 - np.cos(2 * np.pi * np.arange(m // 2 + 1) / m))


def smooth(gradient: Floats, smoothing: float) -> Floats:
    """A_s^-1 applied to each row of an array (..., m); of long rows by FFT (Wang et al. 2020, section 2)."""
    m = gradient.shape[-1]
    if m <= _SHORT:
        return np.asarray(gradient @ _smoothing_matrix(m, smoothing))
    return np.fft.irfft(np.fft.rfft(gradient, axis=-1) / laplacian_spectrum(m, smoothing), n=m, axis=-1)


@lru_cache(maxsize=8)
def _smoothing_matrix(m: int, smoothing: float) -> Floats:
    """(m, m) A_s^-1, circulant and symmetric."""
    return np.asarray(circulant(np.fft.irfft(1 / laplacian_spectrum(m, smoothing), n=m)))


@dataclass(frozen=True)
class DPLSSGD(EqualSteps):
    """DP-SGD with A_s^-1 applied to every noisy gradient, A_s = I - s Laplacian on a ring of coordinates."""

    id = "dp-lssgd"
    label = "DP-LSSGD"
    citation = "Wang, Gu, Boedihardjo, Wang, Barekat, Osher, MSML 2020 (DP-LSSGD); noise as in DP-SGD, not by its Theorem 1"
    guarantee = "(ε, δ)-DP, proved: smoothing is post-processing of DP-SGD's noisy gradients, so the same accountant applies."
    rate = r"O\!\left(\frac{G\sqrt{G^2 p\log(1/\delta)}}{n\varepsilon}\right)"

    epochs: float = knob(
        40.0,
        "Epochs",
        "Steps times sampling rate; twice those of DP-SGD, because smoothing lowers the gradient's norm.",
        low=0.1,
        high=1000.0,
        log=True,
    )
    smoothing: float = knob(1.0, "Smoothing", "s; 0 is DP-SGD, larger smooths more.", low=0.0, high=10.0)

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        base = super().calibrate(setting, budget)
        kept = self._noise_power_kept(setting)
        notes: tuple[str, ...] = (
            "Noise scale and sensitivity are those before smoothing.",
            "Smoothing averages neighbouring coordinates, so the result depends on the order of the features.",
        )
        return replace(base, notes=base.notes + notes, details={**base.details, "noise_power_kept": kept})

    def _noise_power_kept(self, setting: Setting) -> float:
        impulse = np.zeros(setting.m)
        impulse[0] = 1.0
        return float(np.sum(smooth(impulse, self.smoothing) ** 2))  # mean_k lam_k^-2 by Parseval

    def by_noise(self, setting: Setting, noise_scale: float) -> float:
        # smoothing keeps this share of a gradient without structure (the mean of 1/lam_k), so steps are as much longer
        shorter = 1 / math.sqrt(1 + 4 * self.smoothing)
        noise = noise_scale * math.sqrt(self._noise_power_kept(setting)) / shorter
        return min(LONGEST_STEP, super().by_noise(setting, noise) / shorter)

    def plan(self, training: Training) -> Plan:
        # the regulariser is smoothed too: A^-1 grad F = 0 exactly where grad F = 0
        return self.batch_plan(
            training.problem, self.equal_step_sizes(training), smooth=lambda gradient: smooth(gradient, self.smoothing)
        )
