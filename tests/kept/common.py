"""Examples of `dpviz.common`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpviz.common import persons


def common_examples() -> Iterator[Any]:
    with persons.choose_rows_by(3):
        with persons.choose_rows_by(5):
            inside = persons.choice()
        after = persons.choice()
    yield from [
        [inside, None, after, None, persons.choice()],
        [persons.bound_rows(pd.Series(list("aabbbcdaab")), k, np.random.SeedSequence(s)) for k in (1, 2) for s in (0, 4)],
    ]
