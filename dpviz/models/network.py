"""A network with one hidden layer, replicas trained together and rows clipped without their gradients ever being made.

    f(x) = <a, tanh(W (x, 1))> + c            theta = (W row by row, a, c): m = k (d + 1) + k + 1 for k hidden units

With s = tanh(W (x, 1)), e = a (1 - s^2) elementwise and q = y phi'(y f), a row's data gradient is
q (e (x, 1)', s, 1), so that its length needs no more than the forward pass ("ghost" clipping, Goodfellow 2015):

    |gradient|^2 = q^2 (|e|^2 (|x|^2 + 1) + |s|^2 + 1)

and the sum of clipped gradients is one matrix product per layer with the rows' coefficients q min(1, C/|gradient|).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, silent
from dpviz.common.random import generator, substreams
from dpviz.common.words import Words
from dpviz.models.base import Floats, Rule, Setting, regulariser, right
from dpviz.models.feature_derivative import network_mixed
from dpviz.models.kronecker import Curvature, KroneckerCurvature
from dpviz.models.losses import Logistic, Loss
from dpviz.models.rows import Rows
from dpviz.models.solvers.network_training import best_of_starts, polish

Real = NDArray[Any]  # double or single precision, as theta is

_BLOCK_ELEMENTS = 1 << 18  # hidden values worked on at once: they stay in the processor's cache between passes
_BLOCK_ROWS = 1536  # rows summed in one product: in single precision longer sums would round visibly
_SHORTER = 1 - 2.0**-18  # of a sum in single precision: more than rounding may add to a row's contribution
_INITIAL = 7  # substream of a replica's stream that is the start's alone
#: what step-size knobs take for L, which a network has not; no guarantee rests on it. At a start |J|^2 is about 4, so that
#: phi'' |J|^2 <= 1; twice that step learns Adult and breast cancer better at every epsilon tried, four times does not
NOMINAL_SMOOTHNESS = 0.5
STARTS = 3  # non-private trainings, of which the best counts as the minimum


class Parts(NamedTuple):
    """Views of parameters (R, m)."""

    W: Real  # (R, k, d + 1), offsets last
    a: Real  # (R, k)
    c: Real  # (R,)


@dataclass(frozen=True)
class Network:
    """One hidden layer of tanh units under a convex margin loss; gradients have no bound, so privacy needs clipping.

    Attributes:
        width: hidden units; 0 for as many as the rows have features, the constant one included.
        start: seed of one start that all replicas share; None for a start of each replica's own.
    """

    id: str = "mlp"
    label: Words = "Neural network (one hidden layer)"
    width: int = 0
    loss: Loss = field(default_factory=Logistic)
    formula: Words = r"\langle a,\tanh(W(x,1))\rangle+c,\quad\theta=(W,a,c)"
    convex: bool = False
    exact_curvature: bool = False
    factored: bool = True
    start: int | None = None

    def units(self, d: int) -> int:
        """Hidden units for rows of d features."""
        return self.width or d

    def features(self, m: int) -> int:
        """Features of the rows that m parameters belong to."""
        return m // self.width - 2 if self.width else round(m**0.5) - 1

    def split(self, theta: Real) -> Parts:
        """Weights of the two layers as views of parameters (R, m)."""
        d = self.features(theta.shape[1])
        k = self.units(d)
        end = k * (d + 1)
        return Parts(theta[:, :end].reshape(-1, k, d + 1), theta[:, end:-1], theta[:, -1])

    def setting(self, n: int, d: int, lam: float) -> Setting:
        k, none = self.units(d), float("inf")
        return Setting(
            n=n,
            d=d,
            m=k * (d + 2) + 1,
            lam=lam,
            model=self.id,
            G=none,
            beta=none,
            third=none,
            convex=False,
            unit_step=1.0 / (NOMINAL_SMOOTHNESS + lam),
        )

    def initial(self, m: int, streams: Sequence[np.random.SeedSequence]) -> Floats:
        """(streams, m) normal weights of variance 1/inputs in both layers (LeCun 1998), offsets 0."""
        if self.start is not None:
            streams = [np.random.SeedSequence(self.start)] * len(streams)
        theta = np.zeros((len(streams), m))
        W, a, _ = self.split(theta)
        for r, stream in enumerate(streams):
            rng = generator(substreams(stream, _INITIAL + 1)[_INITIAL])
            W[r, :, :-1] = rng.standard_normal(W[r, :, :-1].shape) / np.sqrt(W.shape[2] - 1)
            a[r] = rng.standard_normal(a.shape[1]) / np.sqrt(a.shape[1])
        return theta

    def from_one_start(self, seed: int) -> Network:
        return replace(self, start=seed)

    def prepare(self, rows: Rows, precision: type[np.floating] = np.float64) -> None:
        _ = rows.extended32 if precision is np.float32 else rows.extended, rows.norms

    def scores(self, theta: Floats, rows: Rows) -> Floats:
        out = np.empty((len(rows), len(theta)))
        for block, _, s in self._passes(theta, rows):
            out[block] = self._top(s, theta)
        return out

    def margins(self, theta: Floats, rows: Rows) -> Floats:
        return rows.y[:, None] * self.scores(theta, rows)

    def measure(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        loss, hits = np.zeros((2, len(theta)))
        for block, _, s in self._passes(theta, rows):
            label = rows.part("y", block)
            margin = np.ascontiguousarray(self._top(s, theta).T) * label
            hits += right(margin, label)
            loss += self.loss.total(margin)
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
        total = np.zeros(theta.shape)
        measured = np.isfinite(clip_norm) or rule is not None
        for block, x, s in self._passes(theta, rows):
            q = self._score_slopes(rows, block, s, theta)
            e = self._inner(s, theta)
            if measured:
                norms = np.abs(q) * self._lengths(rows.part("norms", block).astype(x.dtype, copy=False), s, e)
                if np.isfinite(clip_norm):
                    q *= clip_norm / np.maximum(norms, clip_norm)  # Abadi et al. 2016, Algorithm 1
                    np.minimum(norms, clip_norm, out=norms)
            if weights is not None:
                q *= weights[block]
                if measured:
                    norms *= weights[block]
            if rule is not None:
                q *= rule(block, norms.T).T
            self._gather(total, x, s, e, q)
        return total * _SHORTER if theta.dtype == np.float32 else total

    def value_and_gradient(self, theta: Floats, rows: Rows, lam: float) -> tuple[Floats, Floats]:
        """(R,) objectives and (R, m) their gradients, from one pass over the rows."""
        value, total = np.zeros(len(theta)), np.zeros(theta.shape)
        for block, x, s in self._passes(theta, rows):
            label = rows.part("y", block)[:, None]
            margin = label * self._top(s, theta)
            value += self.loss.value(margin).sum(axis=0)
            self._gather(total, x, s, self._inner(s, theta), self.loss.slope_inplace(margin) * label)
        return value / len(rows) + regulariser(theta, lam), total / len(rows) + lam * theta

    def line_losses(
        self, theta: Floats, direction: Floats, reach: Floats, count: int, rows: Rows, *, clip: float = np.inf
    ) -> Floats:
        total, r = np.zeros((len(theta), count)), len(theta)
        ends = np.vstack([theta, direction]).astype(np.float32)
        W, a, c = self.split(ends)
        lengths = (reach[:, None] * np.linspace(0, 1, count)).astype(np.float32)
        for block in self._blocks(len(rows), 2 * r * W.shape[1]):
            both = (rows.part("extended32", block) @ W.reshape(-1, W.shape[2]).T).reshape(-1, 2 * r, W.shape[1])
            label = rows.part("y", block)[:, None].astype(np.float32)
            for k in range(count):
                step = lengths[:, k]
                s = np.tanh(both[:, :r] - step[:, None] * both[:, r:])
                margin = label * (np.einsum("brk,rk->br", s, a[:r] - step[:, None] * a[r:]) + (c[:r] - step * c[r:]))
                start = np.ascontiguousarray(margin.T)[None]
                total[:, k] += self.loss.line_sums(start, np.zeros_like(start), 1, clip)[0]
        return total

    def gradient_norms(self, theta: Floats, rows: Rows) -> Floats:
        out = np.empty((len(rows), len(theta)))
        for block, _, s in self._passes(theta, rows):
            q = self._score_slopes(rows, block, s, theta)
            out[block] = np.abs(q) * self._lengths(rows.part("norms", block), s, self._inner(s, theta))
        return out

    def noisy_gradient(self, theta: Floats, rows: Rows, noise: NDArray[np.floating], scale: Floats) -> Floats:
        total, W = np.zeros(theta.shape), self.split(theta).W
        flat = np.ascontiguousarray(W[:, :, :-1].reshape(-1, W.shape[2] - 1).T)
        spread = np.repeat(scale, W.shape[1])
        common = len(noise) == 1
        for block in self._blocks(len(rows), flat.shape[1]):
            x, draw = rows.part("extended", block), (noise if common else noise[block]).astype(float, copy=False)
            hidden = x @ W.reshape(-1, W.shape[2]).T
            hidden += (draw @ flat) * spread
            s = np.tanh(hidden, out=hidden).reshape(len(x), len(theta), -1)
            q = self._score_slopes(rows, block, s, theta)
            e = self._inner(s, theta)
            self._gather(total, x, s, e, q)  # e now holds q e
            moved = e.reshape(len(x), -1)
            inner = np.outer(moved.sum(axis=0), draw[0]) if common else moved.T @ draw
            self.split(total).W[:, :, :-1] += (spread[:, None] * inner).reshape(W[:, :, :-1].shape)
        return total

    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        W, a, c = self.split(np.broadcast_to(theta, (len(rows), theta.shape[-1])))
        return np.array([network_mixed(W[i], a[i], c[i], rows.X[i], rows.y[i], self.loss) for i in range(len(rows))])

    def minimise(self, rows: Rows, lam: float, start: Floats | None = None, monitor: Monitor = silent) -> Floats:
        """(m,) the best of three long trainings without privacy, or the nearest minimum below `start`.

        There may be a better minimum: nobody can tell for a network.
        """
        if start is not None:
            return polish(self, rows, lam, start)
        d = rows.X.shape[1]
        streams = [np.random.SeedSequence(k) for k in range(STARTS)]
        starts = replace(self, start=None).initial(self.setting(len(rows), d, lam).m, streams)
        return best_of_starts(self, rows, lam, starts, monitor)

    def slopes(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        margin = rows.y * self._own_scores(theta, rows)
        return np.asarray(self.loss.slope(margin), float), np.asarray(self.loss.curvature(margin), float)

    def _own_scores(self, theta: Floats, rows: Rows) -> Floats:
        if theta.ndim == 1:
            return self.scores(theta[None], rows)[:, 0]
        W, a, c = self.split(theta)
        s = np.tanh(np.einsum("nkd,nd->nk", W, rows.extended))
        return np.einsum("nk,nk->n", a, s) + c

    def score_gradients(self, theta: Floats, rows: Rows) -> Floats:
        W, a, _ = self.split(np.atleast_2d(theta))
        x = rows.extended
        s = np.tanh(x @ W[0].T if theta.ndim == 1 else np.einsum("nkd,nd->nk", W, x))
        out = np.empty((len(rows), theta.shape[-1]))
        J = self.split(out)
        np.multiply((a * (1 - s * s))[:, :, None], x[:, None, :], out=J.W)
        J.a[:] = s
        J.c[:] = 1.0
        return out

    def score_products(self, theta: Floats, rows: Rows, vectors: Floats) -> Floats:
        u = self.split(vectors)
        flat = u.W.reshape(-1, u.W.shape[2]).T
        out = np.empty((len(rows), len(vectors)))
        for block, x, s in self._passes(theta[None], rows, len(flat.T)):
            moved = (x @ flat).reshape(len(x), len(vectors), -1)
            e = self._inner(s, theta[None])[:, 0]
            out[block] = np.einsum("bk,btk->bt", e, moved) + s[:, 0] @ u.a.T + u.c
        return out

    def hessian(self, theta: Floats, rows: Rows, lam: float) -> Floats:
        _, weight = self.slopes(theta, rows)
        total = lam * np.eye(len(theta))
        size = max(16, _BLOCK_ELEMENTS // len(theta))
        for start in range(0, len(rows), size):
            block = slice(start, min(start + size, len(rows)))
            part = self.score_gradients(theta, rows.take(block)) * np.sqrt(weight[block] / len(rows))[:, None]
            total += part.T @ part
        return total

    def hessian_product(self, theta: Floats, rows: Rows, lam: float, vectors: Floats) -> Floats:
        _, weight = self.slopes(theta, rows)
        along = self.score_products(theta, rows, vectors) * (weight / len(rows))[:, None]
        total = lam * vectors
        for block, x, s in self._passes(theta[None], rows, len(vectors) * self.split(vectors).W.shape[1]):
            shape = (len(x), len(vectors), s.shape[2])
            e = np.array(np.broadcast_to(self._inner(s, theta[None]), shape))
            self._gather(total, x, np.broadcast_to(s, shape), e, along[block])
        return total

    def curvature(self, theta: Floats, rows: Rows, lam: float) -> Curvature:
        return KroneckerCurvature(self, theta, rows, lam)

    def factors(self, theta: Floats, rows: Rows) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
        """Blocks of rows with x (b, d + 1), e (b, k) and (s, 1) (b, k + 1): a score's gradient is (e x', s, 1).

        Args:
            theta: (1, m).
        """
        for block, x, s in self._passes(theta, rows):
            yield block, x, self._inner(s, theta)[:, 0], np.column_stack([s[:, 0], np.ones(len(x))])

    # One block of b rows: x (b, d + 1), hidden values s (b, R, k), inner derivatives e (b, R, k), coefficients q (b, R).

    @staticmethod
    def _blocks(n: int, hidden: int) -> list[slice]:
        """Slices of n rows of about equal length; `hidden` values a row."""
        size = min(_BLOCK_ROWS, max(64, _BLOCK_ELEMENTS // max(hidden, 1)))
        ends = np.linspace(0, n, -(-n // size) + 1).astype(int).tolist()
        return [slice(start, stop) for start, stop in itertools.pairwise(ends)]

    def _passes(self, theta: Real, rows: Rows, also: int = 0) -> Iterator[tuple[slice, Real, Real]]:
        """Blocks of rows with their features and hidden values; `s` is overwritten by the next block."""
        W = self.split(theta).W
        flat = np.ascontiguousarray(W.reshape(-1, W.shape[2]).T)
        name = "extended32" if theta.dtype == np.float32 else "extended"
        blocks = self._blocks(len(rows), max(flat.shape[1], also))
        longest = max((block.stop - block.start for block in blocks), default=0)
        buffer = np.empty((longest, flat.shape[1]), theta.dtype)
        for block in blocks:
            x = rows.part(name, block)
            s = np.matmul(x, flat, out=buffer[: len(x)])
            yield block, x, np.tanh(s, out=s).reshape(len(x), *W.shape[:2])

    def _top(self, s: Real, theta: Real) -> Real:
        """(b, R) scores."""
        _, a, c = self.split(theta)
        if len(a) == 1:
            return (s[:, 0] @ a[0] + c)[:, None]
        return np.einsum("brk,rk->br", s, a) + c

    def _score_slopes(self, rows: Rows, block: slice, s: Real, theta: Real) -> Real:
        """(b, R) y phi'(y f): the derivative of the loss by the score."""
        label = rows.part("y", block)[:, None].astype(theta.dtype, copy=False)
        q = self.loss.slope_inplace(label * self._top(s, theta))
        q *= label
        return q

    def _inner(self, s: Real, theta: Real) -> Real:
        """(b, R, k) e = a (1 - s^2): the derivative of the score by what enters the hidden units."""
        e = np.multiply(s, s)
        np.subtract(1.0, e, out=e)
        e *= self.split(theta).a
        return e

    @staticmethod
    def _lengths(norms: Real, s: Real, e: Real) -> Real:
        """(b, R) lengths of the score's gradient by the parameters; norms (b,) are those of the rows."""
        return np.sqrt(np.einsum("brk,brk->br", e, e) * (norms * norms + 1)[:, None] + np.einsum("brk,brk->br", s, s) + 1)

    def _gather(self, total: Floats, x: Real, s: Real, e: Real, q: Real) -> None:
        """Adds sum over rows of q times the score's gradient to total (R, m); e becomes q e."""
        W, a, c = self.split(total)
        e *= q[:, :, None]
        W += (e.reshape(len(x), -1).T @ x).reshape(W.shape)
        a += (q[:, 0] @ s[:, 0])[None] if q.shape[1] == 1 else np.einsum("br,brk->rk", q, s)
        c += q.sum(axis=0, dtype=float)
