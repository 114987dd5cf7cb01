"""Wrong kinds of arguments and tables that no file could hold end in one error, before anything is spent."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.common.validate import InvalidInput

FAST = dpviz.RunSpec("census-100", mechanism="output-gaussian", lam=0.1)
_TEXTS = pd.Series(["\ud800", "b"] * 30, dtype=object)


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            lambda name=name: dpviz.release(FAST, **{name: "no"})
            for name in ("all_rows", "unproved", "ranges_from_data", "tried")
        ),
        lambda: dpviz.private_search(FAST, {"lam": [0.1]}, private_ranges=np.ones(2)),
        lambda: dpviz.private_search(FAST, {"lam": 5}),
        lambda: dpviz.dataset(pd.DataFrame({"a": _TEXTS, "y": np.arange(60) % 2}), target="y"),
        lambda: dpviz.dataset(pd.DataFrame({"a": range(60), "y": _TEXTS}), target="y"),
        lambda: dpviz.dataset(pd.DataFrame({"a": [10**400] * 60, "y": np.arange(60) % 2}), target="y"),
        lambda: dpviz.dataset(pd.DataFrame(np.eye(60)[:, :3], columns=["a", "a", "y"]), target="y"),
        lambda: dpviz.release(FAST).model.predict(pd.DataFrame({"a": _TEXTS})),
    ],
)
def test_what_cannot_be_used_is_one_error(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        wrong()
