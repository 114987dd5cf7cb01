"""Input perturbation on sufficient statistics: every row is reported with noise, once."""

import math
from dataclasses import dataclass

import numpy as np

from dpviz.common.progress import Monitor
from dpviz.common.random import generator, substreams
from dpviz.common.threads import map_streams
from dpviz.mechanisms import rules
from dpviz.mechanisms.base import Calibration, Fit, Floats, Streams, Training
from dpviz.mechanisms.calibration import BOUNDED_ROWS, PUBLIC_N, SINGLE_PRECISION
from dpviz.mechanisms.capabilities import DeclaresEvent, NoisesRows, ProtectsQuery
from dpviz.mechanisms.input.row_noise import AT_ONCE, once_record, row_draws
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, Gaussian
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAUSSIAN

_THREADS_FROM = 32  # features from which decompositions are long enough for threads


@dataclass(frozen=True)
class FukuchiInput(ProtectsQuery, DeclaresEvent, NoisesRows):
    """Each row reports a y x + xi and k x x' + Xi; the server minimises the quadratic that their sums define.

    The loss is replaced by a quadratic in the margin, c - a m + k m^2/2 (ln 2 - m/2 + m^2/8 for logistic regression;
    for the SVM the quadratic of its bend, 9/8 - 3m/2 + m^2/2), so that a row enters through (a y x, k x x') only.
    Xi is symmetric with N(0, s^2) on the diagonal and N(0, s^2/2) beside it: isotropic in Frobenius geometry.

    Sensitivity [ours]: for rows of norms r, s <= 1 and cosine t of y x and y' x', the squared distance of two reports is
    a^2 (r^2 + s^2 - 2rst) + k^2 (r^4 + s^4 - 2 r^2 s^2 t^2). It is larger at -|t| than at |t|. For t <= 0 it grows with r:
    half its derivative is a^2 (r + s|t|) + 2 k^2 r (r^2 - s^2 t^2) >= 0, because a^2 >= 2 k^2 for both losses; likewise with
    s. At r = s = 1 it is a^2 (2 - 2t) + k^2 (2 - 2t^2), which falls in t, so the maximum is at t = -1: 2a, that is exactly 1
    for logistic regression.
    """

    id = "fukuchi-input"
    label = "Input perturbation (Fukuchi)"
    family = "input"
    citation = (
        "Fukuchi, Tran, Sakuma, DS 2017 (arXiv 1710.07425), idea and claim; the quadratic form, its sensitivity and the "
        "exact calibration are ours: Balle, Wang, ICML 2018, Theorem 8"
    )
    noise_enters = "Every row, once, before it leaves its owner: its label times its features, and its products of features."
    guarantee = (
        "(ε, δ)-DP of the model and of the summed reports, labels included, proved; each single "
        "report is locally private with √n times the Gaussian parameter μ, a far larger ε. All must add noise as prescribed."
    )
    supposes = (BOUNDED_ROWS, PUBLIC_N, SINGLE_PRECISION)
    rate = r"O\!\left(\frac{p\,G^2(\log(16/\delta)+\varepsilon)}{L\,n\,\varepsilon}\right)"
    needs_linear = True

    @classmethod
    def refusal(cls, setting: Setting) -> str | None:
        refused = super().refusal(setting)
        if refused is None and (setting.quadratic is None or setting.quadratic[0] ** 2 < 2 * setting.quadratic[1] ** 2):
            return (
                f"{cls.label} bounds the sensitivity by 2a, for quadratics a, k with a² ≥ 2k², unlike that of {setting.model!r}"
            )
        return refused

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        a, k = _quadratic(setting)
        sensitivity = 2 * a  # [ours], see the class
        mu = gaussian_mu(budget)
        local = sensitivity / (math.sqrt(setting.n) * mu)  # n independent reports: the sum's noise is sqrt(n) s
        return Calibration.proved(
            budget,
            sensitivity=sensitivity,
            query="the sum of all reports (a y x, k x xᵀ), matrices in Frobenius norm",
            sensitivity_source=f"ours: two reports are at most 2a = {sensitivity:g} apart, reached at x′ = -x with y′ = y",
            noise_scale=sensitivity / mu,  # Balle & Wang 2018, Theorem 8
            noise_family=GAUSSIAN,
            accountant="exact Gaussian mechanism (Balle & Wang 2018)",
            notes=(
                "The publication's own constants are not followed: a quadratic stands in for the loss, which makes the "
                "sensitivity exact. Its minimiser is not the non-private one even without noise.",
                "Only the sums of the reports' noise are drawn, from their exact distribution; the noise shown is that of the "
                "vector reports, drawn given its sum.",
            ),
            mu=mu,
            details={
                "local_noise_scale": local,
                "local_mu": sensitivity / local,
                "local_epsilon": float(gaussian_epsilon(budget.delta, sensitivity / local)),
                "quadratic_curvature": k,
            },
        )

    def automatic_lam(self, setting: Setting, budget: Budget) -> float:
        return rules.against_curvature_noise(setting, self.calibrate(setting, budget).noise_scale)

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        return Gaussian(calibration.sensitivity, calibration.noise_scale)

    def fit(self, training: Training) -> Fit:
        problem, streams, record = training.problem, training.streams, training.record
        n, d = problem.rows.X.shape
        a, k = _quadratic(problem.setting)
        scale = training.scales
        vector, matrix = a * problem.rows.signed_rows.sum(axis=0), k * (problem.rows.X.T @ problem.rows.X)

        def work(s: int, tick: Monitor) -> tuple[Floats, Floats]:
            vector_draw, matrix_draw = _sum_draws(streams[s], d)
            draw_norms = np.linalg.norm(_report_draws(streams[s], n, d), axis=1) if record else np.zeros(n)
            out = np.empty((len(scale), d))
            for e, sigma in enumerate(scale):
                tick(e / len(scale))
                values, basis = np.linalg.eigh((matrix + sigma * matrix_draw) / n)
                # a curvature below 0 is noise for sure: eigenvalues of the regularised matrix are floored at lam
                values = np.maximum(values, 0.0) + problem.lam
                out[e] = basis @ ((basis.T @ (vector + sigma * vector_draw)) / (n * values))
            return out, draw_norms

        trained, draw_norms = zip(
            *map_streams(work, len(streams), training.monitor, parallel=d >= _THREADS_FROM, most=AT_ONCE), strict=True
        )
        theta = np.stack(trained, axis=1)
        sizes = np.array(draw_norms) if record else None
        return Fit(theta, once_record(self.noise_enters, scale / math.sqrt(n), n, np.ones((1, 1, n)), sizes))

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        a, k = _quadratic(problem.setting)
        d = problem.rows.X.shape[1]
        matrix = k * (problem.rows.X.T @ problem.rows.X)
        upper = np.triu_indices(d, 1)
        # off-diagonal entries count twice in the Frobenius norm
        flat = np.concatenate([a * problem.rows.signed_rows.sum(axis=0), np.diag(matrix), math.sqrt(2) * matrix[upper]])
        return np.broadcast_to(flat, (len(streams), len(flat)))

    def noisy_rows(self, problem: Problem, calibration: Calibration, stream: np.random.SeedSequence) -> Floats:
        """(n, d) vector reports, scaled and signed back to the rows' own units: x + y xi/a."""
        n, d = problem.rows.X.shape
        a, _ = _quadratic(problem.setting)
        spread = calibration.noise_scale / (a * math.sqrt(n))
        return problem.rows.X + problem.rows.y[:, None] * spread * _report_draws(stream, n, d)

    def rows_in_words(self, setting: Setting) -> str:
        return (
            "Released are two reports: the signed record y·x, scaled, and its square x·xᵀ, both with noise. Shown is the first, "
            "scaled back and with this row's own label multiplied in again, which only who knows the label can do."
        )


