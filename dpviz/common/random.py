"""Standard noise draws, one independent stream per replica, the distributions they follow, and random batches.

A draw is made once per replica at scale 1 and multiplied by the noise scale, so that moving epsilon shows the
effect of epsilon and not of a new draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr, roots_genlaguerre

from dpviz.common.arrays import Floats

Index = NDArray[np.intp]

_FOUR_PERCENT = 2**16 // 25  # of the numbers of 16 bits
_AHEAD, _AHEAD_ENTRIES = 32, 1 << 18  # steps whose noise is drawn at once, and numbers of them at most

#: shape -> draws, one array after the other
Normals = Callable[[tuple[int, ...]], NDArray[Any]]
#: generator -> (t -> row positions of batch t, each at most once), asked for in order
Batches = Callable[[np.random.Generator], Callable[[int], Index]]


def spawn(seed: int, count: int) -> list[np.random.SeedSequence]:
    """`count` independent streams; stream s does not depend on `count`.

    >>> [stream.spawn_key for stream in spawn(0, 3)]
    [(0,), (1,), (2,)]
    """
    return np.random.SeedSequence(seed).spawn(count)


def generator(stream: np.random.SeedSequence) -> np.random.Generator:
    """A fresh generator at the start of a stream; call it twice and both give the same draws."""
    return np.random.Generator(np.random.PCG64(stream))


def substreams(stream: np.random.SeedSequence, count: int) -> list[np.random.SeedSequence]:
    """`count` independent streams below one replica's, the same at every call."""
    key = tuple(stream.spawn_key)
    return [np.random.SeedSequence(stream.entropy, spawn_key=(*key, 1_000_000 + k)) for k in range(count)]


class Drawn:
    """Row positions of a batch for each of S replicas, each ascending.

    Attributes:
        index, cuts: batch s is index[cuts[s] : cuts[s + 1]].
    """

    def __init__(self, index: Index, cuts: Index) -> None:
        self.index, self.cuts = index, cuts

    @classmethod
    def of(cls, batches: Sequence[Index]) -> Drawn:
        """From S batches."""
        return cls(np.concatenate(batches), np.cumsum([0, *map(len, batches)]))

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def __getitem__(self, s: int) -> Index:
        if not 0 <= s < len(self):
            raise IndexError(f"there are {len(self)} batches, and no batch {s}")
        return self.index[self.cuts[s] : self.cuts[s + 1]]

    def __iter__(self) -> Iterator[Index]:
        return (self[s] for s in range(len(self)))


def standard_gaussian(streams: Sequence[np.random.SeedSequence], size: int) -> Floats:
    """N(0, I) per stream, shape (streams, size).

    >>> standard_gaussian(spawn(0, 2), 3).shape
    (2, 3)
    """
    return np.stack([generator(s).standard_normal(size) for s in streams])


def standard_gamma_sphere(streams: Sequence[np.random.SeedSequence], size: int) -> Floats:
    """`gamma_sphere` per stream, shape (streams, size)."""
    return np.stack([gamma_sphere(generator(s), size) for s in streams])


def gamma_sphere(rng: np.random.Generator, size: int) -> Floats:
    """(size,) a draw with density proportional to exp(-|b|_2).

    Uniform direction times a Gamma(shape=size, scale=1) radius (Chaudhuri, Monteleoni, Sarwate 2011, section 3.2).
    """
    direction = rng.standard_normal(size)
    return np.asarray(rng.gamma(size) * direction / np.linalg.norm(direction))


