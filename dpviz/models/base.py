"""What a model is: public facts for calibrations, and what mechanisms may ask of it.

Everything a mechanism needs of a model goes through `Model`, so that no mechanism knows which model it trains.
Parameters are an array (R, m), one row per replica: replicas are trained together. Sums over rows never include the
regulariser: it does not depend on data, so it costs no privacy and is added after clipping and noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, silent
from dpviz.common.words import Words
from dpviz.models.kronecker import Curvature
from dpviz.models.losses import Loss
from dpviz.models.rows import Rows

Floats = NDArray[np.float64]

#: (block of rows, (R, b) clipped gradient norms) -> weights that broadcast to (R, b)
Rule = Callable[[slice, Floats], NDArray[Any]]


@dataclass(frozen=True)
class Setting:
    """The public facts that a calibration may use: never anything read off private rows.

    Attributes:
        n: training rows, public.
        d: features, the intercept included.
        m: parameters.
        lam: l2 regularisation, > 0; the objective is mean loss + lam/2 |theta|^2.
        model: model id.
        G: bound on a row's data gradient, infinite where there is none without clipping.
        beta: bound on a row's data curvature (beta_0), infinite where there is none.
        third: bound on the third derivative (the papers' C, Hessian-Lipschitz), may be infinite.
        convex: whether the loss is convex in the parameters.
        unit_step: the step size that step-size knobs multiply: 1/L where L is known.
        slope_at_zero: |phi'(0)|, the loss's slope at theta = 0 for every row; infinite where the score is not linear.
        quadratic: (a, k) of the quadratic c - a m + k m^2/2 in the margin m that agrees with the loss in value,
            slope and curvature where its curvature is largest; None where the score is not linear.
    """

    n: int
    d: int
    m: int
    lam: float
    model: str
    G: float
    beta: float
    third: float
    convex: bool
    unit_step: float
    slope_at_zero: float = math.inf
    quadratic: tuple[float, float] | None = None

    @property
    def linear(self) -> bool:
        """Whether the score is <theta, x>."""
        return self.m == self.d

    @property
    def L(self) -> float:
        """Smoothness of the regularised loss, beta_0 + lam."""
        return self.beta + self.lam

    @property
    def mu(self) -> float:
        """Strong convexity of the regularised loss: lam where the loss is convex, else 0."""
        return self.lam if self.convex else 0.0


class Model(Protocol):
    """What mechanisms may ask of a model. R replicas, n rows, m parameters."""

    @property
    def id(self) -> str: ...

    @property
    def label(self) -> Words: ...

    @property
    def loss(self) -> Loss: ...

    @property
    def formula(self) -> Words:
        """LaTeX of the score f_theta(x)."""
        ...

    @property
    def convex(self) -> bool: ...

    @property
    def width(self) -> int | None:
        """Hidden units, 0 for as many as the rows have features; None for models without a hidden layer."""
        ...

    def setting(self, n: int, d: int, lam: float) -> Setting: ...

    def initial(self, m: int, streams: Sequence[np.random.SeedSequence]) -> Floats:
        """(streams, m) starting points that do not depend on data."""
        ...

    def from_one_start(self, seed: int) -> Model:
        """The same model with one start, known to everybody, for all replicas."""
        ...

    def prepare(self, rows: Rows, precision: type[np.floating] = np.float64) -> None:
        """Makes what passes over rows work on, in double or single precision: workers would each make it."""
        ...

    def scores(self, theta: Floats, rows: Rows) -> Floats:
        """(n, R) decision values; a row is predicted +1 where its value is >= 0."""
        ...

    def margins(self, theta: Floats, rows: Rows) -> Floats:
        """(n, R) labels times decision values."""
        ...

    def measure(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """(R,) mean losses and (R,) shares of rows predicted right, from one pass over the rows."""
        ...

    def sum_gradient(
        self,
        theta: Floats,
        rows: Rows,
        *,
        clip_norm: float = np.inf,
        weights: NDArray[np.floating] | None = None,
        rule: Rule | None = None,
    ) -> Floats:
        """(R, m) sum over rows of weight x clipped data gradient.

        Products run in the precision of theta, double or single; blocks of rows are added up in double. In single
        precision every contribution is shortened by 2^-20 of it or more, which is more than rounding may add, so that
        no row contributes more than `clip_norm`.

        Args:
            clip_norm: rows' gradients longer than this are shortened to it.
            weights: (n, R) or (n, 1); a 0/1 mask, for example, makes each replica's own mini-batch.
            rule: called once with each block of rows and its clipped gradient norms; returns further weights.
        """
        ...

    def line_losses(
        self, theta: Floats, direction: Floats, reach: Floats, count: int, rows: Rows, *, clip: float = np.inf
    ) -> Floats:
        """(R, count) sums over rows of min(loss, clip) at evenly spaced points of lines, to single precision.

        Args:
            direction: (R, m).
            reach: (R,) the lines go from theta_r to theta_r - reach_r direction_r.
        """
        ...

    def gradient_norms(self, theta: Floats, rows: Rows) -> Floats:
        """(n, R) lengths of the rows' data gradients, before clipping."""
        ...

    def noisy_gradient(self, theta: Floats, rows: Rows, noise: NDArray[np.floating], scale: Floats) -> Floats:
        """(R, m) sum over rows of the data gradient at x_i + scale_r noise_i; labels stay.

        The R perturbed copies of the rows are never made.

        Args:
            noise: (n, d), or (1, d) for one draw that all rows share.
            scale: (R,) noise scales.
        """
        ...

    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        """(n,) spectral norm of the derivative by x of each row's loss gradient (w in Kang-DBDP); theta as in `slopes`."""
        ...

    def minimise(self, rows: Rows, lam: float, start: Floats | None = None, monitor: Monitor = silent) -> Floats:
        """(m,) the non-private minimiser of the objective, searched from `start` (m,) where it is given.

        Args:
            monitor: told of progress where it takes long; raises to cancel.
        """
        ...

    @property
    def exact_curvature(self) -> bool:
        """Whether `hessian` is exact; otherwise it is the Gauss-Newton matrix, which leaves out the score's curvature."""
        ...

    def slopes(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """(n,) first and (n,) second derivative of each row's loss by its margin.

        Args:
            theta: (m,) for all rows, or (n, m) for row i at theta[i].
        """
        ...

    def score_gradients(self, theta: Floats, rows: Rows) -> Floats:
        """(n, m) derivatives J_i of the rows' scores by the parameters; theta as in `slopes`.

        A row's data gradient is y_i phi'(m_i) J_i and its (Gauss-Newton) curvature phi''(m_i) J_i J_i'.
        """
        ...

    def score_products(self, theta: Floats, rows: Rows, vectors: Floats) -> Floats:
        """(n, k) products <J_i, v> of the rows' score gradients at theta (m,) with k vectors (k, m)."""
        ...

    def hessian(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        """(m, m) mean of phi''(m_i) J_i J_i' over rows, plus lam I, at theta (m,)."""
        ...

    def hessian_product(self, theta: Floats, rows: Rows, lam: float, vectors: Floats) -> Floats:
        """(k, m) products of `hessian` with k vectors (k, m), without forming it."""
        ...

    @property
    def factored(self) -> bool:
        """Whether there is a `curvature`."""
        ...

    def curvature(self, theta: Floats, rows: Rows, lam: float) -> Curvature:
        """An approximate Hessian at theta (m,), for models with too many parameters for `hessian`."""
        ...


def regulariser(theta: Floats, lam: float) -> Floats:
    """(R,) lam/2 |theta|^2, what the objective adds to the mean loss."""
    return np.asarray(0.5 * lam * np.einsum("ij,ij->i", theta, theta))


def right(margin: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.intp]:
    """(R,) how many of the margins (R, b) belong to right predictions; a score of 0 predicts +1."""
    return count(margin > 0) + count((margin == 0) & (y > 0))


def count(which: NDArray[np.bool_]) -> NDArray[np.intp]:
    """(R,) how many of each row (R, b) are true; several times faster than `count_nonzero` along an axis."""
    return np.array([np.count_nonzero(row) for row in which], np.intp)
