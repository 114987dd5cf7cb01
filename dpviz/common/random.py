"""Standard noise draws, one independent stream per replica, the distributions they follow, and random batches.

A draw is made once per replica at scale 1 and multiplied by the noise scale, so that moving epsilon shows the
effect of epsilon and not of a new draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats

Index = NDArray[np.intp]

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


class BatchIndices:
    """Row positions of a batch for each of S replicas, each ascending.

    Attributes:
        index, cuts: batch s is index[cuts[s] : cuts[s + 1]].
    """

    def __init__(self, index: Index, cuts: Index) -> None:
        self.index, self.cuts = index, cuts

    @classmethod
    def join(cls, batches: Sequence[Index]) -> BatchIndices:
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


def single_normals(stream: np.random.SeedSequence) -> Normals:
    """Standard normal draws in single precision from the start of a stream on, for whole tables of rows.

    >>> single_normals(spawn(0, 1)[0])((2, 3)).shape
    (2, 3)
    """
    rng = generator(stream)
    return lambda shape: rng.standard_normal(shape, dtype=np.float32)


def lockstep(batches: Batches, rngs: Sequence[np.random.Generator]) -> Callable[[int], BatchIndices]:
    """t -> batch t of each generator, asked for in order; nothing else may draw from them meanwhile."""
    draws = [batches(rng) for rng in rngs]
    return lambda t: BatchIndices.join([draw(t) for draw in draws])


def poisson_batches(n: int, rate: float) -> Batches:
    """Batches in which every row is with chance `rate`, independently: a binomial size, then a uniform subset of that size."""
    everything = np.arange(n)

    def start(rng: np.random.Generator) -> Callable[[int], Index]:
        def batch(t: int) -> Index:
            return everything if rate >= 1 else np.sort(rng.choice(n, rng.binomial(n, rate), replace=False, shuffle=False))

        return batch

    return start


def person_batches(persons: Index, rate: float) -> Batches:
    """Batches that hold all rows of every person who is chosen, with chance `rate`, independently.

    Args:
        persons: (n,) whose row each is.

    >>> batch = person_batches(np.array([5, 7, 5]), 1.0)(generator(spawn(0, 1)[0]))
    >>> batch(0).tolist()
    [0, 1, 2]
    """
    names, who = np.unique(persons, return_inverse=True)
    people = poisson_batches(len(names), rate)

    def start(rng: np.random.Generator) -> Callable[[int], Index]:
        batch = people(rng)
        return lambda t: np.flatnonzero(np.isin(who, batch(t)))

    return start


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
