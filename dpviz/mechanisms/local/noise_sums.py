"""Sums over all rows of reports' noise, drawn without the noise of any row, and the noise of rows given these sums."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from dpviz.common.random import generator, single_normals, substreams
from dpviz.mechanisms.base import Floats

_MANY, _APART = 1 << 20, 1e-3  # entries of rows, and the least of their singular values over the largest, for single precision
_LEAST = 1e-12  # of the largest eigenvalue: below, rounding of the sums over rows is all there is


class NoiseSums:
    """sum z_i, sum v_i z_i' and sum z_i z_i' for z_i ~ N(0, I) and known rows v_i, from their exact joint distribution [ours].

    Let U (n, r) be an orthonormal basis of the columns of A = [1, V], so that A = U F'. In any orthonormal basis Z (n, d) has
    independent standard normal entries: N = U'Z and the part beside it, Q R with orthonormal Q, are independent. Then

        A'Z = F N,      Z'Z = N'N + R'R,      Z = U N + Q R,

    where R (min(n - r, d), d) is upper triangular: chi-distributed on the diagonal, with n - r - i degrees of freedom in row i,
    normal beside it (Bartlett 1933), and Q is uniform among what is orthogonal to U.
    """

    def __init__(self, rows: Floats, moment: Floats) -> None:
        """
        Args:
            rows: (n, d) V.
            moment: (d, d) V'V.
        """
        n, total = len(rows), rows.sum(axis=0)
        value, basis = np.linalg.eigh(np.block([[np.array([[n]]), total[None]], [total[:, None], moment]]))
        kept = value > _LEAST * value[-1]
        self._rows, self._root, self._basis = rows, np.sqrt(value[kept]), basis[:, kept]

    def _parts(self, stream: np.random.SeedSequence) -> tuple[Floats, Floats]:
        """N and R."""
        rng, (n, d), r = generator(stream), self._rows.shape, len(self._root)
        inside, k = rng.standard_normal((r, d)), min(n - r, d)
        beside = np.triu(rng.standard_normal((k, d)), 1)
        np.fill_diagonal(beside, np.sqrt(rng.chisquare(n - r - np.arange(k))))
        return inside, beside

    def draw(self, stream: np.random.SeedSequence) -> tuple[Floats, Floats, Floats]:
        """(d,) the sum of z, (d, d) of v z', (d, d) of z z'."""
        inside, beside = self._parts(stream)
        sums = (self._basis * self._root) @ inside
        return sums[0], sums[1:], inside.T @ inside + beside.T @ beside

    def rows(self, stream: np.random.SeedSequence) -> NDArray[np.floating]:
        """(n, d) noise with the sums of `draw`; in single precision where rows are many and no columns nearly dependent."""
        inside, beside = self._parts(stream)
        kind: Any = np.float32 if self._rows.size > _MANY and self._root[0] > _APART * self._root[-1] else np.float64
        rows, basis = self._rows.astype(kind), self._basis / self._root
        others: Any = single_normals(substreams(stream, 1)[0])((len(rows), len(beside))).astype(kind, copy=False)
        # Q = (E - U U'E) L'^-1 for normal draws E and the Cholesky factor L of the Gram matrix of E - U U'E
        known = basis.T @ np.vstack([others.sum(axis=0, dtype=float), rows.T @ others])
        root = np.linalg.cholesky((others.T @ others).astype(float) - known.T @ known)
        among = solve_triangular(root, beside, lower=True, trans="T") if len(beside) else beside
        first, *rest = basis @ (inside - known @ among)
        return np.asarray(others @ among.astype(kind) + rows @ np.array(rest, kind) + first.astype(kind))