def normals_in_step(rngs: Sequence[np.random.Generator], m: int) -> Callable[[], Floats]:
    """Standard normal draws (S, m), a vector of each generator at every call; nothing else may draw from them meanwhile."""
    ahead = max(1, min(_AHEAD, _AHEAD_ENTRIES // (len(rngs) * m)))
    left: list[Floats] = []

    def draw() -> Floats:
        if not left:  # the same numbers in fewer, longer calls
            left.extend(np.stack([rng.standard_normal((ahead, m)) for rng in rngs], axis=1)[::-1])
        return left.pop()

    return draw


def gamma_spheres_in_step(rngs: Sequence[np.random.Generator], m: int) -> Callable[[], Floats]:
    """As `normals_in_step`, by `gamma_sphere`."""
    return lambda: np.stack([gamma_sphere(rng, m) for rng in rngs])


def _poisson(rng: np.random.Generator, n: int, coarse: int, fine: int) -> Index:
    """A batch of n rows in which every row is with chance (coarse + fine/2^16)/2^16."""
    bits = rng.bit_generator.random_raw((n + 3) // 4).view(np.uint16)[:n]
    # where rows are more than 1 in 10 numpy looks for them without branches, which is faster from 1 in 25 on: more make it do so
    more = n // 16 + 1 if coarse > _FOUR_PERCENT else 1
    chosen = np.ones(n + more, bool)
    np.less_equal(bits, coarse, out=chosen[:n])
    ties = np.flatnonzero(bits == coarse)
    if len(ties):  # ties of the upper 16 bits are decided by 16 more, so that the chance is exact to 2^-32
        chosen[ties] = rng.integers(0, 2**16, len(ties)) < fine
    return np.flatnonzero(chosen)[:-more]


class PoissonBatches:
    """Batches in which every row is with chance `rate`, independently.

    The chance is rounded down to a multiple of 2^-32 (at most 2^-32 below the rate that is accounted for); very
    sparse batches draw their size first and then a uniform subset, which is the same distribution.
    """

    def __init__(self, n: int, rate: float) -> None:
        self._n, self._rate = n, rate

    def __call__(self, rng: np.random.Generator) -> Callable[[int], Index]:
        draw = self.in_step([rng])
        return lambda t: draw(t)[0]

    def in_step(self, rngs: Sequence[np.random.Generator]) -> Callable[[int], Drawn]:
        """As of `in_step`."""
        n, rate = self._n, self._rate
        if rate >= 1:
            everything = Drawn.of([np.arange(n)] * len(rngs))
            return lambda t: everything
        if rate < 0.01:
            return lambda t: Drawn.of(
                [np.sort(rng.choice(n, rng.binomial(n, rate), replace=False, shuffle=False)) for rng in rngs]
            )
        coarse, fine = divmod(int(rate * 2**32), 2**16)
        return lambda t: Drawn.of([_poisson(rng, n, coarse, fine) for rng in rngs])


class PersonBatches:
    """Batches that hold all rows of every person who is drawn, with chance `rate`, independently.

    Args:
        persons: (n,) whose row each is.

    >>> batch = PersonBatches(np.array([5, 7, 5]), 1.0)(generator(spawn(0, 1)[0]))
    >>> batch(0).tolist()
    [0, 1, 2]
    """

    def __init__(self, persons: Index, rate: float) -> None:
        names, self._who = np.unique(persons, return_inverse=True)
        self._count, self._drawn = len(names), PoissonBatches(len(names), rate)

    def __call__(self, rng: np.random.Generator) -> Callable[[int], Index]:
        draw = self.in_step([rng])
        return lambda t: draw(t)[0]

    def in_step(self, rngs: Sequence[np.random.Generator]) -> Callable[[int], Drawn]:
        """As of `in_step`."""
        draw = self._drawn.in_step(rngs)

        def rows(drawn: Index) -> Index:
            chosen = np.zeros(self._count, bool)
            chosen[drawn] = True
            return np.flatnonzero(chosen[self._who])

        return lambda t: Drawn.of([rows(people) for people in draw(t)])


def in_step(batches: Batches, rngs: Sequence[np.random.Generator]) -> Callable[[int], Drawn]:
    """t -> batch t of each generator, asked for in order; nothing else may draw from them meanwhile."""
    joint: Callable[..., Callable[[int], Drawn]] | None = getattr(batches, "in_step", None)
    if joint is not None:
        return joint(rngs)
    draws = [batches(rng) for rng in rngs]
    return lambda t: Drawn.of([draw(t) for draw in draws])


def shuffled_batches(edges: Index) -> Batches:
    """Passes over all rows, each in a fresh uniform order that is cut into batches: every row is in one batch of a pass.

    Args:
        edges: (K + 1,) ends of the K batches in that order, from 0 to the number of rows, ascending.
    """
    per_pass = len(edges) - 1

    def start(rng: np.random.Generator) -> Callable[[int], Index]:
        order = np.arange(edges[-1])

        def batch(t: int) -> Index:
            k = t % per_pass
            if k == 0:
                rng.shuffle(order)
            return np.sort(order[edges[k] : edges[k + 1]])

        return batch

    return start


_LAGUERRE = range(20, 301)  # dimensions of noise for which Gauss-Laguerre nodes are few and exact

STANDARD = {"gaussian": standard_gaussian, "gamma-sphere": standard_gamma_sphere}


@cache
def _mixture(dim: int) -> tuple[Floats, Floats]:
    """Nodes and weights of means over V/scale^2 for V as in `prob_positive`.

    Errors of those means are below 1e-10 for dimensions from 20 to 300, where V seldom is near 0 and Gauss-Laguerre nodes serve,
    and below 2e-8 for others.
    """
    if dim in _LAGUERRE:
        nodes, weights = roots_genlaguerre(24, (dim + 1) / 2 - 1)
        return 2.0 * nodes, weights / weights.sum()
    nodes, weights = np.polynomial.legendre.leggauss(96)
    # an even, smooth map of (0, 1) that flattens both ends of the quantile function
    u = 0.5 * (nodes + 1.0)
    return 2.0 * gammaincinv((dim + 1) / 2, u * u * (3 - 2 * u)), 0.5 * weights * 6 * u * (1 - u)


def prob_positive(family: str, scale: float, dim: int, margin: Floats, norm: Floats) -> Floats:
    """P(margin + <b, x> >= 0) for noise b of a family, without drawing any.

    Args:
        family: "gaussian" (b ~ N(0, scale^2 I)) or "gamma-sphere" (density ~ exp(-|b|/scale)).
        scale: noise scale, >= 0; 0 means no noise.
        dim: dimension of b.
        margin: noiseless margins, any shape.
        norm: |x|_2, same shape.

    For gamma-sphere noise, b = sqrt(V) g with g ~ N(0, I) and V ~ Gamma((dim+1)/2, scale 2 scale^2): a Gaussian
    scale mixture [ours; the mixture gives exp(-|b|) because |b|^(1/2) K_(1/2)(|b|) is proportional to it].

    >>> prob_positive("gaussian", 1.0, 3, np.array([0.0, 1.96]), np.ones(2)).round(3).tolist()
    [0.5, 0.975]
    """
    spread = scale * np.asarray(norm, float)
    still = spread <= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(still, np.where(np.asarray(margin) >= 0, np.inf, -np.inf), margin / spread)
    if family == "gaussian":
        return ndtr(z)
    if family == "gamma-sphere":
        return sum((w * ndtr(z / np.sqrt(v)) for v, w in zip(*_mixture(dim), strict=True)), np.zeros_like(z))
    raise ValueError(f"no closed form for noise family {family!r}")
