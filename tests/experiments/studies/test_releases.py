"""Models at several budgets: trained once, and budgets that cannot be met are named."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import dpviz
from dpviz.experiments.studies.releases import releases

SPEC = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)


def test_releases_are_those_of_single_runs_and_are_kept() -> None:
    made = releases(SPEC, (3.0, 0.5))
    assert [release.epsilon for release in made.at] == [0.5, 3.0]
    single = dpviz.run(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2, epsilon=0.5))
    assert made.at[0].theta == pytest.approx(single.theta)
    assert made.at[0].distribution.scale.shape == (1,)
    assert releases(SPEC, (0.5, 3.0)) is made


OTHER = {"lam": 0.3, "seed": 5, "split_seed": 3, "seeds": 3, "model": "svm", "intercept": False, "delta": 1e-7, "folds": 4}
OTHERS = [*({k: v} for k, v in OTHER.items()), {"mechanism": "dp-gd"}, {"mechanism": "dp-gd", "params": {"steps": 3}}]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_another_run_has_releases_of_its_own(other: dict[str, Any]) -> None:
    """In any one field: a key without it would give the models of another run."""
    changed = dataclasses.replace(SPEC, **other)
    before = dataclasses.replace(changed, params={}) if "params" in other else SPEC
    first, second = releases(before, (0.5,)), releases(changed, (0.5,))
    assert second.spec == dataclasses.replace(changed, epsilon=0.5)
    alone = dpviz.run(second.spec)
    assert second.at[0].theta == pytest.approx(alone.theta)
    assert first.at[0].theta.shape != second.at[0].theta.shape or not np.allclose(first.at[0].theta, second.at[0].theta)
