"""Models whose replicas are trained together: parameters are an array (R, m), one row per replica.

Everything a mechanism needs of a model goes through `Model`, so that no mechanism knows which model it trains.
Sums over rows never include the regulariser: it does not depend on data, so it costs no privacy and is added
after clipping and noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpviz.losses import HuberHinge, Logistic, Loss
from dpviz.mixed import linear_mixed
from dpviz.optim import minimise_many, newton
from dpviz.validate import one_of

Floats = NDArray[np.float64]

#: (block of rows, (b, R) clipped gradient norms) -> (b, R) weights
Rule = Callable[[slice, Floats], NDArray[Any]]

_SINGLE_FROM = 1 << 20  # entries of a table from which on stochastic training may use single precision
_BLOCK_ELEMENTS = 1 << 18  # rows x replicas worked on at once: small enough to stay in the processor's cache
_SINGLE_ROWS = 32  # rows summed in single precision before the sum goes on in double
_SMALL_PRODUCT = 800_000  # rows x replicas x parameters below which OpenBLAS multiplies without repacking its input


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
    quadratic: tuple[float, float] | None = None

    @property
    def L(self) -> float:
        """Smoothness of the regularised loss, beta_0 + lam."""
        return self.beta + self.lam

    @property
    def mu(self) -> float:
        """Strong convexity of the regularised loss: lam where the loss is convex, else 0."""
        return self.lam if self.convex else 0.0


class Rows:
    """Labelled rows with the derived arrays that models work on, made once when first needed."""

    def __init__(self, X: Floats, y: Floats) -> None:
        self.X = X
        self.y = y

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def signed(self) -> Floats:
        """(n, d) rows y_i x_i: margins are `signed @ theta`, gradients `signed.T @ slope`."""
        return self.X * self.y[:, None]

    @cached_property
    def signed32(self) -> NDArray[np.float32]:
        """`signed` in single precision, for stochastic training."""
        return self.signed.astype(np.float32)

    @cached_property
    def norms(self) -> Floats:
        """(n,) lengths of the rows."""
        return np.sqrt(np.einsum("ij,ij->i", self.X, self.X))

    @cached_property
    def longest(self) -> float:
        """Length of the longest row."""
        return float(self.norms.max(initial=0.0))

    def part(self, name: str, block: slice) -> NDArray[np.floating]:
        """A block of rows of one of the arrays above, by the array's name."""
        values: NDArray[np.floating] = getattr(self, name)[block]
        return values

    def batch(self, index: NDArray[np.intp]) -> Batch:
        """Some of the rows, each array gathered only where it is asked for: cheap for mini-batches."""
        return Batch(self, index)

    def take(self, index: NDArray[np.intp] | slice) -> Rows:
        """Some of the rows; slices share memory. `signed` is carried over where it is there already."""
        part = Rows(self.X[index], self.y[index])
        for name in ("signed", "signed32", "norms"):
            if name in self.__dict__:
                part.__dict__[name] = self.__dict__[name][index]
        return part

    def replace_row(self, index: int, x: Floats, y: float) -> Rows:
        """The neighbouring rows in which row `index` is (x, y)."""
        X, labels = self.X.copy(), self.y.copy()
        X[index], labels[index] = x, y
        return Rows(X, labels)


class Batch(Rows):
    """Rows of a parent by index. `part` gathers block by block, so that a batch never leaves the processor's cache."""

    def __init__(self, parent: Rows, index: NDArray[np.intp]) -> None:
        self.parent = parent
        self.index = index

    def __len__(self) -> int:
        return len(self.index)

    def __getattr__(self, name: str) -> Floats:
        if name not in ("X", "y"):
            raise AttributeError(name)
        value: Floats = getattr(self.parent, name)[self.index]
        setattr(self, name, value)
        return value

    @cached_property
    def longest(self) -> float:
        """Length of the parent's longest row: an upper bound."""
        return self.parent.longest

    def part(self, name: str, block: slice) -> NDArray[np.floating]:
        values: NDArray[np.floating] = getattr(self.parent, name).take(self.index[block], axis=0)
        return values


