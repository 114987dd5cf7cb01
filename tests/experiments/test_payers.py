"""Who pays: every column recomputed from the released models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.experiments.groups import Grouping
from dpviz.experiments.payers import who_pays

SPEC = dpviz.RunSpec("census-500", mechanism="dp-gd", seeds=3, epsilon=0.3)


def test_every_column_is_what_the_released_models_say() -> None:
    table = who_pays(SPEC, Grouping("region")).set_index("group")
    result = dpviz.run(SPEC)
    data, train = result.setup.dataset, result.setup.split.train
    group, y = data.frame["region"].astype(str).to_numpy()[train], data.y[train]
    before = result.non_private.theta @ data.X[train].T >= 0
    after = result.theta @ data.X[train].T >= 0
    norms = dpviz.influence_of(result.setup.problem).newton_norm
    assert result.individual is not None
    columns = {
        "non_private_right": before == (y > 0),
        "private_right": (after == (y > 0)).mean(axis=0),
        "changed": (after != before).mean(axis=0),
        "influence": norms,
        "individual_epsilon": result.individual.epsilon.mean(axis=0),
    }
    for name, values in columns.items():
        expected = pd.Series(values, dtype=float).groupby(group).mean()
        assert table[name].to_dict() == pytest.approx(expected.to_dict()), name
    assert table["rows"].sum() == len(train)
    assert table["share"].sum() == pytest.approx(1)
    assert table["changed"].max() > 0.02, "noise changes predictions in this case"
    np.testing.assert_allclose(table["lost"], table["non_private_right"] - table["private_right"])
    assert table["times_noised"].isna().all(), "DP-GD puts no noise on rows"


def test_methods_that_put_noise_on_rows_have_it_per_group() -> None:
    table = who_pays(dpviz.RunSpec("teaching", mechanism="dbdp", seeds=2), Grouping("kind"))
    assert (table["times_noised"] >= 0).all()
