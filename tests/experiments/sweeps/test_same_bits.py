"""A sweep's table is the same bit by bit whatever is computed beside each cell."""

import pandas as pd
import pytest

import dpviz
from dpviz.common.validate import InvalidInput


def takers(dataset: str) -> list[str]:
    """Mechanisms that take logistic regression on this dataset."""
    found = []
    for name in dpviz.list_mechanisms():
        try:
            dpviz.RunSpec(dataset=dataset, mechanism=name)
        except InvalidInput:
            continue
        found.append(name)
    return found


@pytest.mark.parametrize("dataset", ["breast-cancer", pytest.param("census-10000", marks=pytest.mark.long)])
def test_cells_do_not_depend_on_what_runs_beside_them(dataset: str) -> None:
    names = takers(dataset)
    assert len(names) > 20
    one, two = (dpviz.sweep(dataset, mechanisms=names, epsilons=[0.3, 1.0], seeds=3, n_jobs=jobs) for jobs in (1, 2))
    pd.testing.assert_frame_equal(one, two, check_exact=True)
