"""The base class of models: public facts for calibrations, and the methods that mechanisms use.

Everything a mechanism needs of a model goes through `Model` and the capabilities that it declares
(`dpviz.models.capabilities`), so that no mechanism knows which model it trains.
Parameters are an array (R, m), one row per replica: replicas are trained together. Sums over rows never include the
regulariser: it does not depend on data, so it costs no privacy and is added after clipping and noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.paid import Paid
from dpviz.common.progress import Monitor, ignore
from dpviz.common.random import BatchIndices
from dpviz.common.validate import InvalidInput
from dpviz.models.capabilities import Ability, Derivatives, FeatureNoise, LineLosses
from dpviz.models.losses import Loss
from dpviz.models.row_budget import Rule
from dpviz.models.rows import Rows

T = TypeVar("T")


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
        sigmoid_slope: whether a row's data curvature is at most 4 t (1 - t) beta where its gradient is as long as t G.
        abilities: what the model can do beside training.
        person_rows: rows of one person at most, public, where epsilon is for a person; 0 where it is for a row.
        weighted: whether losses have weights, which are at most 1 (`Rows.weights`), so that all bounds above hold.
        preparations: what a part of the budget paid for before training (`dpviz.preparing`).
        looked_at: ranges and categories that were read from the rows, which no budget covers.
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
    sigmoid_slope: bool = False
    abilities: frozenset[Ability] = frozenset(Ability)
    person_rows: int = 0
    weighted: bool = False
    preparations: tuple[Paid, ...] = ()
    looked_at: int = 0

    @property
    def linear(self) -> bool:
        """True where the score is <theta, x>."""
        return self.m == self.d

    @property
    def L(self) -> float:
        """Smoothness of the regularised loss, beta_0 + lam."""
        return self.beta + self.lam

    @property
    def mu(self) -> float:
        """Strong convexity of the regularised loss: lam where the loss is convex, else 0."""
        return self.lam if self.convex else 0.0


class Model(ABC):
    """A model to be trained. R replicas, n rows, m parameters.

    A new model is one file with a subclass and a line in `dpviz.models.MODELS`. It gives five methods; the others have
    defaults. What it can do beside training is declared by the last three properties, None where it cannot.

    Attributes:
        id: of the registry, used in addresses and tables.
        label: for people.
        loss: of the margin y f_theta(x).
        formula: LaTeX of the score f_theta(x).
        convex: whether the objective is convex in the parameters.
        width: hidden units, 0 for as many as the rows have features; None where the model has none.
    """

    id: str
    label: str
    loss: Loss
    formula: str
    convex: bool
    width: int | None = None

    @abstractmethod
    def setting(self, n: int, d: int, lam: float) -> Setting:
        """Public facts for n rows of d features."""

    @abstractmethod
    def initial(self, m: int, streams: Sequence[np.random.SeedSequence]) -> Floats:
        """(streams, m) starting points that do not depend on data."""

    @abstractmethod
    def scores(self, theta: Floats, rows: Rows) -> Floats:
        """(n, R) decision values; a row is predicted +1 where its value is >= 0."""

    @abstractmethod
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
        precision every contribution is scaled down by 2^-20 of it or more, which is more than rounding may add, so that
        no row contributes more than `clip_norm`.

        Args:
            clip_norm: rows' gradients longer than this are clipped to it.
            weights: (n, R) or (n, 1); a 0/1 mask, for example, makes each replica's own mini-batch.
            rule: called once with each block of rows and its clipped gradient norms; returns further weights.
        """

    def sum_batches(
        self,
        theta: Floats,
        rows: Rows,
        batches: BatchIndices,
        *,
        clip_norm: float = np.inf,
        precision: type[np.floating] = np.float64,
    ) -> Floats:
        """(S, E, m) `sum_gradient` of replicas theta[s], (S, E, m), over the rows batches[s] alone."""
        found = []
        for at, index in zip(theta, batches, strict=True):
            batch = rows if len(index) == len(rows) else rows.batch(index)
            found.append(self.sum_gradient(at.astype(precision, copy=False), batch, clip_norm=clip_norm))
        return np.stack(found)

    @abstractmethod
    def minimise(self, rows: Rows, lam: float, start: Floats | None = None, monitor: Monitor = ignore) -> Floats:
        """(m,) the non-private minimiser of the objective, searched from `start` (m,) where it is given.

        Args:
            monitor: receives progress where it takes long; raises to cancel.
        """

    def from_one_start(self, seed: int) -> Model:
        """The same model with one public start for all replicas."""
        return self

    def prepare(self, rows: Rows, precision: type[np.floating] = np.float64) -> None:
        """Makes what passes over rows work on, in double or single precision: workers would each make it."""
        _ = rows.norms

    def measure(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """(R,) mean losses and (R,) shares of rows predicted right, from one pass over the rows."""
        margin = self.scores(theta, rows) * rows.y[:, None]
        hits = count_right(margin, rows.y[:, None])
        return self.loss.total(np.ascontiguousarray(margin.T)) / len(rows), hits / len(rows)

    def gradient_norms(self, theta: Floats, rows: Rows) -> Floats:
        """(n, R) norms of the rows' data gradients, before clipping."""
        out = np.empty((len(rows), len(theta)))

        def keep(block: slice, norms: Floats) -> Floats:
            out[block] = norms.T
            return np.ones((1, 1))

        self.sum_gradient(theta, rows, rule=keep)
        return out

    @property
    def derivatives(self) -> Derivatives | None:
        """For influence, individual epsilon and methods that follow single rows."""
        return None

    @property
    def line_losses(self) -> LineLosses | None:
        """For line search."""
        return None

    @property
    def feature_noise(self) -> FeatureNoise | None:
        """For input perturbation."""
        return None

    @property
    def abilities(self) -> frozenset[Ability]:
        """The abilities that the model has."""
        return frozenset(ability for ability in Ability if getattr(self, ability.name.lower()) is not None)


def _given(model: Model, value: T | None, ability: Ability) -> T:
    if value is None:
        raise InvalidInput("model", f"{model.id!r} does not give {ability}", "Choose another model.")
    return value


def derivatives_of(model: Model) -> Derivatives:
    """The derivatives of a model's scores.

    Raises:
        InvalidInput: the model gives none.
    """
    return _given(model, model.derivatives, Ability.DERIVATIVES)


def feature_noise_of(model: Model) -> FeatureNoise:
    """The model's training on rows with noise on their features.

    Raises:
        InvalidInput: it cannot be.
    """
    return _given(model, model.feature_noise, Ability.FEATURE_NOISE)


def line_losses_of(model: Model) -> LineLosses:
    """A model's losses along lines.

    Raises:
        InvalidInput: the model gives none.
    """
    return _given(model, model.line_losses, Ability.LINE_LOSSES)


def margins(model: Model, theta: Floats, rows: Rows) -> Floats:
    """(n, R) labels times decision values."""
    return rows.y[:, None] * model.scores(theta, rows)


def regulariser(theta: Floats, lam: float) -> Floats:
    """(R,) lam/2 |theta|^2, what the objective adds to the mean loss."""
    return np.asarray(0.5 * lam * np.einsum("ij,ij->i", theta, theta))


def count_right(margin: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.intp]:
    """(R,) how many of the margins (b, R) of rows with labels (b, 1) belong to right predictions; a score of 0 predicts +1."""
    return np.count_nonzero(margin > 0, axis=0) + np.count_nonzero((margin == 0) & (y > 0), axis=0)


def count(which: NDArray[np.bool_]) -> NDArray[np.intp]:
    """(R,) how many of each row (R, b) are true; several times faster than `count_nonzero` along an axis."""
    return np.array([np.count_nonzero(row) for row in which], np.intp)
