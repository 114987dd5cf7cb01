"""One hidden layer of tanh units: its forward pass and the sums that gradients are made of, block by block of rows.

    f(x) = <a, tanh(W (x, 1))> + c            theta = (W row by row, a, c): m = k (d + 1) + k + 1 for k hidden units

With s = tanh(W (x, 1)), e = a (1 - s^2) elementwise and q = y phi'(y f), a row's data gradient is q (e (x, 1)', s, 1).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpviz.models.compiled.rows import CompiledRows, in_lanes, network_sums
from dpviz.models.losses import Loss
from dpviz.models.rows import Rows

Floats = NDArray[np.float64]
Real = NDArray[Any]  # double or single precision, as theta is

_BLOCK_ELEMENTS = 1 << 18  # hidden values worked on at once: they stay in the processor's cache between passes
_SPARSE_ROWS = 512  # rows at most: sparse products add them up one by one, so that the rounding of their sums grows faster
_SPARSE_FROM = 1 << 17  # hidden values in a block from which sparse products gain more than it costs to take the rows
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
        """Slices of n rows of about equal length; `hidden` values a row."""
        size = min(_BLOCK_ROWS, max(64, _BLOCK_ELEMENTS // max(hidden, 1)))
        ends = np.linspace(0, n, -(-n // size) + 1).astype(int).tolist()
        return [slice(start, stop) for start, stop in itertools.pairwise(ends)]

    def passes(self, theta: Real, rows: Rows, also: int = 0, *, sparse: bool = False) -> Iterator[tuple[slice, Any, Real]]:
        """Blocks of rows with their features and hidden values; `s` is overwritten by the next block.

        Args:
            sparse: in single precision features may come without their zeros, for products only.
        """
        networks, units = self.split(theta).a.shape
        for block, x, whole in self._hidden(theta, rows, also, sparse):
            yield block, x, whole[:, : networks * units].reshape(-1, networks, units)

    def _hidden(self, theta: Real, rows: Rows, also: int, sparse: bool) -> Iterator[tuple[slice, Any, Real]]:
        """`passes` with hidden values (b, R k), or more where compiled loops fill their lanes."""
        W = self.split(theta).W
        flat, units = np.ascontiguousarray(W.reshape(-1, W.shape[2]).T), W.shape[0] * W.shape[1]
        name = "extended32" if theta.dtype == np.float32 else "extended"
        blocks = self.blocks(len(rows), max(flat.shape[1], also))
        longest = max((block.stop - block.start for block in blocks), default=0)
        sparse &= theta.dtype == np.float32
        sparse &= rows.compiled or (longest <= _SPARSE_ROWS and longest * units >= _SPARSE_FROM)
        if sparse and rows.compiled:
            flat = np.pad(flat, ((0, 0), (0, in_lanes(units) - units)))
        buffer = np.empty((longest, flat.shape[1]), theta.dtype)
        for block in blocks:
            x = rows.extended_part(block) if sparse else None
            if isinstance(x, CompiledRows):
                s = x.margins(flat, buffer[: block.stop - block.start])
            elif x is None:
                x = rows.part(name, block)
                s = np.matmul(x, flat, out=buffer[: len(x)])
            else:
                s = x @ flat
            yield block, x, np.tanh(s, out=s)

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
    def lengths(norms: Real, s: Real, e: Real) -> Real:
        """(b, R) lengths of the score's gradient by the parameters; norms (b,) are those of the rows."""
        return np.sqrt(np.einsum("brk,brk->br", e, e) * (norms * norms + 1)[:, None] + np.einsum("brk,brk->br", s, s) + 1)

    def gather(self, total: Floats, x: Any, s: Real, e: Real, q: Real, columns: Floats | None = None) -> None:
        """Adds sum over rows of q times the score's gradient to total (R, m); e may become q e.

        Args:
            columns: from `columns_of`: where sums for the first layer are added by compiled loops, until `add_columns`.
        """
        W, a, c = self.split(total)
        if isinstance(x, CompiledRows):
            assert columns is not None
            weights, units = np.empty((len(e), columns.shape[1]), e.dtype), W.shape[0] * W.shape[1]
            np.multiply(e, q[:, :, None], out=weights[:, :units].reshape(e.shape))
            weights[:, units:] = 0.0
            x.add(weights, columns, _SPARSE_ROWS)
        else:
            e *= q[:, :, None]
            W += (e.reshape(len(e), -1).T @ x).reshape(W.shape)
        a += (q[:, 0] @ s[:, 0])[None] if q.shape[1] == 1 else np.einsum("br,brk->rk", q, s)
        c += q.sum(axis=0, dtype=float)

    def clipped(self, theta: Real, rows: Rows, clip_norm: float) -> Floats:
        """(R, m) sums of clipped gradients at theta (R, m), by compiled loops, in single precision.

        For rows that are `compiled`, and the logistic loss.
        """
        units = self.split(theta).a.shape[1]
        table, labels, norms = rows.for_networks
        return network_sums(table, np.ascontiguousarray(theta), units, labels, norms, clip_norm, _SPARSE_ROWS)

    def columns_of(self, theta: Real) -> Floats:
        """(d + 1, lanes) zeros for `gather`, in the order in which compiled loops add."""
        W = self.split(theta).W
        return np.zeros((W.shape[2], in_lanes(W.shape[0] * W.shape[1])))

    def add_columns(self, total: Floats, columns: Floats) -> None:
        """Adds what `gather` has left in `columns` to total (R, m)."""
        W = self.split(total).W
        W += columns[:, : W.shape[0] * W.shape[1]].T.reshape(W.shape)
