"""Linear models: the score is <theta, x>.

Derivatives of a linear model: the score <theta, x> has the gradient x, so that curvature is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, ignore
from dpviz.common.random import BatchIndices
from dpviz.models.base import Floats, Model, Rule, Setting
from dpviz.models.capabilities import Derivatives, FeatureNoise, LineLosses, Noise
from dpviz.models.feature_derivative import linear_mixed
from dpviz.models.losses import Loss
from dpviz.models.products import by_replica, products
from dpviz.models.rows import Rows, gram, row_blocks
from dpviz.models.solvers.many import newton


@dataclass(frozen=True)
class LinearDerivatives(Derivatives):
    """J_i = x_i."""

    loss: Loss
    exact = True

    def row_scores(self, theta: Floats, rows: Rows) -> Floats:
        return rows.X @ theta if theta.ndim == 1 else np.einsum("ij,ij->i", rows.X, theta)

    def score_gradients(self, theta: Floats, rows: Rows) -> Floats:
        return rows.X

    def slopes(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        margin = rows.signed_rows @ theta if theta.ndim == 1 else np.einsum("ij,ij->i", rows.signed_rows, theta)
        weights = 1.0 if rows.weights is None else rows.weights
        return np.asarray(weights * self.loss.slope(margin), float), np.asarray(weights * self.loss.curvature(margin), float)

    def hessian(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        _, weight = self.slopes(theta, rows)
        return gram(rows.X, weight / len(rows)) + lam * np.eye(len(theta))

    def hessian_product(self, theta: Floats, rows: Rows, lam: float, vectors: Floats) -> Floats:
        _, weight = self.slopes(theta, rows)
        total = lam * vectors
        for block in row_blocks(len(rows), len(vectors)):
            total += ((rows.X[block] @ vectors.T) * (weight[block, None] / len(rows))).T @ rows.X[block]
        return total


@dataclass(frozen=True)
class LinearFeatureNoise(FeatureNoise):
    """The noise of a row enters its score through theta alone: <theta, x + s e> = <theta, x> + s <theta, e>."""

    loss: Loss

    def noisy_gradient(self, theta: Floats, rows: Rows, noise: Sequence[Noise], scale: Floats) -> Floats:
        scales = scale[:, None]
        common, own = products(rows, theta.dtype.type).noisy_gradient(theta, theta * scales, noise, self.loss)
        return common + scales * own

    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        slope, curvature = LinearDerivatives(self.loss).slopes(theta, rows)
        return linear_mixed(rows.y * slope, curvature, rows.X, theta)


_SHRINK = 1 - 2.0**-20  # of a sum in single precision: what rounding may add to a row's contribution, some 2^-22, is taken off


@dataclass(frozen=True)
class LinearModel(Model):
    """Score <theta, x> under a convex margin loss with rows in the unit ball."""

    id: str
    label: str
    loss: Loss
    formula: str = r"\langle\theta,x\rangle"
    convex: bool = True

    def setting(self, n: int, d: int, lam: float) -> Setting:
        beta = self.loss.curvature_bound
        at = np.array(self.loss.centre)
        slope, curvature = float(self.loss.slope(at)), float(self.loss.curvature(at))
        return Setting(
            n=n,
            d=d,
            m=d,
            lam=lam,
            model=self.id,
            G=self.loss.slope_bound,
            beta=beta,
            third=self.loss.third_bound,
            convex=True,
            unit_step=1.0 / (beta + lam),
            slope_at_zero=abs(float(self.loss.slope(np.zeros(())))),
            quadratic=(curvature * self.loss.centre - slope, curvature),
            sigmoid_slope=vars(type(self.loss)).get("sigmoid_slope", False),  # not inherited: another slope needs another proof
            abilities=self.abilities,
        )

    @property
    def derivatives(self) -> Derivatives:
        return LinearDerivatives(self.loss)

    @property
    def feature_noise(self) -> FeatureNoise:
        return LinearFeatureNoise(self.loss)

    @property
    def line_losses(self) -> LineLosses:
        return self._line_losses

    def initial(self, m: int, streams: Sequence[np.random.SeedSequence]) -> Floats:
        return np.zeros((len(streams), m))

    def prepare(self, rows: Rows, precision: type[np.floating] = np.float64) -> None:
        products(rows, precision)
        _ = rows.signed_rows32 if precision is np.float32 else rows.signed_rows
        _ = rows.longest

    def scores(self, theta: Floats, rows: Rows) -> Floats:
        return by_replica(rows.X, theta)

    def measure(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        loss, hits = products(rows, np.float64).losses(theta, self.loss)
        return loss / len(rows), hits / len(rows)

    def sum_gradient(
        self,
        theta: Floats,
        rows: Rows,
        *,
        clip_norm: float = np.inf,
        weights: NDArray[np.floating] | None = None,
        rule: Rule | None = None,
    ) -> Floats:
        precision = theta.dtype.type
        total = products(rows, precision).gradient(theta, self.loss, self._clipping(rows, clip_norm), weights, rule)
        return total * _SHRINK if precision is np.float32 else total

    def sum_batches(
        self,
        theta: Floats,
        rows: Rows,
        batches: BatchIndices,
        *,
        clip_norm: float = np.inf,
        precision: type[np.floating] = np.float64,
    ) -> Floats:
        total = products(rows, precision).batches(theta, batches, self.loss, self._clipping(rows, clip_norm))
        return total * _SHRINK if precision is np.float32 else total

    def _clipping(self, rows: Rows, clip_norm: float) -> float:
        """The clip norm; infinite where no row's gradient can be longer."""
        # rows of unit norm are often 1 + 1e-16 long, which is not worth a pass over the data
        return clip_norm if clip_norm * (1 + 1e-9) < self.loss.slope_bound * rows.longest else np.inf

    def _line_losses(
        self, theta: Floats, direction: Floats, reach: Floats, count: int, rows: Rows, *, clip: float = np.inf
    ) -> Floats:
        """Scores are linear along a line, so that two products serve all its points."""
        step = direction * (reach / max(count - 1, 1))[:, None]
        return products(rows, np.float32).line_losses(theta, step, count, self.loss, clip).T

    def gradient_norms(self, theta: Floats, rows: Rows) -> Floats:
        of_row = rows.norms if rows.weights is None else rows.norms * rows.weights
        return np.abs(self.loss.slope_inplace(rows.signed_rows @ theta.T)) * of_row[:, None]

    def minimise(self, rows: Rows, lam: float, start: Floats | None = None, monitor: Monitor = ignore) -> Floats:
        return newton(rows.signed_rows, self.loss, lam, start=start, weights=rows.weights)[0]
