"""DP-SVRG: the accounted form against dp_accounting, its sensitivities and noise; what is said of the published form."""

import numpy as np
import pytest
from support import make_problem

import dpviz
from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Training
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, Neighbouring


def build(**params: object) -> dpviz.Mechanism:
    return dpviz.list_mechanisms()["dp-svrg"].from_params({"step_size": 1.0, "clip_norm": 1.0} | params)


@pytest.mark.parametrize("clip", [1.0, 0.3])
def test_a_row_adds_no_more_than_the_inner_noise_is_sized_for(model_id: str, clip: float) -> None:
    built, rng, worst = build(clip_norm=clip), np.random.default_rng(4), 0.0
    for k in range(500):
        direction = rng.standard_normal(3)
        problem = Problem(Rows((direction / np.linalg.norm(direction))[None], np.ones(1)), get_model(model_id), 0.1)
        anchor = rng.standard_normal((1, 3)) * rng.choice([0.5, 3.0])
        x = anchor + (direction if k % 2 else rng.standard_normal(3)) * 10.0 ** rng.uniform(-2, 1.5)
        moved = np.linalg.norm(built._difference(problem, x[None], anchor[None], [np.arange(1)]))  # type: ignore[attr-defined]
        limit = min(2 * clip, problem.setting.beta * float(np.linalg.norm(x - anchor)))
        assert moved <= limit * (1 + 1e-12) + 1e-15
        worst = max(worst, float(moved / limit) if limit > 1e-3 else 0.0)
    assert worst > 0.5  # half the limit is broken


@pytest.mark.parametrize("noise", ["accounted", "published"])
def test_noiseless_run_reaches_the_minimum(model_id: str, noise: str) -> None:
    problem = make_problem(n=100, d=3, lam=0.1, model=model_id)
    built = build(rounds=60, inner_steps=20, step_size=0.5, noise=noise)
    cal = built.calibrate(problem.setting, Budget(1.0, 1e-5)).noiseless()
    theta = built.fit(Training(problem, [cal], spawn(0, 2))).theta[0]
    np.testing.assert_allclose(theta, np.broadcast_to(problem.optimum, theta.shape), atol=2e-3)


def test_visits_count_full_gradients_and_batches() -> None:
    problem = make_problem(n=2000)
    for noise, mean in (("accounted", 4 + 4 * 25 * 0.2), ("published", 4 + 100 / 2000)):
        built = build(rounds=4, inner_steps=25, sampling_rate=0.2, noise=noise)
        visits = built.fit(Training(problem, [built.calibrate(problem.setting, Budget(1.0, 1e-6))], spawn(0, 3))).record.visits
        assert visits.mean() == pytest.approx(mean, rel=0.01)


def test_too_many_steps_are_refused() -> None:
    with pytest.raises(InvalidInput, match="inner_steps"):
        build(rounds=1000, inner_steps=100_000).calibrate(get_model("logistic").setting(1000, 3, 0.1), Budget(1.0, 1e-5))


def test_a_budget_below_what_the_largest_order_proves_is_refused() -> None:
    setting = get_model("logistic").setting(500, 4, 1e-2)
    for relation in (r.value for r in Neighbouring):
        with pytest.raises(InvalidInput, match="order"):
            build(relation=relation).calibrate(setting, Budget(1e-3, 1e-12))
