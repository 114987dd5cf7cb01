"""Rows in fewer entries: two columns that often occur together are written as one further column, a merged one.

One-hot encoded rows repeat themselves: a husband is married and male. Where two entries of a row are equal, one entry in a
further column can stand for both: the row's margin takes the sum of their parameters, and what is summed for the merged column
counts for both. Merged columns are merged again. The most frequent pair is replaced first, as in grammar compression of matrices
(Ferragina et al., VLDB 2022, section 3).
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import types
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dpviz.models.kernels.compiling import flat, kernel, piece

MOST = 96  # merged columns: more save little, and all of their parameters are to stay in the processor's fastest cache
_MOST_COLUMNS = 1024  # of tables in which pairs are counted
_RARE = 256  # a pair must be in one of so many rows
_BITS = 64  # rows that a word of `having` stands for


@piece
def _count(ends, columns, values, counts, having):  # type: ignore[no-untyped-def]
    """Counts in how many rows two columns have equal entries, and marks the rows that have an entry in a column."""
    for row in range(len(ends) - 1):
        for i in range(ends[row], ends[row + 1]):
            having[columns[i], row // _BITS] |= np.uint64(1) << np.uint64(row % _BITS)
            for j in range(ends[row], i):
                if values[i] == values[j]:
                    counts[columns[i], columns[j]] += 1
                    counts[columns[j], columns[i]] += 1


@piece
def _replace_in(row, ends, columns, values, counts, having, pair, new):  # type: ignore[no-untyped-def]
    """Replaces a pair in one row, where its entries are equal."""
    first, second = -1, -1
    for i in range(ends[row], ends[row + 1]):
        if columns[i] == pair[0]:
            first = i
        elif columns[i] == pair[1]:
            second = i
    if values[first] != values[second]:
        return
    for i in range(ends[row], ends[row + 1]):
        other = columns[i]
        if other >= 0 and i != first and i != second and values[i] == values[first]:
            for gone in pair:
                counts[other, gone] -= 1
                counts[gone, other] -= 1
            counts[other, new] += 1
            counts[new, other] += 1
    columns[first], columns[second] = new, -1
    mark = np.uint64(1) << np.uint64(row % _BITS)
    having[new, row // _BITS] |= mark
    for gone in pair:
        having[gone, row // _BITS] ^= mark


@cache
def _replacing() -> Callable[..., int]:
    whole = flat(types.int32)
    counted, marked, pairs = types.int32[:, ::1], types.uint64[:, ::1], types.intp[:, ::1]

    @kernel(whole, whole, flat(types.float64), counted, marked, types.intp, types.intp, pairs)
    def replace(ends, columns, values, counts, having, d, least, merged):  # type: ignore[no-untyped-def]
        """Replaces pairs in place and gives the number of merged columns; `columns` becomes -1 where an entry went.

        Args:
            ends, columns, values: a CSR matrix of n rows and d columns.
            counts: (d + P, d + P) zeros.
            having: (d + P, words) zeros: bits that say which rows have an entry in a column.
            least: rows that a pair must be in.
            merged: (P, 2), written.
        """
        _count(ends, columns, values, counts, having)
        for p in range(len(merged)):
            new = d + p
            first = second = 0
            for a in range(new):
                for b in range(a + 1, new):
                    if counts[a, b] > counts[first, second]:
                        first, second = a, b
            pair = first, second
            if counts[pair] < least:
                return p
            merged[p, 0], merged[p, 1] = pair
            for word in range(having.shape[1]):
                both = having[pair[0], word] & having[pair[1], word]
                row = word * _BITS
                while both:
                    if both & np.uint64(1):
                        _replace_in(row, ends, columns, values, counts, having, pair, new)
                    both >>= np.uint64(1)
                    row += 1
            counts[pair[0], pair[1]] = counts[pair[1], pair[0]] = 0
        return len(merged)

    return replace


def merge_columns(rows: csr_array) -> tuple[csr_array, NDArray[np.intp]]:
    """Rows (n, d) with P further columns and fewer entries, and the (P, 2) columns that each of these stands for."""
    n, d = rows.shape
    if d > _MOST_COLUMNS:
        return rows, np.empty((0, 2), np.intp)
    ends, columns, merged = rows.indptr.astype(np.int32), rows.indices.astype(np.int32), np.empty((MOST, 2), np.intp)
    counts = np.zeros((d + MOST, d + MOST), np.int32)
    having = np.zeros((d + MOST, -(-n // _BITS)), np.uint64)
    found = _replacing()(ends, columns, rows.data.astype(float), counts, having, d, max(2, n // _RARE), merged)
    kept = columns >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])[ends].astype(np.int32)
    return csr_array((rows.data[kept], columns[kept], ends), shape=(n, d + found)), merged[:found]
