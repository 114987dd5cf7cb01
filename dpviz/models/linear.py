"""Linear models: the score is <theta, x>."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, silent
from dpviz.common.threads import MOST_GROUPS, Each, map_streams, one_by_one, summed
from dpviz.models.base import Floats, Model, Rule, Setting, right
from dpviz.models.capabilities import Derivatives, FeatureNoise, LineLosses
from dpviz.models.compiled.rows import aligned, loss_of
from dpviz.models.linear_derivatives import LinearDerivatives, LinearFeatureNoise
from dpviz.models.losses import FAR, MOST_CLIP, Logistic, Loss, group_size
from dpviz.models.many_batches import ManyBatches
from dpviz.models.row_budget import RowBudget
from dpviz.models.rows import BLOCK_ROWS, Batch, Rows, row_blocks
from dpviz.models.solvers.many import newton
from dpviz.models.sparse import Array

_SHORTER = 1 - 2.0**-20  # of a sum in single precision: what rounding may add to a row's contribution, some 2^-22, is taken off
_TOGETHER = 1 << 19  # losses from which it pays to share rows between threads
_LINE_ELEMENTS = 3 << 14  # the same for a line search, which works on more arrays at once


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

    @property
    def many_batches(self) -> ManyBatches:
        return ManyBatches(self.loss, _SHORTER)

    def initial(self, m: int, streams: Sequence[np.random.SeedSequence]) -> Floats:
        return np.zeros((len(streams), m))

    def prepare(self, rows: Rows, precision: type[np.floating] = np.float64) -> None:
        if rows.compiled:
            rows.for_loops(precision)
        elif not rows.sparse:
            _ = rows.signed32 if precision is np.float32 else rows.signed
        _ = rows.longest

    def scores(self, theta: Floats, rows: Rows) -> Floats:
        if rows.compiled and len(theta) > 1:
            kept, _ = rows.for_loops(np.float64)
            columns = rows.columns(theta)
            margins = kept.margins(columns, aligned((len(rows), columns.shape[1]), np.float64))
            return np.ascontiguousarray(margins[:, : len(theta)] * rows.y[:, None])
        return rows.X @ theta.T

    def measure(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        if rows.compiled and loss_of(self.loss) is not None:
            return self._measured(theta, rows)
        loss, hits = np.zeros((2, len(theta)))
        for block in row_blocks(len(rows), len(theta)):
            margin = theta @ rows.X[block].T
            margin *= rows.y[block]
            hits += right(margin, rows.y[block])
            loss += self.loss.total(margin)
        return loss / len(rows), hits / len(rows)

    def _measured(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """`measure` by compiled loops, on all processors."""
        columns, parts = rows.columns(theta), rows.parts(MOST_GROUPS)
        rows.for_loops(np.float64)  # once, before threads ask for their parts

        def part(k: int, _: Monitor) -> tuple[Floats, Floats]:
            mine = parts[k][1]
            kept = mine.for_loops(np.float64)[0]
            # a score of 0 predicts +1; the largest number below 0 lets margins of 0 pass
            return kept.losses(columns, self.loss, np.where(mine.y > 0, -np.nextafter(0.0, 1.0), 0.0))

        found = map_streams(part, len(parts), silent, parallel=len(rows) * len(theta) >= _TOGETHER)
        loss, hits = (np.sum(each, axis=0)[: len(theta)] for each in zip(*found, strict=True))
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
        if weights is None and self._in_loops([rows], [rule]):
            return self.sum_gradients(theta, [rows], one_by_one, clip_norm=clip_norm, rules=[rule])
        # rows of unit length are often 1 + 1e-16 long, which is not worth a pass over the data
        clips = clip_norm * (1 + 1e-9) < self.loss.slope_bound * rows.longest
        columns = rows.columns(theta)
        if rows.compiled and weights is None and rule is None and loss_of(self.loss) is not None:
            whole, norms = rows.for_loops(theta.dtype.type)
            return _of_replicas(whole.gradient(columns, self.loss, norms, clip_norm if clips else np.inf), theta)
        blocks, total = row_blocks(len(rows), len(theta)), aligned(columns.shape, np.float64)
        # one buffer for all blocks: fresh memory for each would cost more than the product itself
        buffer = aligned((blocks[0].stop if blocks else 0, columns.shape[1]), theta.dtype)
        for block in blocks:
            part = rows.products(theta.dtype.type, block)
            slopes = part.slopes(columns, self.loss, buffer[: block.stop - block.start])
            slope = slopes[:, : len(theta)].T
            if clips or rule is not None:
                norms = rows.part("norms", block).astype(theta.dtype, copy=False)
            if clips:
                slope *= _clip_factor(np.abs(slope) * norms, clip_norm)
            if weights is not None:
                slope *= weights[block].T
            if rule is not None:
                slope *= rule(block, np.abs(slope) * norms)
            part.add(slopes, total)
        return _of_replicas(total, theta)

    def _in_loops(self, parts: Sequence[Rows], rules: Sequence[Rule | None]) -> bool:
        """Whether compiled loops sum the gradients of these rows, which are not chosen from others."""
        if not all(rows.compiled and not isinstance(rows, Batch) for rows in parts):
            return False  # before the loss is looked at, which loads the loops
        return all(rule is None or isinstance(rule, RowBudget) for rule in rules) and loss_of(self.loss) is not None

    def sum_gradients(
        self, theta: Floats, parts: Sequence[Rows], each: Each, *, clip_norm: float = np.inf, rules: Sequence[Rule | None]
    ) -> Floats:
        if not self._in_loops(parts, rules):
            return super().sum_gradients(theta, parts, each, clip_norm=clip_norm, rules=rules)
        clips = clip_norm * (1 + 1e-9) < self.loss.slope_bound * max(rows.longest for rows in parts)
        kept, longest = [rows.for_loops(theta.dtype.type) for rows in parts], clip_norm if clips else np.inf
        spelled = kept[0][0].spelled(parts[0].columns(theta))

        def part(k: int) -> Floats:
            (rows, norms), budget = kept[k], rules[k]
            if not isinstance(budget, RowBudget):
                return rows.sums_at(spelled, self.loss, norms, longest)[0]
            total, active = rows.sums_at(spelled, self.loss, norms, longest, (budget.spent, budget.unit, budget.limit))
            budget.add_active(active[: len(theta)])
            return total

        return _of_replicas(kept[0][0].shared(summed(each, part, len(parts))), theta)

    def _line_losses(
        self, theta: Floats, direction: Floats, reach: Floats, count: int, rows: Rows, *, clip: float = np.inf
    ) -> Floats:
        """Scores are linear along a line, so that two products serve all its points."""
        r, total = len(theta), np.zeros((count, len(theta)))
        points = np.vstack([theta, direction * (reach / max(count - 1, 1))[:, None]]).astype(np.float32)
        columns = rows.columns(points[:r]), rows.columns(points[r:])
        if rows.compiled and isinstance(self.loss, Logistic) and 4 * clip <= MOST_CLIP:
            # a margin is at most as long as its parameters, times the row
            farthest = np.linalg.norm(points[:r], axis=1) + count * np.linalg.norm(points[r:], axis=1)
            if (farthest * rows.longest < FAR).all():
                whole, top = rows.for_loops(np.float32)[0], self.loss.most_odds(clip)
                return whole.line_losses(*columns, group_size(4 * clip), count, top)[:r]
        block_rows = BLOCK_ROWS if rows.sparse else max(512, _LINE_ELEMENTS // max(r, 1))
        for first in range(0, len(rows), block_rows):
            block = slice(first, min(first + block_rows, len(rows)))
            # a few groups of rows, whose losses are multiplied with each other, and what is left of them
            many = group_size(clip)
            edge = first + (block.stop - first) // many * many
            margins = None
            if rows.sparse:
                products, space = rows.products(np.float32, block), (2, block.stop - block.start, columns[0].shape[1])
                out = np.empty(space, np.float32)
                margins = [products.margins(at, to)[:, :r].T for at, to in zip(columns, out, strict=True)]
            for groups, part in ((many, slice(first, edge)), (1, slice(edge, block.stop))):
                if part.stop == part.start:
                    continue
                if margins is None:
                    signed = rows.part("signed32", part).reshape(groups, -1, theta.shape[1])
                    both = np.matmul(points, signed.transpose(0, 2, 1))
                    start, step = both[:, :r].copy(), both[:, r:].copy()
                else:
                    start, step = (_in_groups(each[:, part.start - first : part.stop - first], groups) for each in margins)
                total += self.loss.line_sums(start, step, count, clip)
        return total.T

    def gradient_norms(self, theta: Floats, rows: Rows) -> Floats:
        return np.abs(self.loss.slope_inplace(rows.signed @ theta.T)) * rows.norms[:, None]

    def minimise(self, rows: Rows, lam: float, start: Floats | None = None, monitor: Monitor = silent) -> Floats:
        return newton(rows.signed, self.loss, lam, start=start)[0]


def _of_replicas(total: Floats, theta: Array) -> Floats:
    """(R, d) sums of gradients at theta (R, d), out of those of all lanes (d, W)."""
    mine = total[:, : len(theta)].T
    return mine * _SHORTER if theta.dtype == np.float32 else np.ascontiguousarray(mine)


def _in_groups(margins: NDArray[np.floating], groups: int) -> NDArray[np.floating]:
    """(groups, R, rows) of (R, groups x rows), in the same memory."""
    return margins.reshape(len(margins), groups, -1).transpose(1, 0, 2)


def _clip_factor(norm: Floats, clip_norm: float) -> Floats:
    """min(1, C/|g|), with 1 for zero gradients (Abadi et al. 2016, Algorithm 1)."""
    return clip_norm / np.maximum(norm, clip_norm)
