"""The derivative of a row's gradient by its features: how strongly noise on a row reaches the gradient.

For a linear score with constant feature c0, parameters theta = (w, b), xt = (x, c0), a = y phi'(m), k = phi''(m):

    M = d/dx (d/dtheta loss) = a [I; 0] + k xt w'            (d x d_x, d_x features without the constant one)
    M'M = a^2 I + N,   N = a k (x w' + w x') + k^2 |xt|^2 w w'   [ours]

N has rank two and lives in span{x, w}; with tr = 2 a k x.w + k^2 |xt|^2 |w|^2 its two eigenvalues are
(tr +- sqrt(tr^2 + 4 a^2 k^2 (|x|^2 |w|^2 - (x.w)^2)))/2, one >= 0 and one <= 0, and all others are 0.
"""

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.models.losses import Loss


def linear_mixed(slope: Floats, curvature: Floats, x: Floats, w: Floats, *, constant: float = 0.0) -> Floats:
    """(n,) largest singular values of M, the w of Kang-DBDP, in closed form.

    Args:
        slope: (n,) a = y phi'(m).
        curvature: (n,) k = phi''(m) >= 0.
        x: (n, d_x) features without the constant one.
        w: (d_x,) or (n, d_x) weights without the intercept.
        constant: the constant feature c0, 0 where noise goes on all features.
    """
    w = np.broadcast_to(w, x.shape)
    xx, ww, xw = (np.einsum("ij,ij->i", p, q) for p, q in ((x, x), (w, w), (x, w)))
    trace = 2 * slope * curvature * xw + curvature**2 * (xx + constant**2) * ww
    if x.shape[1] == 1:  # span{x, w} is all there is
        return np.sqrt(np.maximum(slope**2 + trace, 0.0))
    # Lagrange's identity is >= 0; rounding may say otherwise where x and w are parallel
    root = np.sqrt(trace**2 + 4 * slope**2 * curvature**2 * np.maximum(xx * ww - xw**2, 0.0))
    return np.sqrt(slope**2 + (trace + root) / 2)


def network_mixed(W: Floats, a: Floats, c: float, x: Floats, y: float, loss: Loss) -> float:
    """Largest singular value of the derivative by x of one row's gradient in a network <a, tanh(W (x, 1))> + c.

    Its square is the top eigenvalue of

        Q'Q + phi''^2 g g' + (|x|^2 + 1) P'P + delta (r x' + x r') + delta^2 |e|^2 I     [ours]

    with delta = y phi', V the first layer without offsets, g = V'e, e = a s', P = phi'' e g' + delta diag(a s'')V,
    Q = phi'' s g' + delta diag(s')V and r = P'e: the blocks of the derivative by a, c and (V, b).

    Args:
        W: (k, d + 1), offsets last.
        a: (k,)
        x: (d,)
        y: label.
    """
    V = W[:, :-1]
    s = np.tanh(V @ x + W[:, -1])
    first, second = 1 - s * s, -2 * s * (1 - s * s)
    margin = np.array(y * (a @ s + c))
    delta, curvature = y * float(loss.slope(margin)), float(loss.curvature(margin))
    e = a * first
    g = V.T @ e
    P = curvature * np.outer(e, g) + delta * (a * second)[:, None] * V
    Q = curvature * np.outer(s, g) + delta * first[:, None] * V
    r = P.T @ e
    square = Q.T @ Q + curvature**2 * np.outer(g, g) + (x @ x + 1) * (P.T @ P)
    square += delta * (np.outer(r, x) + np.outer(x, r))
    top = np.linalg.eigvalsh(square)[-1] + delta**2 * (e @ e)
    return float(np.sqrt(max(top, 0.0)))
