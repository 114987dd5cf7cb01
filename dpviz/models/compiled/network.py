"""Compiled loop (numba) over rows of a network with one hidden layer: from hidden values to clipped weights for its sums."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpviz.models.compiled.options import OPTIONS


@njit(**OPTIONS, fastmath={"reassoc", "contract", "nsz"})
def clipped_rows(s, width, a, c, y, norms, clip_norm, weights, sums, offsets):  # type: ignore[no-untyped-def]
    """What `HiddenLayer` and clipping compute of b rows and R networks of k units, row by row, for the logistic loss.

    Args:
        s: (b, width) flat hidden values, of which the first R k of each row count.
        a, c: (R k,) flat and (R,) parameters of the second layer.
        y, norms: (b,) labels and lengths of the rows.
        clip_norm: longest gradient; infinite for none.
        weights: (b, width) flat, overwritten by q a (1 - s^2), which multiplies a row for the first layer's sums.
        sums: (R k,) to which q s is added.
        offsets: (R,) to which q is added.
    """
    networks, k = len(c), len(a) // len(c)
    one = s[0] * 0 + 1  # in the precision of s
    for i in range(len(y)):
        squared = norms[i] * norms[i] + one
        for r in range(networks):
            start = i * width + r * k
            hidden, out = s[start : start + k], weights[start : start + k]
            above, total = a[r * k : (r + 1) * k], sums[r * k : (r + 1) * k]
            score, long, short = c[r], one * 0, one
            for u in range(k):
                value = hidden[u]
                inner = above[u] * (one - value * value)
                out[u] = inner
                score += above[u] * value
                long += inner * inner
                short += value * value
            q = -y[i] / (one + np.exp(y[i] * score))
            length = abs(q) * np.sqrt(long * squared + short)  # "ghost" clipping, Goodfellow 2015
            if length > clip_norm:
                q *= clip_norm / length  # Abadi et al. 2016, Algorithm 1
            for u in range(k):
                out[u] *= q
                total[u] += q * hidden[u]
            offsets[r] += q