def _sum_draws(stream: np.random.SeedSequence, d: int) -> tuple[Floats, Floats]:
    """(d,) and (d, d) noise of the summed vector and matrix reports at noise scale 1."""
    matrix, vector = substreams(stream, 2)
    return generator(vector).standard_normal(d), symmetric_draw(generator(matrix), d)


def _report_draws(stream: np.random.SeedSequence, n: int, d: int) -> Floats:
    """(n, d) standard normal draws of the vector reports, which sum to sqrt(n) times that of `_sum_draws`.

    Given their sum, normal draws are distributed as any others that are all moved until they have that sum.
    """
    draws = row_draws(stream, n, d)
    return draws + (_sum_draws(stream, d)[0] / math.sqrt(n) - draws.mean(axis=0, dtype=float))


def symmetric_draw(rng: np.random.Generator, d: int) -> Floats:
    """(d, d) symmetric standard Gaussian: N(0, 1) on the diagonal, N(0, 1/2) beside it."""
    square = rng.standard_normal((d, d))
    return np.triu(square, 1) / math.sqrt(2) + np.triu(square, 1).T / math.sqrt(2) + np.diag(np.diag(square))


def _quadratic(setting: Setting) -> tuple[float, float]:
    assert setting.quadratic is not None  # `refusal`
    return setting.quadratic
