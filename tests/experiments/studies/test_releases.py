"""Models at several budgets: trained once, and budgets that cannot be met are named."""

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
