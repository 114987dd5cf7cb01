"""One hidden layer of tanh units: its forward pass and the sums that gradients are made of, block by block of rows.

    f(x) = <a, tanh(W (x, 1))> + c            theta = (W row by row, a, c): m = k (d + 1) + k + 1 for k hidden units

With s = tanh(W (x, 1)), e = a (1 - s^2) elementwise and q = y phi'(y f), a row's data gradient is q (e (x, 1)', s, 1).
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.models.losses import Loss
from dpviz.models.rows import Rows

Real = NDArray[Any]  # double or single precision, as theta is

_BLOCK_ELEMENTS = 1 << 18  # hidden values worked on at once: they stay in the processor's cache between passes
_BLOCK_ROWS = 1536  # rows summed in one product: in single precision longer sums would round visibly


class Parts(NamedTuple):
    """Views of parameters (R, m)."""

    W: Real  # (R, k, d + 1), offsets last
    a: Real  # (R, k)
    c: Real  # (R,)


@dataclass(frozen=True)
class HiddenLayer:
    """The layer's shape and loss; parameters are arguments.

    Attributes:
        width: hidden units; 0 for as many as the rows have features, the constant one included.
        loss: of the margin.
    """

    width: int
    loss: Loss

    def units(self, d: int) -> int:
        """Hidden units for rows of d features."""
        return self.width or d

    def features(self, m: int) -> int:
        """Features of the rows that m parameters belong to."""
        return (m - 1) // self.width - 2 if self.width else round(m**0.5) - 1

    def split(self, theta: Real) -> Parts:
        """Weights of the two layers as views of parameters (R, m)."""
        d = self.features(theta.shape[1])
        k = self.units(d)
        end = k * (d + 1)
        return Parts(theta[:, :end].reshape(-1, k, d + 1), theta[:, end:-1], theta[:, -1])

    def scores(self, theta: Floats, rows: Rows) -> Floats:
        """(n, R) scores at theta (R, m)."""
        out = np.empty((len(rows), len(theta)))
        for block, _, s in self.passes(theta, rows):
            out[block] = self.top(s, theta)
        return out

    def row_scores(self, theta: Floats, rows: Rows) -> Floats:
        """(n,) scores; theta (m,) for all rows, or (n, m) for row i at theta[i]."""
        if theta.ndim == 1:
            return self.scores(theta[None], rows)[:, 0]
        W, a, c = self.split(theta)
        s = np.tanh(np.einsum("nkd,nd->nk", W, rows.extended))
        return np.einsum("nk,nk->n", a, s) + c

    def factors(self, theta: Floats, rows: Rows) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
        """Blocks of rows with x (b, d + 1), e (b, k) and (s, 1) (b, k + 1): a score's gradient is (e x', s, 1).

        Args:
            theta: (1, m).
        """
        for block, x, s in self.passes(theta, rows):
            yield block, x, self.inner(s, theta)[:, 0], np.column_stack([s[:, 0], np.ones(len(x))])

    # One block of b rows: x (b, d + 1), hidden values s (b, R, k), inner derivatives e (b, R, k), coefficients q (b, R).

    @staticmethod
    def blocks(n: int, hidden: int) -> list[slice]:
        """Slices of n rows of about equal length; `hidden` values a row, or features where each network has rows of its own."""
        size = min(_BLOCK_ROWS, max(64, _BLOCK_ELEMENTS // max(hidden, 1)))
        ends = np.linspace(0, n, -(-n // size) + 1).astype(int).tolist()
        return [slice(start, stop) for start, stop in itertools.pairwise(ends)]

    def passes(self, theta: Real, rows: Rows, also: int = 0) -> Iterator[tuple[slice, Real, Real]]:
        """Blocks of rows with their features and hidden values; `s` is overwritten by the next block."""
        W = self.split(theta).W
        networks, units = W.shape[:2]
        flat = np.ascontiguousarray(W.reshape(-1, W.shape[2]).T)
        blocks = self.blocks(len(rows), max(flat.shape[1], also))
        buffer = np.empty((max((block.stop - block.start for block in blocks), default=0), flat.shape[1]), theta.dtype)
        for block in blocks:
            x = rows.part("extended32" if theta.dtype == np.float32 else "extended", block)
            s = np.matmul(x, flat, out=buffer[: len(x)])
            yield block, x, np.tanh(s, out=s).reshape(-1, networks, units)

    def top(self, s: Real, theta: Real) -> Real:
        """(b, R) scores."""
        _, a, c = self.split(theta)
        if len(a) == 1:
            return (s[:, 0] @ a[0] + c)[:, None]
        return np.einsum("brk,rk->br", s, a) + c

    def score_slopes(self, rows: Rows, block: slice, s: Real, theta: Real) -> Real:
        """(b, R) y phi'(y f): the derivative of the loss by the score."""
        label = rows.part("y", block)[:, None].astype(theta.dtype, copy=False)
        q = self.loss.slope_inplace(label * self.top(s, theta))
        q *= label
        return q

    def inner(self, s: Real, theta: Real) -> Real:
        """(b, R, k) e = a (1 - s^2): the derivative of the score by what enters the hidden units."""
        e = np.multiply(s, s)
        np.subtract(1.0, e, out=e)
        e *= self.split(theta).a
        return e

    @staticmethod
    def gradient_norms(norms: Real, s: Real, e: Real) -> Real:
        """(b, R) norms of the score's gradient by the parameters; norms (b,) are those of the rows."""
        return np.sqrt(np.einsum("brk,brk->br", e, e) * (norms * norms + 1)[:, None] + np.einsum("brk,brk->br", s, s) + 1)

    def gather(self, total: Floats, x: Real, s: Real, e: Real, q: Real) -> None:
        """Adds sum over rows of q times the score's gradient to total (R, m); e becomes q e."""
        W, a, c = self.split(total)
        e *= q[:, :, None]
        W += (e.reshape(len(e), -1).T @ x).reshape(W.shape)
        a += (q[:, 0] @ s[:, 0])[None] if q.shape[1] == 1 else np.einsum("br,brk->rk", q, s)
        c += q.sum(axis=0, dtype=float)
