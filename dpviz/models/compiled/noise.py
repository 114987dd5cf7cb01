"""Numbers of rows in the order in which compiled loops multiply them in tiles, and gradients on noisy rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.threads import Each, one_by_one
from dpviz.models.compiled import loops
from dpviz.models.compiled.rows import MOST_LANES, CompiledRows, aligned, in_lanes, laid_flat, loss_of, scratch, unset
from dpviz.models.losses import Loss
from dpviz.models.sparse import Array


class Strips:
    """Noise of rows, or rows with their zeros, in single precision: feature by feature in strips of neighbouring rows.

    Attributes:
        blocks: (b, NOISY / STRIP, deep, STRIP), with zeros behind the last feature and the last row.
        n, d: rows and features.
    """

    def __init__(self, blocks: Array, n: int, d: int) -> None:
        self.blocks, self.n, self.d = blocks, n, d

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, part: slice) -> Strips:
        """The noise of some neighbouring rows, which begin where a block does, to the end of a block."""
        size = self.blocks.shape[1] * self.blocks.shape[3]
        if part.start % size or (part.stop % size and part.stop != self.n):
            raise ValueError(f"blocks of {size} rows do not begin at row {part.start}, or end at row {part.stop}")
        return Strips(self.blocks[part.start // size : -(-part.stop // size)], part.stop - part.start, self.d)

    @classmethod
    def of(cls, noise: Array) -> Strips:
        """From noise (n, d), row by row."""
        there, (n, d) = loops(), noise.shape
        assert there is not None
        across, deep = -(-d // there.GROUP) * there.GROUP, -(-d // there.TILE_DEEP) * there.TILE_DEEP
        strips = there.NOISY // there.STRIP
        turned = unset((-(-n // there.NOISY), strips, deep, there.STRIP), np.float32)
        # whole squares of numbers are turned, so that the last features need room that is cut off afterwards
        rows, out = aligned((there.NOISY, across), np.float32), aligned((strips, across, there.STRIP), np.float32)
        for b, target in enumerate(turned):
            block = noise[b * there.NOISY : (b + 1) * there.NOISY]
            rows[: len(block), :d] = block
            rows[len(block) :] = 0.0
            there.turn_rows(rows.reshape(-1), across, out.reshape(-1))
            target[:] = out[:, :deep]
        return cls(turned, n, d)


class NoisySums:
    """Sums of rows times slopes, and of their noise times slopes, for the same rows and draws again and again.

    In single precision. Threads may share the rows, in parts.
    """

    def __init__(
        self, parts: Sequence[tuple[CompiledRows | Strips, Sequence[Strips]]], replicas: int, d: int, loss: Loss, most: int
    ) -> None:
        """
        Args:
            parts: rows, not chosen from others, with their zeros as `Strips`; and S draws for each.
            replicas: R, of which the first R/S have the first draw, and so on.
            d: parameters.
            loss: one that `loss_of` knows.
            most: rows summed in single precision; sums with noise are shorter.
        """
        there, known, draws = loops(), loss_of(loss), len(parts[0][1])
        assert there is not None
        assert known is not None
        for rows, noises in parts:
            if replicas % draws or len(noises) != draws or (isinstance(rows, Strips) and rows.d != d):
                raise ValueError(f"{(replicas, d)} parameters for {draws} draws")
            for noise in noises:
                if noise.d != d or len(noise) != len(rows):
                    raise ValueError(f"noise of {len(noise)} rows and {noise.d} features for {len(rows)} rows of {d}")
        self._parts, self._shape, self._known, self._most = parts, (replicas, d), known, most
        # a draw's replicas in groups that fit into the lanes, and as many groups at once as fit
        each = replicas // draws
        some = there.TILE_TALL[0]
        size = -(-each // -(-each // (MOST_LANES // some * some)))
        self._tall = -(-size // some) * some
        self._groups = [
            (s, slice(each * s + first, each * s + min(first + size, each)))
            for s in range(draws)
            for first in range(0, each, size)
        ]

    def __call__(self, theta: Array, moved: Array, each: Each) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(R, d) both sums at parameters theta (R, d), which times the noise scales are `moved` (R, d).

        Args:
            each: calls a function for each part.
        """
        if theta.shape != self._shape or moved.shape != self._shape:
            raise ValueError(f"{theta.shape} and {moved.shape} parameters in the place of {self._shape}")
        (_, d), tall, first = self._shape, self._tall, self._parts[0][0]
        sums, own = np.zeros((2, *self._shape))
        for start in range(0, len(self._groups), MOST_LANES // tall):
            here = self._groups[start : start + MOST_LANES // tall]
            plain, along = aligned((d, in_lanes(len(here) * tall)), np.float32), aligned((len(here), d, tall), np.float32)
            for g, (_, part) in enumerate(here):
                count = part.stop - part.start
                plain[:, tall * g : tall * g + count], along[g, :, :count] = theta[part].T, moved[part].T
            spelled = plain if isinstance(first, Strips) else first.spelled(plain)

            def part_of(k: int, here: Any = here, spelled: Array = spelled, along: Array = along) -> tuple[Any, Any]:
                rows, noises = self._parts[k]
                draws = [noises[s] for s, _ in here]
                if isinstance(rows, Strips):
                    return _dense_sums_of(rows, spelled, along, draws, self._known)
                return _sums_of(rows, spelled, along, draws, self._known, self._most)

            (total, against), *others = each(part_of, len(self._parts))
            for more, more_against in others:
                total += more
                against += more_against
            total = total if isinstance(first, Strips) else first.shared(total)
            for g, (_, part) in enumerate(here):
                count = part.stop - part.start
                sums[part], own[part] = total[:, tall * g : tall * g + count].T, _sum_of_kept(against[g, :d, :count]).T
        return sums, own


def noisy_gradient(
    rows: CompiledRows | Strips, theta: Array, moved: Array, noises: Sequence[Strips], loss: Loss, most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`NoisySums` once."""
    return NoisySums([(rows, noises)], len(theta), theta.shape[1], loss, most)(theta, moved, one_by_one)


def _zeros(name: str, shape: tuple[int, ...]) -> Array:
    """Space for work, without what an earlier training left, which may have diverged."""
    space = scratch(name, shape, np.float32)
    space.fill(0.0)
    return space


def _tile(tall: int) -> int:
    """Replicas of a tile: as many as leave none over."""
    there = loops()
    assert there is not None
    return int(max(some for some in there.TILE_TALL if tall % some == 0))


def _sum_of_kept(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum over the last, short axis, for which numpy's own takes ten times the time."""
    return sums[..., 0] + sums[..., 1] + sums[..., 2] + sums[..., 3]


def _sums_of(
    rows: CompiledRows, spelled: Array, along: Array, noises: Sequence[Strips], known: tuple[int, float], most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(d + P, lanes) sums of rows, and (S, deep, tall, KEPT) sums of noise, for `tall` replicas of each of S draws."""
    there, (lanes, (groups, d, tall)) = loops(), (spelled.shape[1], along.shape)
    assert there is not None
    deep = -(-d // there.TILE_DEEP) * there.TILE_DEEP
    strips = -(-len(rows) // there.NOISY) * (there.NOISY // there.STRIP)
    flat = tuple(laid_flat(noise.blocks.reshape(-1, there.STRIP), strips * deep, there.STRIP, np.float32) for noise in noises)
    total, against = aligned(spelled.shape, np.float64), aligned((groups, deep, tall, there.KEPT), np.float64)
    margins, turned = _zeros("margins", (there.BLOCK, lanes)), _zeros("turned", (lanes, there.NOISY))
    before = (flat, d, deep, spelled.reshape(-1), along.reshape(-1), tall, known[1], most)
    after = (each.reshape(-1) for each in (margins, turned, total, against))
    there.noisy_gradients_of(lanes, known[0], rows.shape[2], _tile(tall))(*rows.in_blocks, *before, *after)
    return total, against


def _dense_sums_of(
    rows: Strips, plain: Array, along: Array, noises: Sequence[Strips], known: tuple[int, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`_sums_of` for rows with their zeros."""
    there, (groups, d, tall) = loops(), along.shape
    assert there is not None
    deep = -(-d // there.TILE_DEEP) * there.TILE_DEEP
    theta = aligned((groups, d, tall), np.float32)
    theta[:] = plain[:, : groups * tall].reshape(d, groups, tall).transpose(1, 0, 2)
    strips = -(-len(rows) // there.NOISY) * (there.NOISY // there.STRIP)
    flat = [laid_flat(each.blocks.reshape(-1, there.STRIP), strips * deep, there.STRIP, np.float32) for each in (rows, *noises)]
    total, against = (aligned((groups, deep, tall, there.KEPT), np.float64) for _ in range(2))
    turned = _zeros("turned", (tall, there.NOISY))
    before = (flat[0], tuple(flat[1:]), d, deep, theta.reshape(-1), along.reshape(-1), tall, known[1])
    there.noisy_dense_of(known[0], _tile(tall))(*before, turned.reshape(-1), total.reshape(-1), against.reshape(-1))
    return _sum_of_kept(total[:, :d]).transpose(1, 0, 2).reshape(d, -1), against
