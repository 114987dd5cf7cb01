"""The sums of `models.products` by kernels, over a table of rows without their zeros."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor
from dpviz.common.random import Drawn
from dpviz.models.kernels import BLOCK, IN_DOUBLE, SIMD, WIDE, WIDEST, WIDTHS, parts_of
from dpviz.models.kernels.batches import batches_of
from dpviz.models.kernels.compiling import slope_of
from dpviz.models.kernels.descent import descent_of
from dpviz.models.kernels.gradient import gradient_of
from dpviz.models.kernels.line_losses import line_losses_of
from dpviz.models.kernels.margins import margins_of
from dpviz.models.kernels.noisy_rows import GROUP, SOME, in_strips, noisy_gradients_of
from dpviz.models.kernels.table import SparseTable, scratch, zeros
from dpviz.models.losses import FAR, MOST_CLIP, Logistic, Loss, group_size
from dpviz.models.products import Array, Floats, Index, Products, Rule
from dpviz.models.row_budget import RowBudget
from dpviz.models.rows import Batch, Rows

_BATCHES_IN_DOUBLE = (*IN_DOUBLE, 24)  # DP-SVRG takes two points for each of 10 budgets
_REPORT_ENTRIES = 10_000_000  # of rows that updates read between two reports, in less than 0.1 s


def compiled_ahead(loss: Loss) -> Iterator[object]:
    """The kernels that tables of less than a million entries take, all of whose rows are summed in double precision."""
    slope, constants = slope_of(loss), len(loss.constants)
    for width in IN_DOUBLE:
        yield gradient_of(width, np.float64, slope, constants)
        for trainings in (1, width):
            yield descent_of(trainings, slope, constants)
        for precision in (np.float64, np.float32):
            yield batches_of(width, precision, slope, constants)
    yield margins_of(WIDE[0], np.float64)
    for width in WIDE:
        yield line_losses_of(width)


class KernelProducts(Products):
    """Sums by kernels. What kernels do not know (weights, other rules, noise that rows share) is done by dense blocks."""

    precision: Any

    def __init__(self, rows: Rows, precision: type[np.floating]) -> None:
        super().__init__(rows, precision)
        table = rows.table
        assert table is not None
        self._table: SparseTable = table

    @property
    def _span(self) -> NDArray[np.uint64]:
        return np.array([self.rows.first, self.rows.first + len(self.rows)], np.uint64)

    def margins(self, theta: Floats, block: slice) -> Array:
        if isinstance(self.rows, Batch):
            return super().margins(theta, block)
        out = np.empty((block.stop - block.start, len(theta)), self.precision)
        for first, width in parts_of(len(theta), WIDE[:1]):
            part = scratch("margins", (len(out), width), self.precision)
            span = np.array([self.rows.first + block.start, self.rows.first + block.stop], np.uint64)
            before = (self._table.rows(self.precision), span)
            margins_of(width, self.precision)(*before, self._columns(theta, first, width), part.reshape(-1))
            out[:, first : first + width] = part[:, : len(theta) - first]
        return out

    def gradient(
        self, theta: Floats, loss: Loss, clip_norm: float = np.inf, weights: Array | None = None, rule: Rule | None = None
    ) -> Floats:
        if weights is not None or not (rule is None or isinstance(rule, RowBudget)):
            return super().gradient(theta, loss, clip_norm, weights, rule)
        if isinstance(self.rows, Batch):
            if rule is not None:
                return super().gradient(theta, loss, clip_norm, weights, rule)
            return self._over_batches(theta[None], Drawn.of([self.rows.index + self.rows.first]), loss, clip_norm)[0]
        table, kind, out = self._table, self.precision, np.empty(theta.shape)
        norms = self._norms(clip_norm if rule is None else 0.0)
        if rule is not None and (len(rule.spent), len(rule.active), rule.spent.dtype) != (len(self.rows), len(theta), kind):
            raise ValueError(
                f"a budget of {rule.spent.dtype} {rule.spent.shape} for {len(self.rows)} rows and {len(theta)} replicas"
            )
        for first, width in parts_of(len(theta), WIDE if kind is np.float32 else IN_DOUBLE):
            total, active = zeros("sums", (table.width, width), np.float64), np.zeros(width)
            slopes = scratch("slopes", (BLOCK * width,), kind)
            budget = (np.empty(0, kind), 0, 0, kind(0)) if rule is None else rule.for_kernel(first)
            kernel = gradient_of(width, kind, slope_of(loss), len(loss.constants))
            before = (table.rows(kind), table.blocks(kind), self._span, self._columns(theta, first, width))
            kernel(*before, norms, kind(clip_norm), self._constants(loss), budget, slopes, active, total.reshape(-1))
            out[first : first + width] = total[: table.d, : len(theta) - first].T
            if rule is not None:
                rule.add_active(active[: len(theta) - first], first)
        return out

    def batches(self, theta: Floats, batches: Drawn, loss: Loss, clip_norm: float = np.inf) -> Floats:
        if isinstance(self.rows, Batch) or self.rows.first:
            return super().batches(theta, batches, loss, clip_norm)
        return self._over_batches(theta, batches, loss, clip_norm)

    def _over_batches(self, theta: Floats, batches: Drawn, loss: Loss, clip_norm: float) -> Floats:
        table, kind, out = self._table, self.precision, np.empty(theta.shape)
        if len(theta) != len(batches) or (len(batches.index) and not 0 <= batches.index.min() <= batches.index.max() < table.n):
            raise IndexError(f"{len(batches)} batches for {len(theta)} seeds, of rows that must be among {table.n}")
        index, cuts = batches.index.astype(np.uint64), batches.cuts.astype(np.uint64)
        for first, width in parts_of(theta.shape[1], WIDTHS if kind is np.float32 else _BATCHES_IN_DOUBLE):
            columns = zeros("columns", (len(theta), table.width, width), kind)
            some = theta[:, first : first + width]
            columns[:, : table.d, : some.shape[1]] = some.transpose(0, 2, 1)
            total = zeros("sums", columns.shape, np.float64)
            kernel = batches_of(width, kind, slope_of(loss), len(loss.constants))
            short = zeros("short", columns.shape[1:], kind)
            before = (table.rows(kind), index, cuts, columns.reshape(-1), self._norms(clip_norm))
            kernel(*before, kind(clip_norm), self._constants(loss), short.reshape(-1), total.reshape(-1))
            out[:, first : first + width] = total[:, : table.d, : some.shape[1]].transpose(0, 2, 1)
        return out

    def line_losses(self, theta: Floats, step: Floats, count: int, loss: Loss, clip: float) -> Floats:
        # a margin is at most as long as its parameters, times the row
        norm = np.linalg.norm(theta, axis=1) + count * np.linalg.norm(step, axis=1)
        near = clip <= MOST_CLIP and (norm * self.rows.longest < FAR).all()
        if type(loss) is not Logistic or not near or isinstance(self.rows, Batch):
            return super().line_losses(theta, step, count, loss, clip)
        out, kind = np.empty((count, len(theta))), np.float32
        for first, width in parts_of(len(theta)):
            products, powers = np.ones((count, width), kind), np.zeros((count, width), kind)
            before = (self._table.rows(kind), self._span, self._columns(theta, first, width))
            steps = self._columns(step, first, width, "steps")
            between = (count, group_size(clip), loss.most_odds(clip), products.reshape(-1), powers.reshape(-1))
            line_losses_of(width)(*before, steps, *between)
            total = np.log(products, dtype=np.float64) + math.log(2) * powers
            out[:, first : first + width] = total[:, : len(theta) - first]
        return out

    def descend(
        self,
        loss: Loss,
        lam: float,
        steps: Floats,
        bounds: Sequence[int],
        order: Index | None = None,
        *,
        window: int = 0,
        stops: Sequence[int] = (),
        monitor: Monitor,
    ) -> Floats:
        table, updates, found = self._table, steps.shape[1], []
        taken = np.arange(len(self.rows), dtype=np.uint64) if order is None else order.astype(np.uint64)
        if bounds[0] != 0 or not bounds[-1] == len(self.rows) == len(taken) or min(b - a for a, b in pairwise(bounds)) < 1:
            raise ValueError("batches must be some of the rows each, one after the other")
        if taken.max() >= len(self.rows):
            raise IndexError(f"row {taken.max()} of {len(self.rows)}")
        some = max(1, _REPORT_ENTRIES * (len(bounds) - 1) // table.entries)
        for first, width in parts_of(len(steps), IN_DOUBLE if len(steps) > 1 else (1,)):
            mine = steps[first : first + width]
            eta = np.zeros((updates, width))  # not kept by the thread: there may be millions
            eta[:, : len(mine)] = mine.T
            w, *others = (zeros(name, (table.width, width), np.float64) for name in ("columns", "gradients", "sums"))
            kernel = descent_of(width, slope_of(loss), len(loss.constants))
            before = (table.rows(np.float64), taken + np.uint64(self.rows.first), np.array(bounds, np.uint64))
            after = (eta.reshape(-1), lam, window, self._constants(loss), *(each.reshape(-1) for each in (w, *others)))
            ends = {}
            for a, b in pairwise(sorted({*range(0, updates, some), *stops, updates})):
                kernel(*before, a, b, *after)
                ends[b] = w[: table.d, 0].copy()
                monitor(b / updates)
            found.append(np.array([ends[stop] for stop in stops]) if stops else w[: table.d, : len(mine)].T.copy())
        return np.concatenate(found)

    def prepared(self, noise: Array, out: Array | None = None) -> Array:
        return in_strips(noise, self.rows.y, out) if self._in_strips(len(noise)) else super().prepared(noise, out)

    def noisy_gradient(self, theta: Floats, moved: Floats, noise: Array, loss: Loss) -> tuple[Floats, Floats]:
        if not self._in_strips(noise.shape[1]):
            return super().noisy_gradient(theta, moved, noise, loss)
        kind, table, (draws, rows, d) = np.float32, self._table, noise.shape
        if d != table.d or noise.dtype != kind or noise.strides[1:] != (4 * d, 4) or len(theta) % draws:
            raise ValueError(f"noise of {noise.dtype} {noise.shape} for {theta.shape} parameters and {table.d} columns")
        stride, per = noise.strides[0] // 4, -(-len(theta) // draws // GROUP)  # groups of replicas for each draw
        flat = np.lib.stride_tricks.as_strided(noise, ((draws - 1) * stride + rows * d,), (4,))
        plain, along = np.zeros((2, draws * per, GROUP, d), kind)  # parameters by group, some of which are 0
        for padded, given in ((plain, theta), (along, moved)):
            padded.reshape(draws, -1, d)[:, : len(theta) // draws] = given.reshape(draws, -1, d)
        total, own = np.empty((2, *plain.shape))
        which = np.repeat(np.arange(draws, dtype=np.uint64), per)
        for here in (slice(g, g + WIDEST // GROUP) for g in range(0, len(which), WIDEST // GROUP)):
            replicas = GROUP * len(which[here])
            width = next(each for each in WIDE if each >= replicas)
            moving, sums = np.ascontiguousarray(along[here].transpose(0, 2, 1)).reshape(-1), np.zeros(d * replicas)
            common = zeros("sums", (table.width, width), np.float64)
            sizes = {"noise": SOME * d, "by replica": width * SOME, "short": d * replicas * SIMD, "slopes": BLOCK * width}
            memory = [zeros(name, (size,), kind) for name, size in sizes.items()]
            before = (table.rows(kind), table.blocks(kind), self._span, self._columns(plain[here].reshape(-1, d), 0, width))
            between = (d, flat, stride, moving, which[here], self._constants(loss), *memory)
            noisy_gradients_of(width, slope_of(loss), len(loss.constants))(*before, *between, common.reshape(-1), sums)
            total[here] = common[:d, :replicas].T.reshape(-1, GROUP, d)
            own[here] = sums.reshape(-1, d, GROUP).transpose(0, 2, 1)
        out, noisy = (each.reshape(draws, -1, d)[:, : len(theta) // draws].reshape(-1, d) for each in (total, own))
        return out, noisy

    def _in_strips(self, rows: int) -> bool:  # not for rows chosen from others, nor where rows share a draw
        return self.precision is np.float32 and not isinstance(self.rows, Batch) and rows == len(self.rows)

    def _columns(self, theta: Floats, first: int, width: int, name: str = "columns") -> Array:
        """(columns, W) flat parameters of some replicas; further replicas and merged columns are 0."""
        columns, some = zeros(name, (self._table.width, width), self.precision), theta[first : first + width]
        columns[: self._table.d, : len(some)] = some.T
        return columns.reshape(-1)

    def _norms(self, clip_norm: float) -> Array:
        return np.empty(0, self.precision) if clip_norm == np.inf else self.rows.table_norms(self.precision)

    def _constants(self, loss: Loss) -> tuple[Any, ...]:
        return tuple(self.precision(constant) for constant in loss.constants)
