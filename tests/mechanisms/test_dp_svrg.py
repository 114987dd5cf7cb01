"""DP-SVRG: the accounted form against dp_accounting, its sensitivities and noise; what is said of the published form."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp as referee

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.rdp import ORDERS
from dpviz.privacy.budget import Budget, Neighbouring


def build(**params: object) -> dpviz.Mechanism:
    return dpviz.list_mechanisms()["dp-svrg"].from_params({"step_size": 1.0, "clip_norm": 1.0} | params)


def refereed(cal: dpviz.Calibration, built: dpviz.Mechanism, delta: float, worse: float = 1.0) -> float:
    """epsilon of the run under add/remove, by dp_accounting; `worse` shrinks the noise."""
    z1, z2 = (cal.details[f"noise_multiplier_{k}"] / worse for k in ("full", "inner"))
    accountant = referee.RdpAccountant(ORDERS, dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(dp_accounting.GaussianDpEvent(z1), built.rounds)  # type: ignore[attr-defined]
    step = dp_accounting.PoissonSampledDpEvent(built.sampling_rate, dp_accounting.GaussianDpEvent(z2))  # type: ignore[attr-defined]
    accountant.compose(step, built.rounds * built.inner_steps)  # type: ignore[attr-defined]
    return float(accountant.get_epsilon(delta))


@pytest.mark.parametrize("params", [{}, {"rounds": 3, "inner_steps": 50, "sampling_rate": 0.02, "share": 0.2}])
def test_accounted_noise_against_dp_accounting(params: dict[str, object]) -> None:
    epsilon, setting, delta = 1.0, get_model("logistic").setting(39073, 109, 1e-3), 1e-6
    built = build(relation="add-remove", **params)
    cal = built.calibrate(setting, Budget(epsilon, delta))
    # dp_accounting adds up the absolute values of a signed series at fractional orders, and may be a little above
    assert epsilon * (1 - 1e-5) <= refereed(cal, built, delta) <= epsilon * 1.001
    assert refereed(cal, built, delta, worse=1.05) > epsilon * 1.02
    # replace-one is two hops: (eps/2, delta') twice, with delta = (1 + e^(eps/2)) delta'
    built = build(**params)
    cal = built.calibrate(setting, Budget(epsilon, delta))
    assert cal.neighbouring is Neighbouring.REPLACE_ONE
    half = refereed(cal, built, delta / (1 + math.exp(epsilon / 2)))
    assert epsilon / 2 * (1 - 1e-5) <= half <= epsilon / 2 * 1.001


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


def test_a_budget_below_what_the_largest_order_proves_is_refused() -> None:
    setting = get_model("logistic").setting(500, 4, 1e-2)
    for relation in (r.value for r in Neighbouring):
        with pytest.raises(InvalidInput, match="order"):
            build(relation=relation).calibrate(setting, Budget(1e-3, 1e-12))
