"""Sums of gradients at rows with noise of their own, z_si for row i in draw s, for W replicas at once; single precision.

Replica r has draw s(r) and noise scale sigma_r; with moved parameters sigma_r theta_r,

    u_ir = phi'(<theta_r, x_i> + <sigma_r theta_r, z_si>),      total_r = sum_i x_i u_ir,      own_r = sum_i z_si u_ir

Noise lies in strips of 16 rows, feature by feature: both products work on 16 rows at once. They take SOME rows by turns, so that
the second one finds them in the processor's cache; the next SOME rows of the draw are asked for meanwhile.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from dpviz.models.kernels import BLOCK, SIMD, SUMS
from dpviz.models.kernels.compiling import INDEX, blocks_of, flat, kernel, prefetch, stack, table_of
from dpviz.models.kernels.inline import ONE, TWO, ZERO, add_columns, expand, row_margin, scatter

GROUP = 10  # replicas of one draw whose sums are in registers
TILE = GROUP * SIMD
SOME = 256  # rows at a time
_SUMMED = np.uint64(16 * BLOCK)  # rows whose sums over SOME rows are added in single precision before they go on in double
_L, _G, _SOME = np.uint64(SIMD), np.uint64(GROUP), np.uint64(SOME)


@cache
def _strips() -> Callable[..., None]:
    """The kernel of `in_strips`."""
    many, whole = flat(types.float32), types.uint64

    @kernel(many, flat(types.float64), whole, many)
    def strips(noise, labels, d, out):  # type: ignore[no-untyped-def]
        n = np.uint64(len(labels))
        for start in range(ZERO, n, _L):
            count = min(_L, n - start)
            for j in range(d):
                for c in range(count):
                    out[start * d + j * count + c] = np.float32(labels[start + c]) * noise[(start + c) * d + j]

    return strips


def in_strips(noise: NDArray[Any], labels: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
    """Noise (n, d) times labels (n,) in strips of 16 rows, each feature by feature; the last strip has the rows that are left.

    Args:
        out: (n, d) single precision, contiguous; made where there is none.
    """
    out = np.empty(noise.shape, np.float32) if out is None else out
    if not out.flags.c_contiguous:
        raise ValueError(f"strips of {noise.shape} in an array with strides {out.strides}")
    _strips()(noise.astype(np.float32, copy=False).reshape(-1), labels, noise.shape[1], out.reshape(-1))
    return out


@njit(inline="always")  # numba's inlining: as a `piece` it takes 1.08 times as long
def _noise_of_group(noise, z, d, count, moved, at, slope_at, loss, slopes, place, W, size, by_replica, short):  # type: ignore[no-untyped-def]
    """Margins without noise become slopes, in `slopes` from `place` on; adds z times slopes of `count` rows to `short`.

    Args:
        by_replica: the slopes as (GROUP, SOME), 0 behind the last row.
    """
    sums, others = stack(TILE, noise), stack(TILE, noise)
    for i in range(ZERO, count, _L):
        for t in range(_G):
            for c in range(_L):
                sums[t * _L + c] = slopes[place + (i + c) * W + t]
        for j in range(d):
            prefetch(noise, z + (_SOME + i) * d + j * _L)
            for t in range(_G):
                value = moved[at + j * _G + t]
                for c in range(_L):
                    sums[t * _L + c] += value * noise[z + i * d + j * _L + c]
        for t in range(_G):
            for c in range(_L):
                slope = slope_at(sums[t * _L + c], np.float32(1), *loss)
                by_replica[t * _SOME + i + c] = slope if i + c < count else np.float32(0)
        for t in range(size):
            for c in range(_L):
                slopes[place + (i + c) * W + t] = by_replica[t * _SOME + i + c]
    for j in range(ZERO, d, TWO):  # two features at a time, so that each slope is loaded once for both
        next_j = min(j + ONE, d - ONE)
        for k in range(_G * _L):
            sums[k], others[k] = 0, 0
        for i in range(ZERO, count, _L):
            for t in range(_G):
                for c in range(_L):
                    slope = by_replica[t * _SOME + i + c]
                    sums[t * _L + c] += slope * noise[z + i * d + j * _L + c]
                    others[t * _L + c] += slope * noise[z + i * d + next_j * _L + c]
        for k in range(_G * _L):
            short[(at + j * _G) * _L + k] += sums[k]
        if next_j > j:
            for k in range(_G * _L):
                short[(at + next_j * _G) * _L + k] += others[k]


@cache
def noisy_gradients_of(width: int, slope_at: Callable[..., Any], constants: int) -> Callable[..., None]:
    """The kernel for `width` replicas; other arguments as of `gradient_of`."""
    W, B, number = np.uint64(width), np.uint64(BLOCK), types.float32
    many, doubles, tables, whole = flat(number), flat(types.float64), (table_of(number), blocks_of(number)), types.uint64
    loss = types.UniTuple(number, constants)

    @kernel(*tables, INDEX, many, whole, many, whole, many, whole[:, ::1], loss, *[many] * 4, doubles, doubles)
    def noisy_gradients(  # type: ignore[no-untyped-def]
        table, blocks, span, theta, d, noise, stride, moved, groups, loss, near, by_replica, short, slopes, total, own
    ):
        """Adds to `total` and `own`.

        Args:
            table, blocks, span, theta, loss, total: as of `gradient`.
            noise, stride: noise of the range's rows in strips, the first numbers of two draws `stride` apart.
            moved: (G, d, GROUP) flat: groups of at most GROUP replicas of one draw each.
            groups: (G, 3) the draw of each group, its first replica and how many it has.
            near, by_replica, short, slopes: (d, SIMD), (GROUP, SOME), (G, d, GROUP, SIMD), (BLOCK, W) + GROUP numbers, all 0.
            own: (G, d, GROUP) flat, in double precision.
        """
        margin, sums = stack(width, theta), stack(SUMS, theta)
        expand(theta, table[5], W)
        for start in range(span[0], span[1], B):
            end = min(start + B, span[1])
            for i in range(start, end):
                row_margin(table, i, theta, W, margin)
                for r in range(W):
                    slopes[(i - start) * W + r] = margin[r]
            for g in range(np.uint64(len(groups))):
                draw, first_replica, size, at = groups[g, ZERO], groups[g, ONE], groups[g, ONE + ONE], g * d * _G
                first = start
                while first < end:
                    place, z, left = (first - start) * W + first_replica, draw * stride + (first - span[0]) * d, end - first
                    count, read = min(_SOME, left // _L * _L), noise
                    if left < _L:  # the last strip: `near` has zeros behind it
                        for j in range(d):
                            for c in range(left):
                                near[j * _L + c] = noise[z + j * left + c]
                        count, read, z = left, near, ZERO
                    _noise_of_group(read, z, d, count, moved, at, slope_at, loss, slopes, place, W, size, by_replica, short)
                    first += count
            add_columns(table, blocks, start, end, slopes, W, np.uint64(64), margin, sums, total)
            if (end - span[0]) % _SUMMED == 0 or end == span[1]:
                for k in range(np.uint64(len(own))):
                    for c in range(_L):
                        own[k] += short[k * _L + c]
                        short[k * _L + c] = 0
        scatter(total, table[5], W)

    return noisy_gradients
