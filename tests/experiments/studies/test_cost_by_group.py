"""Who pays: every column recomputed from the released models."""

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.dashboard.groups.cost_by_group import sentence
from dpviz.experiments.studies.cost_by_group import CLIPPED, HARD, SMALL, GroupCosts, cost_by_group
from dpviz.experiments.studies.groups import Grouping

SPEC = dpviz.RunSpec("census-500", mechanism="dp-gd", seeds=3, epsilon=0.3, params={"clip_norm": 1.0})


def test_every_column_is_what_the_released_models_say() -> None:
    found = cost_by_group(SPEC, Grouping("region"))
    table = found.table.set_index("group")
    result = dpviz.run(SPEC)
    data, train = result.setup.dataset, result.setup.split.train
    group, y = data.frame["region"].astype(str).to_numpy()[train], data.y[train]
    before = result.non_private.theta @ data.X[train].T >= 0
    after = result.theta @ data.X[train].T >= 0
    norms = dpviz.influence_of(result.setup.problem).newton_norm
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
    assert (table["clipped"] == 0).all(), "no gradient is longer than the clip norm"
    counts = table["rows"].to_numpy()
    right = np.array([[(a == (y > 0))[group == name].mean() for name in table.index] for a in after])
    np.testing.assert_allclose(found.lost, table["non_private_right"].to_numpy() - right)
    difference = found.lost[:, counts.argmin()] - found.lost[:, counts.argmax()]
    assert found.more == pytest.approx(difference.mean())
    assert found.error == pytest.approx(difference.std(ddof=1) / 3**0.5)


def test_methods_that_put_noise_on_rows_have_it_per_group() -> None:
    table = cost_by_group(dpviz.RunSpec("teaching", mechanism="dbdp", seeds=2), Grouping("kind")).table
    assert (table["times_noised"] >= 0).all()
    assert table["clipped"].isna().all(), "nothing is clipped by this method"


def made(rows: tuple[int, int], right: tuple[float, float], lost: np.ndarray, clipped: tuple[float, float]) -> GroupCosts:
    shares = tuple(count / sum(rows) for count in rows)
    columns = {
        "group": ("a", "b"),
        "rows": rows,
        "share": shares,
        "non_private_right": right,
        "lost": lost.mean(axis=0),
        "clipped": clipped,
    }
    return GroupCosts(pd.DataFrame(columns), lost)


def test_the_reasons_are_those_that_hold_and_noise_decides_nothing() -> None:
    lost = np.array([[0.1, 0.02], [0.12, 0.01], [0.11, 0.03]])
    found = made((100, 900), (0.6, 0.8), lost, (0.5, 0.2))
    assert found.certain
    assert found.more > 0
    assert found.reasons == (SMALL, HARD, CLIPPED)
    assert made((500, 510), (0.8, 0.79), lost, (np.nan, np.nan)).reasons == ()
    assert not made((100, 900), (0.6, 0.8), lost * [[1, 1], [-1, 1], [1, 1]], (0.5, 0.2)).certain
    assert np.isnan(made((100, 900), (0.6, 0.8), lost[:1], (0.5, 0.2)).error)


@pytest.mark.parametrize(("factor", "answer"), [(1, "Yes"), (-1, "No: “a” gains")])
def test_the_answer_has_the_sign_of_the_difference(factor: int, answer: str) -> None:
    lost = factor * np.array([[0.1, 0.02], [0.12, 0.01], [0.11, 0.03]])
    assert answer in sentence(made((100, 900), (0.6, 0.8), lost, (0.5, 0.2)))