class Model(Protocol):
    """What mechanisms may ask of a model. R replicas, n rows, m parameters."""

    @property
    def id(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def convex(self) -> bool: ...

    def setting(self, n: int, d: int, lam: float) -> Setting: ...

    def initial(self, m: int, streams: Sequence[np.random.SeedSequence]) -> Floats:
        """(streams, m) starting points that do not depend on data."""
        ...

    def scores(self, theta: Floats, rows: Rows) -> Floats:
        """(n, R) decision values; a row is predicted +1 where its value is >= 0."""
        ...

    def margins(self, theta: Floats, rows: Rows) -> Floats:
        """(n, R) labels times decision values."""
        ...

    def objective(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        """(R,) mean loss + lam/2 |theta|^2."""
        ...

    def sum_gradient(
        self, theta: Floats, rows: Rows, *, clip_norm: float = np.inf, weights: NDArray[np.floating] | None = None,
        rule: Rule | None = None,
    ) -> Floats:  # fmt: skip
        """(R, m) sum over rows of weight x clipped data gradient.

        Products run in the precision of theta, double or single; blocks of rows are added up in double.

        Args:
            clip_norm: rows' gradients longer than this are shortened to it.
            weights: (n, R) or (n, 1); a 0/1 mask, for example, makes each replica's own mini-batch.
            rule: called once with each block of rows and its clipped gradient norms; returns further weights.
        """
        ...

    def line_losses(self, theta: Floats, direction: Floats, lengths: Floats, rows: Rows, *, clip: float = np.inf) -> Floats:
        """(R, K) sums over rows of min(loss, clip) at theta_r - lengths_rk direction_r, to single precision.

        Args:
            direction: (R, m).
            lengths: (R, K).
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

    def minimise(self, rows: Rows, lam: float, start: Floats | None = None) -> Floats:
        """(m,) the non-private minimiser of the objective, searched from `start` (m,) where it is given."""
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

    def hessian(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        """(m, m) mean of phi''(m_i) J_i J_i' over rows, plus lam I, at theta (m,)."""
        ...

    def hessian_product(self, theta: Floats, rows: Rows, lam: float, vectors: Floats) -> Floats:
        """(k, m) products of `hessian` with k vectors (k, m), without forming it."""
        ...


@dataclass(frozen=True)
class LinearModel:
    """Score <theta, x> under a convex margin loss with rows in the unit ball."""

    id: str
    label: str
    loss: Loss
    convex: bool = True
    exact_curvature: bool = True

    def setting(self, n: int, d: int, lam: float) -> Setting:
        beta = self.loss.curvature_bound
        at = np.array(self.loss.centre)
        slope, curvature = float(self.loss.slope(at)), float(self.loss.curvature(at))
        return Setting(
            n=n, d=d, m=d, lam=lam, model=self.id, G=self.loss.slope_bound, beta=beta, third=self.loss.third_bound,
            convex=True, unit_step=1.0 / (beta + lam), quadratic=(curvature * self.loss.centre - slope, curvature),
        )  # fmt: skip

    def initial(self, m: int, streams: Sequence[np.random.SeedSequence]) -> Floats:
        return np.zeros((len(streams), m))

    def scores(self, theta: Floats, rows: Rows) -> Floats:
        return rows.X @ theta.T

    def margins(self, theta: Floats, rows: Rows) -> Floats:
        return rows.signed @ theta.T

    def objective(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        total = np.zeros(len(theta))
        for block in _blocks(len(rows), len(theta)):
            total += self.loss.value(rows.signed[block] @ theta.T).sum(axis=0)
        return total / len(rows) + 0.5 * lam * np.einsum("ij,ij->i", theta, theta)

    def sum_gradient(
        self, theta: Floats, rows: Rows, *, clip_norm: float = np.inf, weights: NDArray[np.floating] | None = None,
        rule: Rule | None = None,
    ) -> Floats:  # fmt: skip
        total = np.zeros(theta.shape)
        columns = np.ascontiguousarray(theta.T)
        # rows of unit length are often 1 + 1e-16 long, which is not worth a pass over the data
        clips = clip_norm * (1 + 1e-9) < self.loss.slope_bound * rows.longest
        single = theta.dtype == np.float32
        blocks = _blocks(len(rows), len(theta), theta.shape[1] if single else 0)
        # one buffer for all blocks: fresh memory for each would cost more than the product itself
        buffer = np.empty((blocks[0].stop if blocks else 0, len(theta)), theta.dtype)
        for block in blocks:
            signed = rows.part("signed32" if single else "signed", block)
            slope = self.loss.slope_inplace(np.matmul(signed, columns, out=buffer[: len(signed)]))
            if clips:
                norms = rows.part("norms", block).astype(theta.dtype, copy=False)
                slope *= _clip_factor(np.abs(slope) * norms[:, None], clip_norm)
            if weights is not None:
                slope *= weights[block]
            if rule is not None:
                slope *= rule(block, np.abs(slope) * rows.part("norms", block)[:, None])
            total += _transposed_product(slope, signed)
        return total

    def line_losses(self, theta: Floats, direction: Floats, lengths: Floats, rows: Rows, *, clip: float = np.inf) -> Floats:
        points = np.vstack([theta, direction]).T.astype(np.float32)
        steps = lengths.astype(np.float32)
        total = np.zeros(lengths.shape)
        r = len(theta)
        for block in _blocks(len(rows), 4 * r):
            both = rows.part("signed32", block) @ points
            start, along = np.ascontiguousarray(both[:, :r]), np.ascontiguousarray(both[:, r:])
            buffer = np.empty_like(start)
            for k in range(lengths.shape[1]):
                np.multiply(along, steps[:, k], out=buffer)
                np.subtract(start, buffer, out=buffer)
                total[:, k] += self.loss.sum_clipped(buffer, clip)
        return total

    def gradient_norms(self, theta: Floats, rows: Rows) -> Floats:
        return np.abs(self.loss.slope_inplace(rows.signed @ theta.T)) * rows.norms[:, None]

    def noisy_gradient(self, theta: Floats, rows: Rows, noise: NDArray[np.floating], scale: Floats) -> Floats:
        total = np.zeros_like(theta)
        # long rows make descent expansive, so that rounding grows: single precision only where time asks for it
        everything: NDArray[np.floating] = rows.signed32 if rows.X.size > _SINGLE_FROM else rows.signed
        kind = everything.dtype
        columns = np.ascontiguousarray(theta.T, kind)
        scaled = np.ascontiguousarray((theta * scale[:, None]).T, kind)
        labels = rows.y[:, None].astype(kind)
        common = len(noise) == 1
        for block in _blocks(len(rows), max(theta.shape)):  # rows and noise both stay in the cache between the two products
            signed, label = everything[block], labels[block]
            draw = (noise if common else noise[block]).astype(kind, copy=False)
            slope = self.loss.slope_inplace(signed @ columns + label * (draw @ scaled))
            total += slope.T @ signed
            slope *= label
            total += scale[:, None] * (slope.sum(axis=0)[:, None] * draw if common else slope.T @ draw)
        return total

    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        slope, curvature = self.slopes(theta, rows)
        return linear_mixed(rows.y * slope, curvature, rows.X, theta).spectral

    def minimise(self, rows: Rows, lam: float, start: Floats | None = None) -> Floats:
        return newton(rows.signed, self.loss, lam, start=start)[0]

    def slopes(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        margin = rows.signed @ theta if theta.ndim == 1 else np.einsum("ij,ij->i", rows.signed, theta)
        return np.asarray(self.loss.slope(margin), float), np.asarray(self.loss.curvature(margin), float)

    def score_gradients(self, theta: Floats, rows: Rows) -> Floats:
        return rows.X

    def hessian(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        _, weight = self.slopes(theta, rows)
        total = lam * np.eye(len(theta))
        for block in _blocks(len(rows), len(theta)):
            active = weight[block] > 0
            part = rows.X[block] if active.all() else rows.X[block][active]
            part = part * np.sqrt(weight[block][active] / len(rows))[:, None]
            total += part.T @ part  # one buffer on both sides: numpy calls syrk, half the work of a product
        return total

    def hessian_product(self, theta: Floats, rows: Rows, lam: float, vectors: Floats) -> Floats:
        _, weight = self.slopes(theta, rows)
        total = lam * vectors
        for block in _blocks(len(rows), len(vectors)):
            total += ((rows.X[block] @ vectors.T) * (weight[block, None] / len(rows))).T @ rows.X[block]
        return total

    def minimise_perturbed(
        self, rows: Rows, lam: Floats, linear: Floats, *, tolerance: float, strict: bool = False,
        progress: Callable[[float], None] | None = None,
    ) -> Floats:  # fmt: skip
        """(R, m) minimisers of mean loss + lam_r/2 |theta|^2 + <linear_r, theta>; see `dpviz.optim.minimise_many`."""
        return minimise_many(
            rows.signed, self.loss, lam, linear, tolerance=tolerance, strict=strict, single=rows.signed32, progress=progress
        )


def _blocks(n: int, replicas: int, parameters: int = 0) -> list[slice]:
    """Slices of rows for one pass; `parameters` is given where products should stay small ones."""
    size = max(256, _BLOCK_ELEMENTS // max(replicas, 1))
    small = _SMALL_PRODUCT // max(replicas * parameters, 1)
    if parameters and small >= 256:
        size = min(size, small // _SINGLE_ROWS * _SINGLE_ROWS)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _transposed_product(slope: NDArray[np.floating], signed: NDArray[np.floating]) -> NDArray[np.floating]:
    """slope.T @ signed; in single precision sums stay short, so that rounding is far below what one row contributes."""
    if slope.dtype != np.float32:
        return slope.T @ signed
    whole = len(slope) - len(slope) % _SINGLE_ROWS
    parts = slope[:whole].reshape(-1, _SINGLE_ROWS, slope.shape[1]).transpose(0, 2, 1)
    total = (parts @ signed[:whole].reshape(-1, _SINGLE_ROWS, signed.shape[1])).sum(axis=0, dtype=np.float64)
    return total + slope[whole:].T @ signed[whole:]


def _clip_factor(norm: Floats, clip_norm: float) -> Floats:
    """min(1, C/|g|), with 1 for zero gradients (Abadi et al. 2016, Algorithm 1)."""
    return clip_norm / np.maximum(norm, clip_norm)


MODELS: dict[str, Model] = {
    "logistic": LinearModel("logistic", "Logistic regression", Logistic()),
    "svm": LinearModel("svm", "Support vector machine (huberised, h = 0.5)", HuberHinge(0.5)),
}


def get_model(name: str) -> Model:
    """A model by id.

    Raises:
        InvalidInput: no such model.
    """
    return MODELS[one_of("model", name, MODELS)]
