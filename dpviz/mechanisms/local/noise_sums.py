"""Sums over all rows of reports' noise, drawn without the noise of any row, and the noise of rows given these sums."""

import numpy as np

from dpviz.common.random import generator, substreams
from dpviz.mechanisms.base import Floats

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

    def rows(self, stream: np.random.SeedSequence) -> Floats:
        """(n, d) noise with the sums of `draw`."""
        inside, beside = self._parts(stream)
        known = (self._basis[0] + self._rows @ self._basis[1:]) / self._root
        others = generator(substreams(stream, 1)[0]).standard_normal((len(known), len(beside)))
        for _ in range(2):  # once more takes away what rounding left
            others -= known @ (known.T @ others)
        frame, triangle = np.linalg.qr(others)
        return np.asarray(known @ inside + (frame * np.sign(np.diag(triangle))) @ beside)
