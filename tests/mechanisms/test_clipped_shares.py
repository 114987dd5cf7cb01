"""Shares of clipped gradients against gradients that are taken again at the same iterates."""

import numpy as np
import pytest

import dpviz
from dpviz.common.random import spawn
from dpviz.experiments.run.setup import setup_for
from dpviz.mechanisms import Training, get_mechanism
from dpviz.privacy.budget import Budget

CLIP, STEPS = 0.4, 5
BUDGET = Budget(1.0, 1e-5)


def trained(mechanism: str, record: bool = True, model: str = "logistic", **knobs: object) -> dpviz.mechanisms.Fit:
    spec = dpviz.RunSpec("census-500", mechanism=mechanism, model=model)
    problem, built = setup_for(spec).problem, get_mechanism(mechanism).from_params(knobs)
    calibration = built.calibrate(problem.setting, BUDGET)
    return built.fit(Training(problem, [calibration], spawn(0, 2), record=record))


def shares(path: np.ndarray) -> np.ndarray:
    """(n,) shares of the gradients at (T, m) iterates that are longer than the clip norm, from the formula of the gradient."""
    problem = setup_for(dpviz.RunSpec("census-500", mechanism="dp-gd")).problem
    margins = problem.rows.y * (path @ problem.rows.X.T)
    norms = np.linalg.norm(problem.rows.X, axis=1) / (1 + np.exp(margins))
    return np.asarray((norms > CLIP).mean(axis=0))


def test_dp_sgd_counts_them_in_its_batches() -> None:
    found = trained("dp-sgd", sampling_rate=1.0, epochs=STEPS, clip_norm=CLIP)
    path, clipped = found.record.path, found.record.clipped
    np.testing.assert_allclose(clipped[0], [shares(p) for p in path[0]], atol=1e-6)
    sampled = trained("dp-sgd", sampling_rate=0.1, epochs=1.0, clip_norm=CLIP).record
    assert sampled.visits is not None
    np.testing.assert_array_equal(np.isnan(sampled.clipped), np.broadcast_to(sampled.visits == 0, sampled.clipped.shape))


@pytest.mark.parametrize(
    "mechanism", ["dp-gd", "dp-sgd", "dp-lssgd", "song-sgd", "bassily-sgd", "renyi-filter", "dp-agd", "dp-svrg"]
)
def test_recording_changes_no_model_and_nothing_is_counted_unasked(mechanism: str) -> None:
    knobs = {"clip_norm": CLIP}
    seen, unseen = trained(mechanism, **knobs), trained(mechanism, record=False, **knobs)
    np.testing.assert_array_equal(seen.theta, unseen.theta)
    assert unseen.record.clipped is None
    clipped = seen.record.clipped
    known = clipped[np.isfinite(clipped)]
    assert 0 <= known.min() <= known.max() <= 1
    assert known.max() > 0
