"""Merged columns: rows of one-hot columns in fewer entries.

Where two entries of a row are equal, one entry in a merged column can stand for both. The row's margin takes the sum of their
parameters, and what is summed for the merged column counts for both. Merged columns are merged again. The most frequent pair
comes first, as in grammar compression of matrices (Ferragina et al., VLDB 2022, section 3).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

MOST = 64  # merged columns: more save little, and all parameters are to stay in the processor's cache
_MOST_COLUMNS = 1024  # of tables in which pairs are counted
_RARE = 256  # a pair must be in one of so many rows
_SEEN = 1 << 13  # rows in which pairs are counted


def merged(rows: csr_array) -> tuple[csr_array, NDArray[np.uint64]]:
    """Rows (n, d) as (n, d + P) with fewer entries, and the pairs of columns (2 P,) that the last P stand for."""
    n, d = rows.shape
    pairs = _frequent_pairs(rows[:: -(-n // _SEEN)]) if rows.nnz and d <= _MOST_COLUMNS else []
    by_column, at = csc_array(rows), np.zeros(n)
    places = np.split(by_column.indices, by_column.indptr[1:-1])
    values = np.split(by_column.data, by_column.indptr[1:-1])
    for a, b in pairs:
        at[places[a]] = values[a]
        both = values[b] == at[places[b]]
        places.append(places[b][both])
        values.append(values[b][both])
        at[places[-1]] = 0
        left = at[places[a]] != 0
        at[places[a]] = 0
        for column, keep in ((a, left), (b, ~both)):
            places[column], values[column] = places[column][keep], values[column][keep]
    ends = np.cumsum([0, *map(len, places)])
    made = csc_array((np.concatenate(values), np.concatenate(places), ends), shape=(n, d + len(pairs)))
    return made.tocsr(), np.array(pairs, np.uint64).reshape(-1)


def _frequent_pairs(rows: csr_array) -> list[tuple[int, int]]:
    """Pairs of columns whose entries are equal, the most frequent first; column d + p stands for pair p."""
    n, d = rows.shape
    row = np.repeat(np.arange(n), np.diff(rows.indptr))
    order = np.lexsort((rows.data, row))
    equal = (np.diff(row[order]) == 0) & (np.diff(rows.data[order]) == 0)
    order = order[np.append(equal, False) | np.append(False, equal)]  # entries that another one of their row equals
    there = np.zeros((d + MOST, n), bool)
    there[rows.indices[order], row[order]] = True
    counts = there.astype(np.float32) @ there.T.astype(np.float32)
    np.fill_diagonal(counts, 0)
    pairs: list[tuple[int, int]] = []
    while len(pairs) < MOST and counts.max() * _RARE >= n:
        a, b = map(int, divmod(counts.argmax(), d + MOST))
        both, new = there[a] & there[b], d + len(pairs)
        pairs.append((a, b))
        there[new] = both
        for column in (a, b):
            there[column] ^= both
        beside = np.count_nonzero(there & both, axis=1)
        for column in (a, b):
            counts[column] -= beside
            counts[:, column] -= beside
        counts[new] = counts[:, new] = beside
        counts[a, b] = counts[b, a] = counts[new, new] = 0
    return pairs
