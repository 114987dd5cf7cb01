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
from dpviz.models.kernels.compiling import INDEX, blocks_of, flat, kernel, piece, prefetch, stack, table_of
from dpviz.models.kernels.inline import ONE, TWO, ZERO, add_columns, expand, row_margin, scatter

GROUP = 10  # replicas of one draw whose sums are in registers
TILE, SQUARE = GROUP * SIMD, SIMD * SIMD
SOME = SIMD * SIMD  # rows at a time: as many strips as a strip has rows
_SUMMED = np.uint64(16 * BLOCK)  # rows whose sums over SOME rows are added in single precision before they go on in double
_L, _G, _SOME, _HALF = np.uint64(SIMD), np.uint64(GROUP), np.uint64(SOME), np.uint64(SQUARE // 2)


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


@piece
def transpose(source, at, step, target, to, stride):  # type: ignore[no-untyped-def]
    """Writes 16 columns of 16 numbers of `source` as rows of `target`: halves of a square are interleaved four times."""
    square, other = stack(SQUARE, source), stack(SQUARE, source)
    for k in range(_L):
        for c in range(_L):
            square[k * _L + c] = source[at + k * step + c]
    for _ in range(TWO):
        for k in range(_HALF):
            other[TWO * k], other[TWO * k + ONE] = square[k], square[_HALF + k]
        for k in range(_HALF):
            square[TWO * k], square[TWO * k + ONE] = other[k], other[_HALF + k]
    for k in range(_L):
        for c in range(_L):
            target[to + k * stride + c] = square[k * _L + c]


@njit(inline="always")  # numba's inlining: as a `piece` it takes 1.08 times as long
def _noise_of_group(noise, z, later, ahead, d, count, moved, at, slope_at, loss, slopes, place, short):  # type: ignore[no-untyped-def]
    """Margins without noise become slopes, in `slopes` from `place` on; adds z times slopes of `count` rows to `short`.

    Args:
        later, ahead: where noise lies that is read next.
        slopes: (W, SOME) flat.
    """
    sums, others = stack(TILE, noise), stack(TILE, noise)
    for i in range(ZERO, count, _L):
        for t in range(_G):
            for c in range(_L):
                sums[t * _L + c] = slopes[place + t * _SOME + i + c]
        for j in range(d):
            prefetch(later, ahead + i * d + j * _L)
            for t in range(_G):
                value = moved[at + j * _G + t]
                for c in range(_L):
                    sums[t * _L + c] += value * noise[z + i * d + j * _L + c]
        for t in range(_G):
            for c in range(_L):
                slopes[place + t * _SOME + i + c] = slope_at(sums[t * _L + c], np.float32(1), *loss)
    for j in range(ZERO, d, TWO):  # two features at a time, so that each slope is loaded once for both
        next_j = min(j + ONE, d - ONE)
        for k in range(_G * _L):
            sums[k], others[k] = 0, 0
        for i in range(ZERO, count, _L):
            for t in range(_G):
                for c in range(_L):
                    slope = slopes[place + t * _SOME + i + c]
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

    @kernel(*tables, INDEX, many, whole, many, whole, many, INDEX, loss, *[many] * 4, doubles, doubles)
    def noisy_gradients(  # type: ignore[no-untyped-def]
        table, blocks, span, theta, d, noise, stride, moved, draws, loss, near, by_replica, short, slopes, total, own
    ):
        """Adds to `total` and `own`.

        Args:
            table, blocks, span, theta, loss, total: as of `gradient`.
            noise, stride: noise of the range's rows in strips, the first numbers of two draws `stride` apart.
            moved: (G, d, GROUP) flat, for the first G GROUP replicas: GROUP of each draw, some of which may be 0.
            draws: (G,) which draw it is.
            near, by_replica, short, slopes: (SOME, d), (W, SOME), (G, d, GROUP, SIMD) and (BLOCK, W), all 0.
            own: (G, d, GROUP) flat, in double precision.
        """
        margin, sums, some = stack(width, theta), stack(SUMS, theta), np.uint64(len(draws))
        tiles = W // _L * _SOME // _L
        expand(theta, table[5], W)
        for start in range(span[0], span[1], B):
            end = min(start + B, span[1])
            for i in range(start, end):
                row_margin(table, i, theta, W, margin)
                for r in range(W):
                    slopes[(i - start) * W + r] = margin[r]
            for first in range(start, end, _SOME):
                here, whole = (first - start) * W, min(end - first, _SOME) // _L * _L
                for k in range(tiles):
                    replica, strip = k // _L * _L, k % _L * _L
                    transpose(slopes, here + strip * W + replica, W, by_replica, replica * _SOME + strip, _SOME)
                for g in range(some):
                    at, row, after = g * d * _G, first - span[0], g + ONE if g + ONE < some else ZERO
                    z = draws[g] * stride + row * d
                    ahead = draws[after] * stride + (row if after > ZERO else row + _SOME) * d
                    read, count, left = noise, whole, min(end - first, _SOME) - whole
                    if left > 0:  # the last strip of all gets zeros behind it
                        for k in range(whole * d):
                            near[k] = noise[z + k]
                        for j in range(d):
                            for c in range(left):
                                near[whole * d + j * _L + c] = noise[z + whole * d + j * left + c]
                        count, read, z = whole + _L, near, ZERO
                    _noise_of_group(read, z, noise, ahead, d, count, moved, at, slope_at, loss, by_replica, g * _G * _SOME, short)
                for k in range(tiles):
                    replica, strip = k // _L * _L, k % _L * _L
                    transpose(by_replica, replica * _SOME + strip, _SOME, slopes, here + strip * W + replica, W)
            add_columns(table, blocks, start, end, slopes, W, np.uint64(64), margin, sums, total)
            if (end - span[0]) % _SUMMED == 0 or end == span[1]:
                for k in range(np.uint64(len(own))):
                    for c in range(_L):
                        own[k] += short[k * _L + c]
                        short[k * _L + c] = 0
        scatter(total, table[5], W)

    return noisy_gradients
