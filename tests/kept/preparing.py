"""Examples of `dpviz.preparing`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from support import make_problem

from dpviz.preparing import scaling, standardisation


def preparing_examples() -> Iterator[Any]:
    yield from [
        scaling.near_corner(np.array([[0.1, 5.0], [9.0, 0.2], [0.3, 0.2]]), np.array([True, True])),
        standardisation.moments(make_problem().rows.X),
    ]
