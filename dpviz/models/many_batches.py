"""Gradient sums of many replicas of a linear model, each over rows of its own, without gathering any rows.

Gathering the rows of one replica's mini-batch costs several times its two matrix products, because rows come from memory one
by one. Replicas that are trained in step do without: a block of rows is multiplied with the parameters of all replicas, the
margins outside a replica's batch are set to zero slope, and a second product adds up all gradients. Most of these products
are wasted, and they are still cheaper while batches are not too sparse (`pays`): they run at the processor's peak, and rows
that are mostly zeros, as encoded categories are, are multiplied without their zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.random import Drawn
from dpviz.models.compiled.rows import batch_sums, loss_of
from dpviz.models.losses import Loss
from dpviz.models.rows import BLOCK_ROWS, Rows
from dpviz.models.sparse import SINGLE_ROWS

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
Lengths = list[NDArray[np.float32]]

FEW = 16  # replicas below which products of all rows are too narrow to be fast
_NARROW = 32  # below which they run at about half their speed
_SUMMED_ROWS = 1024  # in single precision: most of them have slope zero
_GATHERED = 12  # rows multiplied in company in the time that gathering one takes
_STEP = 400_000  # multiplications in the time that a step of one replica alone takes beside its rows
_REPLICA = 30_000  # the same for the positions of one replica's rows
_BLOCK = 600_000  # the same for a block of rows of all replicas


@dataclass(frozen=True)
class ManyBatches:
    """Sums of clipped data gradients in single precision, as `LinearModel.sum_gradient` gives them batch by batch.

    Attributes:
        loss: of the margin.
        shorter: what the sums are multiplied by, so that rounding lets no row add more than the clip norm.
    """

    loss: Loss
    shorter: float

    def compiled(self, rows: Rows) -> bool:
        """Whether compiled loops sum single rows without gathering them, so that seeds need no company."""
        return rows.compiled and loss_of(self.loss) is not None

    @staticmethod
    def pays(rows: Rows, share: float, seeds: int, budgets: int) -> bool:
        """Whether one pass over all rows costs less than gathering a batch for each seed.

        The numbers are times measured on the 39,073 x 109 rows of Adult, in multiplications.

        Args:
            share: mean size of a batch over the number of rows.
            seeds: replicas with batches of their own.
            budgets: replicas on each batch.
        """
        n, d = len(rows), rows.X.shape[1]
        replicas = seeds * budgets
        if replicas < FEW:
            return False
        passed = n * d * replicas * (1 if replicas >= _NARROW else 2) + _REPLICA * replicas + _BLOCK * -(-n // BLOCK_ROWS)
        return passed < seeds * ((_GATHERED + budgets) * share * n * d + _STEP)

    def sums(
        self,
        theta: Floats,
        rows: Rows,
        batches: Drawn,
        clip_norm: float,
        lengths: Sequence[Lengths] | None = None,
        precision: type[np.floating] = np.float32,
    ) -> Floats:
        """(S, E, d) sums of clipped data gradients: replicas [s, e] over the rows batches[s].

        Args:
            theta: (S, E, d).
            batches: of S replicas.
            lengths: S empty lists, to which arrays (E, rows) of clipped lengths are added in the order of the batch.
            precision: of the sums; double only where `compiled`, and without lengths.
        """
        clips = clip_norm * (1 + 1e-9) < self.loss.slope_bound * rows.longest
        if lengths is None and self.compiled(rows):
            whole, norms = rows.for_loops(precision)
            total = batch_sums(whole, theta, batches, norms, self.loss, clip_norm if clips else np.inf, SINGLE_ROWS)
            return total * self.shorter if precision is np.float32 else total
        seeds, budgets, d = theta.shape
        r = seeds * budgets
        at = rows.columns(theta.reshape(r, d).astype(np.float32))
        width, total = at.shape[1], np.zeros(at.shape)
        buffer = np.empty((min(BLOCK_ROWS, len(rows)), width), np.float32)
        edges = np.arange(0, len(rows) + BLOCK_ROWS, BLOCK_ROWS)
        # where the margins of the replicas' own rows stand, replica by replica
        flat = [index * width + k for s, index in enumerate(batches) for k in range(s * budgets, (s + 1) * budgets)]
        cuts = [cut for index in batches for cut in [np.searchsorted(index, edges).tolist()] * budgets]
        for b, start in enumerate(range(0, len(rows), BLOCK_ROWS)):
            block = slice(start, min(start + BLOCK_ROWS, len(rows)))
            inside = [those[cut[b] : cut[b + 1]] for those, cut in zip(flat, cuts, strict=True)]
            places = np.concatenate(inside)
            places -= start * width
            part = rows.products(np.float32, block)
            margins = part.margins(at, buffer[: block.stop - start])
            line = margins.reshape(-1)
            slope = self.loss.slope_inplace(line.take(places))
            if clips or lengths is not None:
                norms = rows.norms[start:].take(places // width).astype(np.float32)
                norms *= np.abs(slope)
                if clips:
                    factor = clip_norm / np.maximum(norms, np.float32(clip_norm))  # Abadi et al. 2016, Algorithm 1
                    slope *= factor
                    norms *= factor
                if lengths is not None:
                    ends = np.cumsum([budgets * len(those) for those in inside[::budgets]])
                    for kept, those in zip(lengths, np.split(norms, ends[:-1]), strict=True):
                        kept.append(those.reshape(budgets, -1))
            line.fill(0.0)
            line[places] = slope
            part.add(margins, total, _SUMMED_ROWS)
        return total[:, :r].T.reshape(theta.shape) * self.shorter
