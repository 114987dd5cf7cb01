"""Standard normal draws for whole tables of rows."""

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.common.random import Normals, generator
from dpviz.models import kernels

_MANY = 1 << 18  # of a stream's first draws; fewer take less time than loading what is compiled


def single_normals(stream: np.random.SeedSequence) -> Normals:
    """Standard normal draws in single precision from the start of a stream on: numpy's numbers, whatever computes them.

    >>> from dpviz.common.random import spawn
    >>> single_normals(spawn(0, 1)[0])((2, 3)).shape
    (2, 3)
    """
    rng, source = generator(stream), list[Normals]()

    def draw(shape: tuple[int, ...]) -> NDArray[Any]:
        if not source:
            source.append(_source(rng, math.prod(shape)))
        return source[0](shape)

    return draw


def _source(rng: np.random.Generator, count: int) -> Normals:
    if count >= _MANY and kernels.available():
        with suppress(ImportError):  # of the tables that numba has for itself
            from dpviz.models.kernels.draws import compiled_normals

            return compiled_normals(rng)
    return lambda shape: rng.standard_normal(shape, dtype=np.float32)
