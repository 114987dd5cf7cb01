"""Compiled loops (numba) that write rows in fewer entries: columns that often occur together are a column of their own.

One-hot encoded rows repeat themselves: whoever is a husband is married and male. Where two entries of a row are equal, one
entry in a further column, a phrase, can stand for both: the margin of the row takes the sum of their parameters, and what is
summed for the phrase counts for both. Pairs of phrases are phrases again. The most frequent pair is replaced first, as in
grammar compression of matrices (Ferragina et al., VLDB 2022, section 3).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dpviz.models.compiled.options import OPTIONS

MOST = 96  # phrases: more save little, and all of their parameters are to stay in the processor's fastest cache
_MOST_COLUMNS = 1024  # of tables in which pairs are counted
_RARE = 256  # a pair must be in one of so many rows
_BITS = 64  # rows that a word says of whether they have an entry


@njit(**OPTIONS)
def _count(ends, columns, values, counts, having):  # type: ignore[no-untyped-def]
    """Counts in how many rows two columns have equal entries, and marks the rows that have an entry in a column.

    Args:
        having: as of `_replace`.
    """
    for row in range(len(ends) - 1):
        for i in range(ends[row], ends[row + 1]):
            having[columns[i], row // _BITS] |= np.uint64(1) << np.uint64(row % _BITS)
            for j in range(ends[row], i):
                if values[i] == values[j]:
                    counts[columns[i], columns[j]] += 1
                    counts[columns[j], columns[i]] += 1


@njit(**OPTIONS)
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


@njit(**OPTIONS)
def _replace(ends, columns, values, counts, having, d, least, phrases):  # type: ignore[no-untyped-def]
    """Replaces pairs in place and gives the number of phrases; `columns` becomes -1 where an entry went.

    Args:
        ends, columns, values: a CSR matrix of n rows and d columns.
        counts: (d + P, d + P) zeros.
        having: (d + P, words) zeros: bits that say which rows have an entry in a column.
        least: rows that a pair must be in.
        phrases: (P, 2), written.
    """
    _count(ends, columns, values, counts, having)
    for p in range(len(phrases)):
        new = d + p
        flat = np.argmax(counts[:new, :new])
        pair = flat // new, flat % new
        if counts[pair] < least:
            return p
        phrases[p, 0], phrases[p, 1] = pair
        for word in range(having.shape[1]):
            both = having[pair[0], word] & having[pair[1], word]
            row = word * _BITS
            while both:
                if both & np.uint64(1):
                    _replace_in(row, ends, columns, values, counts, having, pair, new)
                both >>= np.uint64(1)
                row += 1
        counts[pair[0], pair[1]] = 0
        counts[pair[1], pair[0]] = 0
    return len(phrases)


def in_phrases(rows: csr_array) -> tuple[csr_array, NDArray[np.intp]]:
    """Rows (n, d) with P further columns and fewer entries, and the (P, 2) columns that each of these stands for."""
    n, d = rows.shape
    none = np.empty((0, 2), np.intp)
    if d > _MOST_COLUMNS:
        return rows, none
    columns, phrases = rows.indices.copy(), np.empty((MOST, 2), np.intp)
    counts = np.zeros((d + MOST, d + MOST), np.int32)
    having = np.zeros((d + MOST, -(-n // _BITS)), np.uint64)
    found = _replace(rows.indptr, columns, rows.data, counts, having, d, max(2, n // _RARE), phrases)
    kept = columns >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])[rows.indptr].astype(rows.indptr.dtype)
    return csr_array((rows.data[kept], columns[kept], ends), shape=(n, d + found)), phrases[:found]
