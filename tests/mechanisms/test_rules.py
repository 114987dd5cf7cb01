"""Rules for hyperparameters that are left automatic: they balance noise and training, and see public facts only."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import make_problem

import dpviz
from dpviz.common.random import spawn
from dpviz.experiments.run.run import run_epsilons
from dpviz.mechanisms import Training, rules
from dpviz.mechanisms.gradient.dp_sgd import DPSGD
from dpviz.models import get_model
from dpviz.privacy.budget import Budget

SETTING = get_model("logistic").setting(39_073, 108, 1e-3)


def test_the_training_time_balances_both_losses() -> None:
    """The time is the smallest point of R^2/(2s) + beta s^2 nu^2/2, found here on a grid."""
    nu = 2e-4
    times = np.geomspace(1, 1e5, 200_001)
    lost = 20**2 / (2 * times) + 0.25 * times**2 * nu**2 / 2
    assert rules.training_time(SETTING, nu) == pytest.approx(times[lost.argmin()], rel=1e-3)
    assert rules.training_time(SETTING, 0.0) == 3 / SETTING.lam
    assert rules.training_time(SETTING, 1e-12) == 3 / SETTING.lam


@pytest.mark.parametrize("model", ["logistic", "svm"])
@pytest.mark.parametrize("name", ["nsgd", "rsgd", "rsgd-ar"])
def test_batches_are_as_small_as_the_training_time_needs(name: str, model: str) -> None:
    """Noise of an output method depends on time alone: 20 epochs of small batches cost what 200 of large ones would.

    Smaller budgets take as many, shorter steps.
    """
    setting = get_model(model).setting(16_000, 27, 1e-3)
    method = dpviz.list_mechanisms()[name].from_params({})
    k = 16_000 // method.value("batch_size", setting)
    taken = method._time(setting, 20)[-1] * k  # type: ignore[attr-defined]
    wanted = rules.time_before_release(setting, steps=math.inf)
    assert wanted <= taken < 1.2 * wanted
    for epsilon in (0.1, 1.0, 10.0):
        budget = Budget(epsilon, 1e-5)
        settled = method.settled(setting, budget)
        assert settled.batches(setting)[0] == k  # type: ignore[attr-defined]
        shorter = settled._time(setting, 20)[-1] * k  # type: ignore[attr-defined]
        assert shorter == pytest.approx(rules.time_before_release(setting, budget, math.inf), rel=1e-9)
    by_hand = dpviz.list_mechanisms()[name].from_params({"batch_size": 1000})
    assert 20 < by_hand.value("epochs", setting) <= 200


@pytest.mark.parametrize(("name", "counted"), [("song-sgd", "batches"), ("outpert-gd", "steps")])
def test_less_noise_leaves_time_for_more_steps(name: str, counted: str) -> None:
    """Budgets with different numbers of steps are trained together, and each as if it were alone."""
    specs = [dpviz.RunSpec("teaching", mechanism=name, seeds=2, epsilon=e) for e in (0.1, 10.0)]
    alone = [dpviz.run(spec) for spec in specs]
    few, many = (run.calibration.details[counted] for run in alone)
    assert many > 2 * few
    together = run_epsilons(specs[0], [0.1, 10.0])
    for one, both in zip(alone, together, strict=True):
        np.testing.assert_allclose(one.theta, both.theta, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "name", [name for name, cls in dpviz.list_mechanisms().items() if any(k.automatic for k in cls.knobs().values())]
)
def test_every_automatic_value_is_the_one_that_is_used(name: str) -> None:
    """What is shown beside a knob: for a budget what its calibration says, without one a value that no noise shortens."""
    cls, setting = dpviz.list_mechanisms()[name], get_model("logistic").setting(4000, 20, 1e-2)
    for knob in (k for k, declared in cls.knobs().items() if declared.automatic):
        shown = {e: cls().value(knob, setting, Budget(e, 1e-5)) for e in (0.1, 30.0)}
        for epsilon, value in shown.items():
            details = cls().calibrate(setting, Budget(epsilon, 1e-5)).details
            assert knob not in details or details[knob] == value
        if knob == "step_size":
            assert shown[0.1] <= shown[30.0] <= cls().value(knob, setting)


def test_lambda_balances_bias_and_what_noise_loses() -> None:
    """Each rule is the smallest point of its sum, found here on a grid, up to rounding to 1, 2 or 5 times a power of ten."""
    lams = np.geomspace(1e-7, 1, 100_001)
    setting = get_model("logistic").setting(20_000, 100, 1e-7)
    bias = lams * 20**2 / 2
    in_objective = bias + 500.0**2 / (2 * setting.n**2 * lams)
    on_output = bias + 0.25 * 3e-3**2 / (2 * lams**2)
    for found, lost in (
        (rules.against_objective_noise(setting, 500.0), in_objective),
        (rules.against_output_noise(setting, 3e-3), on_output),
    ):
        assert abs(math.log(found / lams[lost.argmin()])) <= math.log(2.5) / 2 + 1e-3
    assert rules.regularisation(20_000, 5) == 5e-7
    assert [rules.regularisation(20_000, d) for d in (40, 100)] == [2e-6, 2e-6], "1/(30 n): no shorter weights for more features"
    assert rules.against_objective_noise(get_model("logistic").setting(20_000, 100, 0.05), 50.0) == 0.05, "never below that"


@pytest.mark.parametrize("name", ["objective-tight", "cms-objective", "output-gaussian", "cms-output", "fukuchi-input"])
def test_lambda_falls_as_the_budget_grows_and_is_that_of_the_non_private_model_at_last(name: str) -> None:
    runs = [dpviz.resolve(dpviz.RunSpec("census-2000", mechanism=name, epsilon=e)) for e in (0.1, 1.0, 10.0, 1e6)]
    lams = [run.lam for run in runs]
    assert lams == sorted(lams, reverse=True)
    assert lams[0] > 10 * lams[-1]
    assert lams[-1] == runs[0].base_lam == rules.regularisation(1600, 27)
    assert dpviz.resolve(dpviz.RunSpec("census-2000", mechanism="dp-gd", epsilon=0.1)).lam == runs[0].base_lam


def test_a_lambda_of_each_budget_trains_the_same_models_together_and_alone() -> None:
    spec = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=3)
    together = run_epsilons(spec, [0.1, 10.0, 1.0, 10.5])
    assert len({run.setup.problem.lam for run in together}) == 3
    for run in together:
        alone = dpviz.run(run.spec)
        np.testing.assert_allclose(run.theta, alone.theta, rtol=1e-9)
        np.testing.assert_array_equal(run.non_private.theta, together[0].non_private.theta)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "mechanism", ["dp-gd", "dp-sgd", "dp-lssgd", "bassily-sgd", "bassily-sgd faithful", "dp-svrg", "dp-agd", "song-sgd"]
)
def test_training_clips_at_the_norm_that_the_noise_was_calibrated_for(mechanism: str) -> None:
    """Without noise and with the same steps, models differ by what is clipped alone."""
    name, _, mode = mechanism.partition(" ")
    problem, cls = make_problem(n=60, lam=1e-3), dpviz.list_mechanisms()[name]
    steps: dict[str, Any] = {"mode": mode} if mode else {}
    steps |= {name: value for name, value in (("step_size", 1.0), ("rule", "strongly-convex")) if name in cls.knobs()}

    def trained(**params: float) -> np.ndarray:
        built = cls.from_params(steps | params)
        calibration = built.calibrate(problem.setting, Budget(20.0, 1e-5)).noiseless()
        return built.fit(Training(problem, [calibration], spawn(3, 2), record=False)).theta

    np.testing.assert_array_equal(trained(), trained(clip_norm=0.5))
    assert not np.allclose(trained(), trained(clip_norm=0.4), rtol=1e-3)


@pytest.mark.parametrize(("n", "rate"), [(60, 0.02), (59, 0.1)])
def test_batches_are_drawn_at_the_rate_that_the_noise_was_computed_for(
    n: int, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a row more or less would be another rate by the rule: as if the rate had been set."""
    monkeypatch.setattr(rules, "_MANY_ROWS", 60)
    neighbours = {k: replace(make_problem(n=k, d=3), model=get_model("mlp")) for k in (59, 60)}
    ruled, typed = (DPSGD.from_params({"epochs": 2.0, "step_size": 0.5} | own) for own in ({}, {"sampling_rate": rate}))
    assert isinstance(ruled, DPSGD)
    assert isinstance(typed, DPSGD)
    cal = ruled.calibrate(neighbours[n].setting, Budget(1.0, 1e-5))
    assert cal == typed.calibrate(neighbours[n].setting, Budget(1.0, 1e-5))
    assert (cal.details["sampling_rate"], cal.details["steps"]) == (rate, round(2 / rate))
    for problem in neighbours.values():
        assert ruled.released(problem.setting, cal) == typed.released(problem.setting, cal)
        fits = [one.fit(Training(problem, [cal, cal.noiseless()], spawn(0, 2))) for one in (ruled, typed)]
        np.testing.assert_array_equal(fits[0].theta, fits[1].theta)
        own = [one.individual(problem, cal, fits[0].theta[0], fits[0].record.at(0)) for one in (ruled, typed)]
        assert own[0] is not None
        assert own[1] is not None
        np.testing.assert_array_equal(own[0].epsilon, own[1].epsilon)
    other = ruled.calibrate(neighbours[119 - n].setting, Budget(1.0, 1e-5))
    with pytest.raises(dpviz.InvalidInput, match=r"different sampling rates: 0\.02, 0\.1"):
        ruled.fit(Training(neighbours[n], [cal, other], spawn(0, 1)))
