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


@njit(**OPTIONS)
def _replace(ends, columns, values, counts, d, least, phrases):  # type: ignore[no-untyped-def]
    """Replaces pairs in place and gives the number of phrases; `columns` becomes -1 where an entry went.

    Args:
        ends, columns, values: a CSR matrix of n rows and d columns.
        counts: (d + P, d + P) zeros.
        least: rows that a pair must be in.
        phrases: (P, 2), written.
    """
    for row in range(len(ends) - 1):
        for i in range(ends[row], ends[row + 1]):
            for j in range(ends[row], i):
                if values[i] == values[j]:
                    counts[columns[i], columns[j]] += 1
                    counts[columns[j], columns[i]] += 1
    for p in range(len(phrases)):
        new = d + p
        flat = np.argmax(counts[:new, :new])
        a, b = flat // new, flat % new
        if counts[a, b] < least:
            return p
        phrases[p, 0], phrases[p, 1] = a, b
        for row in range(len(ends) - 1):
            first, second = -1, -1
            for i in range(ends[row], ends[row + 1]):
                if columns[i] == a:
                    first = i
                elif columns[i] == b:
                    second = i
            if first < 0 or second < 0 or values[first] != values[second]:
                continue
            for i in range(ends[row], ends[row + 1]):
                other = columns[i]
                if other >= 0 and i != first and i != second and values[i] == values[first]:
                    for gone in (a, b):
                        counts[other, gone] -= 1
                        counts[gone, other] -= 1
                    counts[other, new] += 1
                    counts[new, other] += 1
            columns[first], columns[second] = new, -1
        counts[a, b] = 0
        counts[b, a] = 0
    return len(phrases)


def in_phrases(rows: csr_array) -> tuple[csr_array, NDArray[np.intp]]:
    """Rows (n, d) with P further columns and fewer entries, and the (P, 2) columns that each of these stands for."""
    n, d = rows.shape
    none = np.empty((0, 2), np.intp)
    if d > _MOST_COLUMNS:
        return rows, none
    columns, phrases = rows.indices.copy(), np.empty((MOST, 2), np.intp)
    counts = np.zeros((d + MOST, d + MOST), np.int32)
    found = _replace(rows.indptr, columns, rows.data, counts, d, max(2, n // _RARE), phrases)
    kept = columns >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])[rows.indptr].astype(rows.indptr.dtype)
    return csr_array((rows.data[kept], columns[kept], ends), shape=(n, d + found)), phrases[:found]
