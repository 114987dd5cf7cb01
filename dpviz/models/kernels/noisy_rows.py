"""Sums of gradients at rows with noise of their own, z_si for row i in draw s, for W replicas at once; single precision.

Replica r has draw s(r) and noise scale sigma_r; with moved parameters sigma_r theta_r,

    u_ir = phi'(<theta_r, x_i> + <sigma_r theta_r, z_si>),      total_r = sum_i x_i u_ir,      own_r = sum_i z_si u_ir

The products with noise have no zeros to leave out. They are made in tiles, of 8 rows times replicas of one draw, or
of replicas times columns, whose sums stay in registers; the noise of a few rows stays in the cache between both products.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import njit, types

from dpviz.models.kernels import BLOCK, SIMD
from dpviz.models.kernels.compiling import INDEX, blocks_of, flat, kernel, stack, table_of
from dpviz.models.kernels.inline import add_columns, expand_parameters, row_margin, scatter_gradients

GROUP = 10  # replicas of one draw in a tile
SOME = 128  # rows at a time
TILE = SIMD * GROUP

_L, _G, _SOME, _0, _1 = np.uint64(SIMD), np.uint64(GROUP), np.uint64(SOME), np.uint64(0), np.uint64(1)
_ROWS = np.uint64(8)


@njit(inline="always")
def _noisy_margins(noise, z, d, first, stop, moved, at, sums, margins, to, W):  # type: ignore[no-untyped-def]
    """Adds <moved, z> to the margins of rows `first` to `stop` - 1, for one group; margins of the first row begin at `to`."""
    for i in range(first, stop, _ROWS):
        for k in range(_ROWS * _L):
            sums[k] = 0
        for j in range(d):
            for t in range(_ROWS):
                value = noise[z + min(i + t, stop - _1) * d + j]
                for r in range(_L):
                    sums[t * _L + r] += value * moved[at + j * _L + r]
        for t in range(_ROWS):
            if i + t < stop:
                place = to + (i + t - first) * W
                for r in range(_L):
                    margins[place + r] += sums[t * _L + r]


@njit(inline="always")
def _add_noise(noise, z, d, first, stop, slopes, place, W, sums, own, at):  # type: ignore[no-untyped-def]
    """Adds z times slopes of rows `first` to `stop` - 1 to `own`, for one group; slopes of the first row begin at `place`."""
    tiles = (d + _L - _1) // _L
    for k in range(tiles):
        left = min(k * _L, d - _L)
        for c in range(_G * _L):
            sums[c] = 0
        for i in range(first, stop):
            here, row = place + (i - first) * W, z + i * d + left
            for t in range(_G):
                value = slopes[here + t]
                for c in range(_L):
                    sums[t * _L + c] += value * noise[row + c]
        for t in range(_G):
            to = at + (t * tiles + k) * _L
            for c in range(_L):
                own[to + c] += sums[t * _L + c]


@cache
def noisy_gradients_of(width: int, slope_at: Callable[..., Any], constants: int) -> Callable[..., None]:
    """The kernel for `width` replicas; other arguments as of `gradient_of`."""
    W, B, one, number = np.uint64(width), np.uint64(BLOCK), np.float32(1), types.float32
    many, doubles, tables, whole = flat(number), flat(types.float64), (table_of(number), blocks_of(number)), types.uint64
    loss = types.UniTuple(number, constants)

    @kernel(*tables, INDEX, INDEX, many, whole, many, whole, many, INDEX, INDEX, loss, many, many, doubles, doubles)
    def noisy_gradients(  # type: ignore[no-untyped-def]
        table, blocks, merged, span, theta, d, noise, stride, moved, which, lanes, loss, margins, slopes, total, own
    ):
        """Adds to `total` and `own`.

        Args:
            table, blocks, merged, span, theta, loss, slopes, total: as of `gradient`.
            noise, stride: noise (rows of the range, d), the first numbers of two draws `stride` apart.
            moved: (G, d, SIMD) flat: groups of at most GROUP replicas of one draw each.
            own: (G, GROUP, tiles, SIMD) flat, in double precision: tile k has the columns from min(k SIMD, d - SIMD) on.
            which, lanes: (G,) the draw of each group, and its first replica, ascending; later replicas may be the next group's.
            margins: (SOME, W) flat, overwritten.
        """
        margin = numba.carray(stack(width, theta), width)
        size = (d + _L - _1) // _L * _L * _G
        sums = numba.carray(stack(TILE, theta), TILE)
        expand_parameters(theta, merged, W)
        for start in range(span[0], span[1], B):
            end = min(start + B, span[1])
            for first in range(start, end, _SOME):
                stop, here = min(first + _SOME, end), (first - start) * W
                for i in range(first, stop):
                    row_margin(table, i, theta, W, margin)
                    for r in range(W):
                        margins[(i - first) * W + r] = margin[r]
                for g in range(np.uint64(len(which))):
                    z, lane = which[g] * stride, lanes[g]
                    _noisy_margins(noise, z, d, first - span[0], stop - span[0], moved, g * d * _L, sums, margins, lane, W)
                for k in range((stop - first) * W):
                    slopes[here + k] = slope_at(margins[k], one, *loss)
                for g in range(np.uint64(len(which))):
                    z, lane = which[g] * stride, lanes[g]
                    _add_noise(noise, z, d, first - span[0], stop - span[0], slopes, here + lane, W, sums, own, g * size)
            add_columns(table, blocks, start, end, slopes, W, _SOME, margin, sums, total)
        scatter_gradients(total, merged, W)

    return noisy_gradients
