"""What tests of noise share: whether draws follow a distribution, small problems, and training with a share of the noise."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from dpviz.common.random import spawn
from dpviz.mechanisms import Calibration, Fit, Mechanism, Training
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget

Floats = np.ndarray
ALPHA = 1e-6
BUDGET = Budget(1.0, 1e-5)
#: what training reads beside the noise scale and is a noise scale of its own
SCALES = ("sigma_output", "gumbel_scale", "sigma_c")


def with_values(calibration: Calibration, **changed: Callable[[float], float]) -> Calibration:
    """The same with some of what training reads changed, where it is read at all."""
    read = calibration.for_training
    if read is None:
        return calibration
    new = {name: change(getattr(read, name)) for name, change in changed.items() if hasattr(read, name)}
    return dataclasses.replace(calibration, for_training=dataclasses.replace(read, **new))


def weaker(calibration: Calibration, share: float) -> Calibration:
    """The same with `share` of its noise, wherever it is."""
    less = dataclasses.replace(calibration, noise_scale=calibration.noise_scale * share)
    return with_values(less, **{name: lambda scale: scale * share for name in SCALES})


def normal(z: Floats, alpha: float = ALPHA) -> bool:
    """True where rows (S, k) look like independent draws of N(0, I).

    Looked at: the sum of squares of all and of every coordinate, means, correlations, equal rows, and the distribution.
    """
    s, k = z.shape
    square = z**2

    def inside(value: Floats | float, freedom: int, level: float) -> bool:
        low, high = stats.chi2.ppf([level / 2, 1 - level / 2], freedom)
        return bool(np.all((low < np.asarray(value)) & (np.asarray(value) < high)))

    limit = stats.norm.isf(alpha / (2 * k * k))
    whole = inside(square.sum(), z.size, alpha) and inside(square.sum(axis=0), s, alpha / k)
    if not whole or len(np.unique(z, axis=0)) < s:
        return False
    means = bool(np.abs(z.mean(axis=0)).max() * np.sqrt(s) < limit)
    correlation = np.clip(np.corrcoef(z.T) - np.eye(k), -1 + 1e-12, 1 - 1e-12)
    # |r| sqrt(S) is nearly normal; Fisher's transformation keeps its tail
    independent = bool(np.abs(np.arctanh(correlation)).max() * np.sqrt(s - 3) < limit)
    return means and independent and bool(stats.kstest(z.ravel(), "norm").pvalue > alpha)


def sphere(b: Floats, alpha: float = ALPHA) -> bool:
    """True where rows (S, m) have density exp(-|b|): a radius with Gamma(m) and a uniform direction."""
    m = b.shape[1]
    radius = np.linalg.norm(b, axis=1)
    along = np.concatenate([(b[:, j] / radius) ** 2 for j in (0, m - 1)])
    good = stats.kstest(radius, stats.gamma(m).cdf).pvalue > alpha
    good &= stats.kstest(along, stats.beta(0.5, (m - 1) / 2).cdf).pvalue > alpha
    square = (b / radius[:, None]) ** 2 * m  # each coordinate has mean 1
    good &= np.abs((square.mean(axis=0) - 1) / square.std(axis=0).clip(1e-9)).max() * np.sqrt(len(b)) < stats.norm.isf(alpha / m)
    return bool(good and np.abs((b / radius[:, None]).mean(axis=0)).max() * np.sqrt(m * len(b)) < stats.norm.isf(alpha / m))


def mean_is(values: Floats, expected: float, alpha: float = ALPHA) -> bool:
    """True where independent values (S,) have this mean."""
    z = (values.mean() / expected - 1) / (values.std(ddof=1) / expected / np.sqrt(len(values)))
    return bool(abs(z) < stats.norm.isf(alpha / 2))


def share_is(hits: int, trials: int, chance: float, alpha: float = ALPHA) -> bool:
    """True where so many hits are credible for this chance."""
    return bool(stats.binomtest(hits, trials, chance).pvalue > alpha)


def blank(n: int = 12, d: int = 36, lam: float = 0.05) -> Problem:
    """Rows of zeros."""
    return Problem(Rows(np.zeros((n, d)), np.where(np.arange(n) % 3 == 0, 1.0, -1.0)), get_model("logistic"), lam)


def filled(n: int = 30, d: int = 36, lam: float = 0.05) -> Problem:
    """Random rows of length 1 at most."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, d))
    x *= (rng.random(n) / np.linalg.norm(x, axis=1))[:, None]
    return Problem(Rows(x, np.where(rng.random(n) < 0.5, 1.0, -1.0)), get_model("logistic"), lam)


@dataclass(frozen=True)
class Trial:
    """A mechanism that uses `share` of the noise that it declares; 1 but for controls."""

    built: Any
    share: float = 1.0
    seeds: int = 500
    budget: Budget = BUDGET

    def declared(self, problem: Problem, **changed: Any) -> Calibration:
        """Its calibration, with some fields replaced."""
        return dataclasses.replace(self.built.calibrate(problem.setting, self.budget), **changed)

    def used(self, declared: Calibration) -> Calibration:
        """What training is given."""
        return weaker(declared, self.share)

    def fit(self, problem: Problem, declared: Calibration, *, built: Mechanism | None = None, record: bool = False) -> Fit:
        """Trains with what is used."""
        streams = spawn(11, self.seeds)
        return (built or self.built).fit(Training(problem, [self.used(declared)], streams, record=record))

    def theta(self, problem: Problem, declared: Calibration, **more: Any) -> Floats:
        """(S, m)"""
        return self.fit(problem, declared, **more).theta[0]

    def noiseless(self, problem: Problem, declared: Calibration) -> Floats:
        """(S, m) of the same training without noise."""
        quiet = [declared.noiseless()]
        return self.built.fit(Training(problem, quiet, spawn(11, self.seeds), record=False)).theta[0]
