"""Shares of clipped gradients against gradients that are taken again at the same iterates."""

import numpy as np
import pytest

import dpviz
from dpviz.common.random import spawn
from dpviz.experiments.run.setup import setup_for
from dpviz.mechanisms import Training, get_mechanism
from dpviz.mechanisms.base import NoiseRecord
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


def test_dp_gd_counts_the_gradients_that_were_longer_than_the_clip_norm() -> None:
    found = trained("dp-gd", steps=STEPS, clip_norm=CLIP, step_size=1.0)
    # a shorter run of the same seeds, with the same noise, ends where the longer one takes its next gradient
    sigma = 0.0
    problem, calibrations = setup_for(dpviz.RunSpec("census-500", mechanism="dp-gd")).problem, []
    path = [np.zeros((2, problem.m))]
    for steps in range(1, STEPS):
        built = get_mechanism("dp-gd").from_params({"steps": steps, "clip_norm": CLIP, "step_size": 1.0})
        full = get_mechanism("dp-gd").from_params({"steps": STEPS, "clip_norm": CLIP, "step_size": 1.0})
        calibrations = [full.calibrate(problem.setting, BUDGET)]
        sigma = calibrations[0].noise_scale
        path.append(built.fit(Training(problem, calibrations, spawn(0, 2), record=False)).theta[0])
    assert sigma > 0
    expected = np.stack([shares(np.stack([p[s] for p in path])) for s in range(2)])
    np.testing.assert_allclose(found.record.clipped[0], expected, atol=1e-6)
    assert 0.05 < expected.mean() < 0.95, "the case clips some and not all"


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


def test_a_clip_norm_that_no_gradient_exceeds_clips_none() -> None:
    assert trained("dp-gd", steps=2, clip_norm=1.0).record.clipped.max() == 0  # type: ignore[union-attr]


def test_the_record_of_one_budget_holds_its_own_rows() -> None:
    arrays = {
        "visits": np.arange(6).reshape(1, 2, 3),
        "clipped": np.arange(18.0).reshape(3, 2, 3),
        "timeline": np.arange(9.0).reshape(3, 3),
    }
    record = NoiseRecord("here", **arrays)
    for e in range(3):
        one = record.at(e)
        np.testing.assert_array_equal(one.clipped, arrays["clipped"][e : e + 1])
        np.testing.assert_array_equal(one.timeline, arrays["timeline"][e : e + 1])
        np.testing.assert_array_equal(one.visits, arrays["visits"])  # shared by all budgets
        assert one.passed is None
