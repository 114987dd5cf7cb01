"""A network with one hidden layer, replicas trained together and rows clipped without their gradients ever being made.

    f(x) = <a, tanh(W (x, 1))> + c            theta = (W row by row, a, c): m = k (d + 1) + k + 1 for k hidden units

With s = tanh(W (x, 1)), e = a (1 - s^2) elementwise and q = y phi'(y f), a row's data gradient is
q (e (x, 1)', s, 1), so that its norm needs no more than the forward pass ("ghost" clipping, Goodfellow 2015):

    |gradient|^2 = q^2 (|e|^2 (|x|^2 + 1) + |s|^2 + 1)

and the sum of clipped gradients is one matrix product per layer with the rows' coefficients q min(1, C/|gradient|).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, ignore
from dpviz.common.random import generator, substreams
from dpviz.models.base import Floats, Model, Rule, Setting, count_right, regulariser
from dpviz.models.capabilities import Derivatives, FeatureNoise, LineLosses
from dpviz.models.hidden_layer import HiddenLayer
from dpviz.models.losses import Logistic, Loss
from dpviz.models.network_derivatives import NetworkDerivatives, NetworkFeatureNoise
from dpviz.models.rows import Rows
from dpviz.models.solvers.network_training import best_of_starts, polish

_SHRINK = 1 - 2.0**-18  # of a sum in single precision: more than rounding may add to a row's contribution
_INITIAL = 7  # substream of a replica's stream that is the start's alone
#: what step-size knobs take for L, which a network has not; no guarantee rests on it. At a start |J|^2 is about 4, so that
#: phi'' |J|^2 <= 1; twice that step learns Adult and breast cancer better at every epsilon tried, four times does not
NOMINAL_SMOOTHNESS = 0.5
STARTS = 3  # non-private trainings, of which the best counts as the minimum


@dataclass(frozen=True)
class Network(Model):
    """One hidden layer of tanh units under a convex margin loss; gradients have no bound, so privacy needs clipping.

    Attributes:
        width: hidden units; 0 for as many as the rows have features, the constant one included.
        start: seed of one start that all replicas share; None for a start of each replica's own.
    """

    id: str = "mlp"
    label: str = "Neural network (one hidden layer)"
    width: int = 0
    loss: Loss = field(default_factory=Logistic)
    formula: str = r"\langle a,\tanh(W(x,1))\rangle+c,\quad\theta=(W,a,c)"
    convex: bool = False
    start: int | None = None

    @property
    def layer(self) -> HiddenLayer:
        """The forward pass and its sums."""
        return HiddenLayer(self.width, self.loss)

    @property
    def derivatives(self) -> Derivatives:
        return NetworkDerivatives(self.layer)

    @property
    def feature_noise(self) -> FeatureNoise:
        return NetworkFeatureNoise(self.layer)

    @property
    def line_losses(self) -> LineLosses:
        return self._line_losses

    def setting(self, n: int, d: int, lam: float) -> Setting:
        k, none = self.layer.units(d), float("inf")
        return Setting(
            n=n,
            d=d,
            m=k * (d + 2) + 1,
            lam=lam,
            model=self.id,
            G=none,
            beta=none,
            third=none,
            convex=False,
            unit_step=1.0 / (NOMINAL_SMOOTHNESS + lam),
            abilities=self.abilities,
        )

    def initial(self, m: int, streams: Sequence[np.random.SeedSequence]) -> Floats:
        """(streams, m) normal weights of variance 1/inputs in both layers (LeCun 1998), offsets 0."""
        if self.start is not None:
            streams = [np.random.SeedSequence(self.start)] * len(streams)
        theta = np.zeros((len(streams), m))
        W, a, _ = self.layer.split(theta)
        for r, stream in enumerate(streams):
            rng = generator(substreams(stream, _INITIAL + 1)[_INITIAL])
            W[r, :, :-1] = rng.standard_normal(W[r, :, :-1].shape) / np.sqrt(W.shape[2] - 1)
            a[r] = rng.standard_normal(a.shape[1]) / np.sqrt(a.shape[1])
        return theta

    def from_one_start(self, seed: int) -> Network:
        return replace(self, start=seed)

    def prepare(self, rows: Rows, precision: type[np.floating] = np.float64) -> None:
        _ = rows.extended32 if precision is np.float32 else rows.extended
        _ = rows.norms

    def scores(self, theta: Floats, rows: Rows) -> Floats:
        return self.layer.scores(theta, rows)

    def measure(self, theta: Floats, rows: Rows) -> tuple[Floats, Floats]:
        loss, hits = np.zeros((2, len(theta)))
        for block, _, s in self.layer.passes(theta, rows):
            label = rows.part("y", block)[:, None]
            margin = self.layer.top(s, theta) * label
            hits += count_right(margin, label)
            loss += self.loss.total(np.ascontiguousarray(margin.T))
        return loss / len(rows), hits / len(rows)

    def sum_gradient(
        self,
        theta: Floats,
        rows: Rows,
        *,
        clip_norm: float = np.inf,
        weights: NDArray[np.floating] | None = None,
        rule: Rule | None = None,
    ) -> Floats:
        single = theta.dtype == np.float32
        total = np.zeros(theta.shape)
        measured = np.isfinite(clip_norm) or rule is not None
        for block, x, s in self.layer.passes(theta, rows):
            q = self.layer.score_slopes(rows, block, s, theta)
            e = self.layer.inner(s, theta)
            if measured:
                norms = np.abs(q) * self.layer.gradient_norms(rows.part("norms", block).astype(s.dtype, copy=False), s, e)
                if np.isfinite(clip_norm):
                    q *= clip_norm / np.maximum(norms, clip_norm)  # Abadi et al. 2016, Algorithm 1
                    np.minimum(norms, clip_norm, out=norms)
            if weights is not None:
                q *= weights[block]
                if measured:
                    norms *= weights[block]
            if rule is not None:
                q *= rule(block, norms.T).T
            self.layer.gather(total, x, s, e, q)
        return total * _SHRINK if single else total

    def value_and_gradient(self, theta: Floats, rows: Rows, lam: float) -> tuple[Floats, Floats]:
        """(R,) objectives and (R, m) their gradients, from one pass over the rows."""
        value, total = np.zeros(len(theta)), np.zeros(theta.shape)
        for block, x, s in self.layer.passes(theta, rows):
            label = rows.part("y", block)[:, None]
            margin = label * self.layer.top(s, theta)
            value += self.loss.value(margin).sum(axis=0)
            self.layer.gather(total, x, s, self.layer.inner(s, theta), self.loss.slope_inplace(margin) * label)
        return value / len(rows) + regulariser(theta, lam), total / len(rows) + lam * theta

    def _line_losses(
        self, theta: Floats, direction: Floats, reach: Floats, count: int, rows: Rows, *, clip: float = np.inf
    ) -> Floats:
        total, r = np.zeros((len(theta), count)), len(theta)
        ends = np.vstack([theta, direction]).astype(np.float32)
        W, a, c = self.layer.split(ends)
        step_sizes = (reach[:, None] * np.linspace(0, 1, count)).astype(np.float32)
        for block in self.layer.blocks(len(rows), 2 * r * W.shape[1]):
            both = (rows.part("extended32", block) @ W.reshape(-1, W.shape[2]).T).reshape(-1, 2 * r, W.shape[1])
            label = rows.part("y", block)[:, None].astype(np.float32)
            for k in range(count):
                step = step_sizes[:, k]
                s = np.tanh(both[:, :r] - step[:, None] * both[:, r:])
                margin = label * (np.einsum("brk,rk->br", s, a[:r] - step[:, None] * a[r:]) + (c[:r] - step * c[r:]))
                total[:, k] += self.loss.line_sums(margin, np.zeros_like(margin), 1, clip)[0]
        return total

    def gradient_norms(self, theta: Floats, rows: Rows) -> Floats:
        out = np.empty((len(rows), len(theta)))
        for block, _, s in self.layer.passes(theta, rows):
            q = self.layer.score_slopes(rows, block, s, theta)
            out[block] = np.abs(q) * self.layer.gradient_norms(rows.part("norms", block), s, self.layer.inner(s, theta))
        return out

    def minimise(self, rows: Rows, lam: float, start: Floats | None = None, monitor: Monitor = ignore) -> Floats:
        """(m,) the best of three long trainings without privacy, or the nearest minimum below `start`.

        There may be a better minimum: for a network that is not known.
        """

        def objective(theta: Floats) -> tuple[Floats, Floats]:
            return self.value_and_gradient(theta, rows, lam)

        if start is not None:
            return polish(objective, len(rows), start)
        d = rows.X.shape[1]
        streams = [np.random.SeedSequence(k) for k in range(STARTS)]
        starts = replace(self, start=None).initial(self.setting(len(rows), d, lam).m, streams)
        return best_of_starts(self, objective, rows, lam, starts, monitor)
