"""What the methods that perturb training rows have in common."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpviz.mechanisms.base import Floats, NoiseRecord
from dpviz.models import Setting
from dpviz.noise import generator
from dpviz.privacy.calibration import gaussian_epsilon

LABELS = "Labels are not perturbed, so nothing hides a changed label."
ONCE = (
    "The noise is drawn once, but the proof adds up privacy losses as for T independent releases, and treats the gradient as "
    "Gaussian although its coefficients depend on the same noise."
)


def row_draws(stream: np.random.SeedSequence, n: int, d: int) -> NDArray[np.float32]:
    """(n, d) standard normal draws of one replica, one row per training row."""
    return generator(stream).standard_normal((n, d), dtype=np.float32)


def same_label_facts(sigma: float, delta: float) -> dict[str, float]:
    """What rows perturbed by their own N(0, sigma^2 I) are worth: local DP between rows with the same label.

    Rows lie in the unit ball, so |x - x'| <= 2 and mu = 2/sigma; training is post-processing. Where the label
    changes there is no bound at all.
    """
    mu = 2.0 / sigma
    return {"same_label_local_mu": mu, "same_label_local_epsilon": float(gaussian_epsilon(delta, mu))}


def same_label_note(facts: dict[str, float], delta: float) -> str:
    """The fact in words."""
    return (
        f"What does hold: each perturbed row is (ε = {facts['same_label_local_epsilon']:.3g}, δ = {delta:.3g}) locally private "
        "towards other rows with the same label, and so is everything computed from the perturbed rows."
    )


def nominal_lipschitz(setting: Setting, knob: float) -> float:
    """The G of a published formula: the model's bound where there is one, else the nominal value of the knob."""
    return min(setting.G, knob)


def unbounded_note(setting: Setting, knob: float) -> tuple[str, ...]:
    """Said where the model has no bound on its gradients."""
    if np.isfinite(setting.G):
        return ()
    return (f"This model's gradients have no bound; the formula uses the nominal G = {knob:g}.",)


def once_record(where: str, sigma: Floats, n: int, visits: Floats, lengths: Floats) -> NoiseRecord:
    """The story of rows that were all perturbed once, before training.

    Args:
        sigma: (E,) noise scales.
        visits: broadcasts to (E, S, n).
        lengths: (S, n) or (S, 1) lengths of the rows' standard draws.
    """
    scale = sigma[:, None, None]
    noisy = (scale > 0).astype(float)
    return NoiseRecord(
        where,
        visits=visits,
        times_noised=noisy * np.ones((1, 1, n)),
        noise_norm=scale * np.broadcast_to(lengths, (len(lengths), n)),
        passed=np.zeros((1, 1, n)),
        timeline=noisy * n,
    )
