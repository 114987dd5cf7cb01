"""Training step by step: the iterates are those of the run itself."""

import numpy as np

import dpviz
from dpviz.experiments.run.trajectory import trajectory

SPEC = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=3, epsilon=0.5, params={"steps": 12, "step_size": 1.0})


def test_the_last_iterate_is_the_run_and_the_first_its_start() -> None:
    found = trajectory(SPEC, frames=6)
    assert found.steps[0] == 0
    assert found.steps[-1] == found.total == 12
    assert len(found.steps) <= 6
    made = dpviz.run(SPEC)
    np.testing.assert_allclose(found.theta[-1], made.theta, rtol=1e-12)
    np.testing.assert_allclose(found.accuracy[-1], made.accuracy)
    np.testing.assert_allclose(found.objective[-1], made.objective, rtol=1e-12)
    assert not found.theta[0].any()
    for metric in ("roc-auc", "recall-at-precision=0.7"):
        np.testing.assert_allclose(found.measured(metric)[-1], made.metrics_in([metric]).to_numpy()[:, 0])


def test_methods_that_release_only_their_last_model_have_none() -> None:
    assert trajectory(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)) is None
