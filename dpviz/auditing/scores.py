"""Scores that an attacker computes from an output: large values speak for the second dataset.

A score is fitted on runs that are kept for choosing and is then a fixed function; errors are counted on other runs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, gammainc, ndtr

from dpviz.common.arrays import Floats
from dpviz.mechanisms import OutputNoise
from dpviz.models.problem import Problem
from dpviz.privacy.audit_bounds import Residuals, best_threshold, epsilon_lower_bound
from dpviz.privacy.noise import GAUSSIAN

Score = Callable[[Floats], Floats]
Fitter = Callable[[Floats, Floats], Score]

_CERTAIN = 1e300  # an output that only one side can produce
_DRAWS = 20_000
_ALPHA = 1e-6

SCORES = {
    "auto": "The exact likelihood ratio where the distribution is known, and what a learning attacker finds beside it.",
    "likelihood": "The exact likelihood ratio; needs a mechanism that declares the distribution of its outputs.",
    "gradient": "The direction in which the differing row changes the model.",
    "lda": "The best linear direction (Fisher).",
    "qda": "Two Gaussians with their own covariances: sees noise whose size depends on the data.",
    "steps": "The largest single step along the differing row's gradient, for attackers who see the iterates.",
    "repeat": "Outputs that occurred before on one side only: sees noise that is not fresh.",
}


@dataclass(frozen=True)
class Distributions:
    """The declared distributions of the outputs on both sides, where each has one fixed centre."""

    first: OutputNoise
    second: OutputNoise

    @property
    def usable(self) -> bool:
        """True where the ratio exists: noise on both sides, one family, no centre that changes between runs."""
        a, b = self.first, self.second
        standard = a.family == b.family and a.family.closed_form
        return standard and a.centre.ndim == b.centre.ndim == 1 and min(a.scale[0], b.scale[0]) > 0

    def log_ratio(self, outputs: Floats) -> Floats:
        """(N,) ln p_second - ln p_first at (N, m) outputs."""
        return _log_density(self.second, outputs) - _log_density(self.first, outputs)

    def threshold(self, *, trials: int, delta: float, confidence: float, seed: int) -> float:
        """The cut that promises the largest bound when `trials` runs a side are counted; no run is used for it."""
        a, b = self.first, self.second
        if a.family == GAUSSIAN and a.scale[0] == b.scale[0]:
            # the log ratio is N(-mu^2/2, mu^2) on the first side and N(mu^2/2, mu^2) on the second (Neyman, Pearson 1933)
            mu = float(np.linalg.norm(b.centre - a.centre) / a.scale[0])
            cuts = mu * np.linspace(-9.0, 9.0, 3601)
            if mu == 0:
                return 0.0
            errors = ndtr(-(cuts / mu + mu / 2)), ndtr(cuts / mu - mu / 2)
            bounds = epsilon_lower_bound(errors[0] * trials, errors[1] * trials, trials, delta, confidence)
            return float(cuts[np.argmax(bounds)]) if bounds.max() > 0 else 0.0
        scores = []
        for side, distribution in enumerate((a, b)):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2, side)))
            m = len(distribution.centre)
            draws = rng.standard_normal((_DRAWS, m))
            if distribution.family != GAUSSIAN:
                draws *= (rng.gamma(m, size=_DRAWS) / np.linalg.norm(draws, axis=1))[:, None]
            scores.append(self.log_ratio(distribution.centre + distribution.scale[0] * draws))
        return best_threshold(*scores, trials=min(trials, _DRAWS), delta=delta, confidence=confidence)[0]

    def contradiction(self, first: Floats, second: Floats) -> str:
        """Words if outputs do not follow the declared distributions (Kolmogorov-Smirnov on norms, at 1e-6), else ""."""
        for distribution, outputs in ((self.first, first), (self.second, second)):
            p = _fit(distribution, outputs, float(distribution.scale[0]))
            if p < _ALPHA:
                return f"the outputs do not follow the declared {distribution.family} distribution (p = {p:.1g})"
        return ""

    def residuals(self, first: Floats, second: Floats) -> Residuals | None:
        """The noise around the declared centres, whatever its declared scale; None where it is not Gaussian with one scale."""
        a, b = self.first, self.second
        if a.family != GAUSSIAN or b.family != GAUSSIAN or not a.centre.ndim == b.centre.ndim == 1 or a.scale[0] != b.scale[0]:
            return None
        squares = float(((first - a.centre) ** 2).sum() + ((second - b.centre) ** 2).sum())
        freedom = first.size + second.size
        measured = (squares / freedom) ** 0.5
        if not measured > 0 or min(_fit(a, first, measured), _fit(b, second, measured)) < _ALPHA:
            return None
        return Residuals(float(np.linalg.norm(b.centre - a.centre)), squares, freedom)


def _fit(distribution: OutputNoise, outputs: Floats, scale: float) -> float:
    """p-value of the distribution at this scale, by Kolmogorov-Smirnov on the norms and, if Gaussian, along the diagonal."""
    m, standardised = len(distribution.centre), (outputs - distribution.centre) / scale
    radius = np.linalg.norm(standardised, axis=1)
    if distribution.family != GAUSSIAN:
        return _ks(gammainc(m, radius))
    return min(_ks(chdtr(m, radius**2)), _ks(ndtr(standardised.sum(axis=1) / m**0.5)))


def _log_density(distribution: OutputNoise, outputs: Floats) -> Floats:
    radius = np.linalg.norm(outputs - distribution.centre, axis=1) / distribution.scale[0]
    constant = -outputs.shape[1] * np.log(distribution.scale[0])
    return constant - (0.5 * radius**2 if distribution.family == GAUSSIAN else radius)


def _ks(uniform: Floats) -> float:
    """p-value of values against the uniform distribution, asymptotic."""
    from scipy.stats import kstest  # a fifth of a second, which the first page does not need

    return float(kstest(uniform, "uniform", method="asymp").pvalue)


def gradient_direction(first: Problem, second: Problem, rows: NDArray[np.intp], theta: Floats) -> Floats:
    """(m,) difference of the differing rows' descent directions at (m,) theta; zeros if it has none."""
    gradients = [-p.model.sum_gradient(theta[None], p.rows.take(rows))[0] for p in (first, second)]
    return gradients[1] - gradients[0]


