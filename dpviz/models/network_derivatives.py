"""Derivatives of a network's scores by its parameters and by the rows' features.

Curvature of a network without an m x m matrix: Kronecker factors with corrected eigenvalues, layer by layer.

The Gauss-Newton matrix of the first layer is (1/n) sum_i phi''_i (e_i e_i') x (x_i x_i'), a sum of Kronecker products. In the
product of the eigenbases of B = mean(phi'' e e') and A = mean(x x') it is nearly diagonal; its true diagonal there,

    D_pq = (1/n) sum_i phi''_i (U_B' e_i)_p^2 (U_A' x_i)_q^2,

takes the place of the product of eigenvalues (EKFAC: George, Laurent, Bouthillier, Ballas, Vincent, NeurIPS 2018, eq. (9)).
The second layer, k + 1 parameters, is exact; what the layers have in common is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.models.capabilities import Curvature, Derivatives, FeatureNoise, Noise
from dpviz.models.feature_derivative import network_mixed
from dpviz.models.hidden_layer import HiddenLayer
from dpviz.models.losses import Loss
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


@dataclass(frozen=True)
class NetworkDerivatives(Derivatives):
    """J_i = (e x', s, 1); the curvature of the score itself is left out (Gauss-Newton)."""

    layer: HiddenLayer
    exact = False
    factored = True

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        return self.layer.loss

    def row_scores(self, theta: Floats, rows: Rows) -> Floats:
        return self.layer.row_scores(theta, rows)

    def score_gradients(self, theta: Floats, rows: Rows) -> Floats:
        W, a, _ = self.layer.split(np.atleast_2d(theta))
        x = rows.extended
        s = np.tanh(x @ W[0].T if theta.ndim == 1 else np.einsum("nkd,nd->nk", W, x))
        out = np.empty((len(rows), theta.shape[-1]))
        J = self.layer.split(out)
        np.multiply((a * (1 - s * s))[:, :, None], x[:, None, :], out=J.W)
        J.a[:] = s
        J.c[:] = 1.0
        return out

    def score_products(self, theta: Floats, rows: Rows, vectors: Floats) -> Floats:
        u = self.layer.split(vectors)
        flat = u.W.reshape(-1, u.W.shape[2]).T
        out = np.empty((len(rows), len(vectors)))
        for block, x, s in self.layer.passes(theta[None], rows, len(flat.T)):
            moved = (x @ flat).reshape(len(x), len(vectors), -1)
            e = self.layer.inner(s, theta[None])[:, 0]
            out[block] = np.einsum("bk,btk->bt", e, moved) + s[:, 0] @ u.a.T + u.c
        return out

    def hessian_product(self, theta: Floats, rows: Rows, lam: float, vectors: Floats) -> Floats:
        _, weight = self.slopes(theta, rows)
        along = self.score_products(theta, rows, vectors) * (weight / len(rows))[:, None]
        total = lam * vectors
        for block, x, s in self.layer.passes(theta[None], rows, len(vectors) * self.layer.split(vectors).W.shape[1]):
            shape = (len(x), len(vectors), s.shape[2])
            e = np.array(np.broadcast_to(self.layer.inner(s, theta[None]), shape))
            self.layer.gather(total, x, np.broadcast_to(s, shape), e, along[block])
        return total

    def curvature(self, theta: Floats, rows: Rows, lam: float) -> Curvature:
        return KroneckerCurvature(self.layer, theta, rows, lam, self.slopes(theta, rows)[1])


@dataclass(frozen=True)
class NetworkFeatureNoise(FeatureNoise):
    """Noise on features enters the hidden units through the first layer alone."""

    layer: HiddenLayer

    def noisy_gradient(self, theta: Floats, rows: Rows, noise: Sequence[Noise], scale: Floats) -> Floats:
        parts = zip(np.split(theta, len(noise)), noise, np.split(scale, len(noise)), strict=True)
        return np.concatenate([self._of_draw(at, rows, draw, sigma) for at, draw, sigma in parts])

    def _of_draw(self, theta: Floats, rows: Rows, noise: Noise, scale: Floats) -> Floats:
        total, W = np.zeros(theta.shape), self.layer.split(theta).W
        sums, scales = self.layer.split(total), scale.astype(theta.dtype)[:, None, None]
        features = "extended32" if theta.dtype == np.float32 else "extended"
        for block in self.layer.blocks(len(rows), len(W) * max(W.shape[1], W.shape[2] - 1)):
            clean, draw = rows.part(features, block), noise if len(noise) == 1 else noise[block]
            x = np.repeat(clean[None], len(theta), axis=0)  # one product with noisy rows costs half of two, with rows and noise
            x[:, :, :-1] += scales * draw
            s = np.tanh(x @ W.transpose(0, 2, 1)).transpose(1, 0, 2)
            q = self.layer.score_slopes(rows, block, s, theta)
            e = self.layer.inner(s, theta) * q[:, :, None]
            sums.W[:] += e.transpose(1, 2, 0) @ x
            sums.a[:] += np.einsum("br,brk->rk", q, s)
            sums.c[:] += q.sum(axis=0)
        return total

    def data_weights(self, theta: Floats, rows: Rows) -> Floats:
        W, a, c = self.layer.split(np.broadcast_to(theta, (len(rows), theta.shape[-1])))
        return np.array([network_mixed(W[i], a[i], c[i], rows.X[i], rows.y[i], self.layer.loss) for i in range(len(rows))])
