"""Curvature of a network without an m x m matrix: Kronecker factors with corrected eigenvalues, layer by layer.

The Gauss-Newton matrix of the first layer is (1/n) sum_i phi''_i (e_i e_i') x (x_i x_i'), a sum of Kronecker products. In the
product of the eigenbases of B = mean(phi'' e e') and A = mean(x x') it is nearly diagonal; its true diagonal there,

    D_pq = (1/n) sum_i phi''_i (U_B' e_i)_p^2 (U_A' x_i)_q^2,

takes the place of the product of eigenvalues (EKFAC: George, Laurent, Bouthillier, Ballas, Vincent, NeurIPS 2018, eq. (9)).
The second layer, k + 1 parameters, is exact; what the layers have in common is left out.
"""

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.models.hidden_layer import HiddenLayer
from dpviz.models.rows import Rows


class KroneckerCurvature:
    """EKFAC of one network at theta (m,), damped by the l2 regularisation lam; a `capabilities.Curvature`."""

    def __init__(self, layer: HiddenLayer, theta: Floats, rows: Rows, lam: float, curvature: Floats) -> None:
        """
        Args:
            curvature: (n,) second derivatives phi'' of the rows' losses at theta.
        """
        self._layer, self._theta = layer, theta[None]
        curvature = curvature / len(rows)
        k, d = layer.split(self._theta).W.shape[1:]
        A, B, C = np.zeros((d, d)), np.zeros((k, k)), np.zeros((k + 1, k + 1))
        for block, x, e, top in layer.factors(self._theta, rows):
            weight = curvature[block, None]
            A += x.T @ x / len(rows)
            B += (e * weight).T @ e
            C += (top * weight).T @ top
        self._UA, self._UB = np.linalg.eigh(A)[1], np.linalg.eigh(B)[1]
        self._C = np.linalg.inv(C + lam * np.eye(k + 1))
        D = np.zeros((k, d))
        for block, x, e, _ in layer.factors(self._theta, rows):
            D += ((e @ self._UB) ** 2 * curvature[block, None]).T @ (x @ self._UA) ** 2
        self._inverse = 1.0 / (D + lam)

    def solve(self, vectors: Floats) -> Floats:
        out = np.empty(vectors.shape)
        right, solved = self._layer.split(vectors), self._layer.split(out)
        solved.W[:] = self._UB @ ((self._UB.T @ right.W @ self._UA) * self._inverse) @ self._UA.T
        top = np.column_stack([right.a, right.c]) @ self._C
        solved.a[:], solved.c[:] = top[:, :-1], top[:, -1]
        return out

    def quadratic(self, rows: Rows) -> tuple[Floats, Floats]:
        squares, kernel = np.empty(len(rows)), np.empty(len(rows))
        for block, x, e, top in self._layer.factors(self._theta, rows):
            outer, inner = (e @ self._UB) ** 2, (x @ self._UA) ** 2
            moved = top @ self._C
            kernel[block] = ((outer @ self._inverse) * inner).sum(axis=1) + np.einsum("ij,ij->i", top, moved)
            squares[block] = ((outer @ self._inverse**2) * inner).sum(axis=1) + np.einsum("ij,ij->i", moved, moved)
        return np.sqrt(squares), kernel
