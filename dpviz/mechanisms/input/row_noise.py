"""Input perturbation: noise draws for rows, what perturbed rows are worth, the worst pair, and the record of noise drawn once."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.random import single_normals
from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Floats, NoiseRecord, knob
from dpviz.models import Model, Rows, Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.budget import Budget

LABELS: str = "Labels are not perturbed: published rows show a changed label, and no proof covers it in the model."
ONCE: str = (
    "The noise is drawn once, but the proof adds up privacy losses as for T independent releases, and treats the gradient as "
    "Gaussian although its coefficients depend on the same noise."
)
QUERY: str = "the training rows themselves; the claim is about the model"
AT_ONCE = 4  # seeds trained at once: each holds noise for all rows, half as large as the rows


def steps_knob(what: str, automatic: str) -> Any:
    """T, for which the published noise pays; 0 stands for the method's rule, in words."""
    help: str = f"{what}; the published noise grows with its square root."
    return knob(0, "Steps", help, low=1, high=10_000, log=True, automatic=automatic)


BY_NOISE: str = f"{rules.STEP_SIZE}, over the factor by which noise raises the curvature"


def row_draws(stream: np.random.SeedSequence, n: int, d: int) -> NDArray[np.float32]:
    """(n, d) standard normal draws of one replica, one row per training row."""
    return single_normals(stream)((n, d))


def same_label_facts(sigma: float, delta: float) -> dict[str, float]:
    """The guarantee of rows perturbed by their own N(0, sigma^2 I): local DP between rows with the same label.

    Rows lie in the unit ball, so |x - x'| <= 2 and mu = 2/sigma; training is post-processing. Where the label
    changes there is no bound at all.
    """
    mu = 2.0 / sigma
    return {"same_label_local_mu": mu, "same_label_local_epsilon": float(gaussian_epsilon(delta, mu))}


def same_label_note(facts: dict[str, float], delta: float) -> str:
    """The fact in words."""
    return (
        f"What does hold: each perturbed row is {Budget(facts['same_label_local_epsilon'], delta)} locally private towards "
        "other rows with the same label, and so is everything computed from the perturbed rows."
    )


def opposed_pair(model: Model, setting: Setting) -> tuple[Problem, Problem] | None:
    """Rows e1 with label +1 and -e1 with label -1, learnt with large margins, and one row e2 of either label [ours].

    Noise on a row reaches the model through its slope, which is small at a large margin: the direction e2, which only
    the differing row moves, stays almost without noise.
    """
    n, d = setting.n, setting.d
    if n < 4 or d < 2:
        return None
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    first, second = np.eye(d)[:2]
    base = Problem(Rows(y[:, None] * first, y), model, setting.lam)
    return base.replace_row(n - 1, second, 1.0), base.replace_row(n - 1, second, -1.0)


def once_record(where: str, sigma: Floats, n: int, visits: Floats, draw_norms: Floats | None) -> NoiseRecord:
    """The noise record of rows that were all perturbed once, before training.

    Args:
        sigma: (E,) noise scales.
        visits: broadcasts to (E, S, n).
        draw_norms: (S, n) or (S, 1) norms of the rows' standard draws; None where they are not recorded.
    """
    scale = sigma[:, None, None]
    noisy = (scale > 0).astype(float)
    return NoiseRecord(
        where,
        visits=visits,
        times_noised=noisy * np.ones((1, 1, n)),
        noise_norm=None if draw_norms is None else scale * np.broadcast_to(draw_norms, (len(draw_norms), n)),
        passed=np.zeros((1, 1, n)),
        timeline=noisy * n,
    )


def noisy_rows_step(setting: Setting, steps: int, sigma: float, spread: float, size: int) -> float:
    """Step size in units of 1/L on rows with noise N(0, sigma^2 I), by the rule that balances noise and training.

    The largest eigenvalue of the mean of z z' over `size` rows of noise is near sigma^2 (1 + sqrt(d/size))^2
    (Marchenko and Pastur 1967), and adds to that of the rows, which is at most 1.

    Args:
        spread: what the noise of the rows is on a step's mean gradient, per coordinate, for a slope of 1.
        size: rows in a step.
    """
    slope = min(1.0, setting.G)
    steeper = 1 + sigma**2 * (1 + math.sqrt(setting.d / size)) ** 2
    return rules.step_size(setting, steps, slope * spread, steeper=steeper)