def fitters(first: Problem, second: Problem, rows: NDArray[np.intp], iterates: int) -> dict[str, Fitter]:
    """The learning attackers for a pair; `iterates` is how many parameter vectors an output holds, the released one last."""
    m = first.m

    def gradient(null: Floats, alternative: Floats) -> Score:
        middle = 0.5 * (null[:, -m:].mean(axis=0) + alternative[:, -m:].mean(axis=0))
        direction = gradient_direction(first, second, rows, middle) if null.shape[1] >= m else np.ones(null.shape[1])
        return lambda outputs: outputs[:, -len(direction) :] @ direction

    def steps(sharpness: float) -> Fitter:
        def fit(null: Floats, alternative: Floats) -> Score:
            direction = gradient_direction(first, second, rows, np.zeros(m))

            def steps_along(outputs: Floats) -> Floats:
                along = outputs.reshape(len(outputs), iterates, m) @ direction
                return np.diff(along, axis=1, prepend=0.0)

            scale = sharpness / max(float(steps_along(null).std()), 1e-300)

            def score(outputs: Floats) -> Floats:
                x = np.clip(steps_along(outputs) * scale, -700, 700)
                return np.log(np.exp(x).mean(axis=1)) - np.log(np.exp(-x).mean(axis=1))

            return score

        return fit

    attackers: dict[str, Fitter] = {"gradient": gradient, "lda": _lda, "qda": _qda, "repeat": _repeat}
    if iterates > 1:
        attackers |= {f"steps({s:g})": steps(s) for s in (0.5, 2.0, 8.0)}
    return attackers


def _lda(null: Floats, alternative: Floats) -> Score:
    n, k = null.shape
    shift = alternative.mean(axis=0) - null.mean(axis=0)
    spread = np.concatenate([null - null.mean(axis=0), alternative - alternative.mean(axis=0)])
    covariance = spread.T @ spread  # of any scale, as only the direction is used
    size = np.trace(covariance) / k
    # a tiny ridge where runs are plenty, so that a coordinate without noise stands out; a large one where they are few
    ridge = 1e-9 if n > 4 * k else 0.3
    direction = np.linalg.solve(covariance + (ridge * size + 1e-300) * np.eye(k), shift) if size > 0 else shift
    return lambda outputs: outputs @ direction


def _qda(null: Floats, alternative: Floats) -> Score:
    n, k = null.shape
    if n < 10 * k or k > 60:
        return _lda(null, alternative)
    middle = 0.5 * (null.mean(axis=0) + alternative.mean(axis=0))
    unit = max(float(np.concatenate([null, alternative]).std(axis=0).mean()), 1e-150)

    def gaussian(sample: Floats) -> Score:
        centre = (sample.mean(axis=0) - middle) / unit
        covariance = np.cov((sample - middle) / unit, rowvar=False).reshape(k, k) + 1e-9 * np.eye(k)
        root = np.linalg.cholesky(covariance)
        constant = np.log(np.diag(root)).sum()
        inverse = np.linalg.inv(root)
        return lambda outputs: -0.5 * ((((outputs - middle) / unit - centre) @ inverse.T) ** 2).sum(axis=1) - constant

    a, b = gaussian(null), gaussian(alternative)
    return lambda outputs: b(outputs) - a(outputs)


def _repeat(null: Floats, alternative: Floats) -> Score:
    sets = [{row.tobytes() for row in np.ascontiguousarray(side)} for side in (null, alternative)]
    base = _lda(null, alternative)

    def score(outputs: Floats) -> Floats:
        out = base(outputs)
        for k, row in enumerate(np.ascontiguousarray(outputs)):
            key = row.tobytes()
            out[k] = _CERTAIN * ((key in sets[1]) - (key in sets[0])) or out[k]
        return out

    return score


def choose(fits: dict[str, Fitter], null: Floats, alternative: Floats) -> tuple[str, Score, Floats, Floats]:
    """The best learning attacker on runs kept for choosing: fitted on every other one of them, compared on the rest.

    Returns:
        name, the score, and its values on the runs that it was not fitted on, for choosing a threshold.
    """
    best: tuple[float, str, Score, Floats, Floats] | None = None
    for name, fit in fits.items():
        score = fit(null[::2], alternative[::2])
        a, b = score(null[1::2]), score(alternative[1::2])
        cut, bound = best_threshold(a, b, trials=len(null), delta=0.0)
        errors = (a > cut).mean() + (b <= cut).mean()
        value = bound - 1e-3 * float(errors)  # ties between bounds of 0 go to fewer errors
        if best is None or value > best[0] + 1e-12:
            best = (value, name, score, a, b)
    assert best is not None
    return best[1:]
