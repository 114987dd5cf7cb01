"""Rules for hyperparameters that are left automatic: they balance noise and training, and see public facts only."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import assert_refused, make_problem

import dpviz
from dpviz.common.random import spawn
from dpviz.experiments.run.run import run_epsilons
from dpviz.mechanisms import Training, get_mechanism, protection, rules
from dpviz.mechanisms.gradient.dp_sgd import DPSGD
from dpviz.models import Setting, get_model
from dpviz.privacy.accounting.gaussian import gaussian_mu
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


def test_noise_moves_the_weights_of_linear_models_by_so_much_and_no_more() -> None:
    nu = 2 * SETTING.G / (SETTING.n * gaussian_mu(Budget(0.05, 1e-5)))  # of noise on the finished model
    assert rules.time_before_release(SETTING, Budget(0.05, 1e-5)) * nu == pytest.approx(0.7)
    weak = Budget(10.0, 1e-5)
    time = rules.training_time(SETTING, 2 * SETTING.G / (SETTING.n * gaussian_mu(weak)))
    assert rules.time_before_release(SETTING, weak, math.inf) == time
    steps, scale = 200, 0.05
    taken = steps * rules.step_size(SETTING, steps, scale) * SETTING.unit_step
    assert taken * scale / math.sqrt(steps) == pytest.approx(2.0)
    assert rules.time_in_noise(SETTING, 0.0) == rules.time_in_noise(SETTING, 1e-12) == 3 / SETTING.lam
    network = get_model("mlp").setting(500, 9, 1e-4)
    assert rules.time_in_noise(network, 1e-3) == rules.training_time(network, 1e-3)


def test_more_noise_means_shorter_steps_within_what_is_stable() -> None:
    sizes = [rules.step_size(SETTING, 200, sigma) for sigma in (0.0, 1e-4, 1e-3, 1e-2, 1e9)]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (1.9, 0.01)
    assert rules.longest_step(get_model("svm").setting(100, 3, 1e-3)) == 4.0


def test_strong_regularisation_and_large_tables_take_fewer_steps() -> None:
    assert rules.full_steps(SETTING) == 200
    assert rules.full_steps(get_model("logistic").setting(39_073, 108, 0.1)) == math.ceil(30 * 0.35 / 1.9)
    assert rules.full_steps(get_model("logistic").setting(400_000, 120, 1e-3)) == 50
    assert rules.full_steps(get_model("mlp").setting(400_000, 120, 1e-3)) == 200
    for model, n, expected in (("logistic", 400_000, 30), ("mlp", 9_999, 30), ("mlp", 10_000, 100)):
        assert rules.splits(get_model(model).setting(n, 120, 1e-3)) == expected


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
        settled = method.settle(setting, budget)
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
    """What is shown beside a knob: for a budget what its calibration says, without one a value that no noise lowers."""
    cls, setting = dpviz.list_mechanisms()[name], get_model("logistic").setting(4000, 20, 1e-2)
    for knob in (k for k, declared in cls.knobs().items() if declared.automatic):
        shown = {e: cls().value(knob, setting, Budget(e, 1e-5)) for e in (0.1, 30.0)}
        for epsilon, value in shown.items():
            details = cls().calibrate(setting, Budget(epsilon, 1e-5)).details
            assert knob not in details or details[knob] == value
        if knob == "step_size":
            assert shown[0.1] <= shown[30.0] <= cls().value(knob, setting)


def test_lambda_balances_bias_and_what_noise_loses() -> None:
    """The rule is the smallest point of its sum, found here on a grid, up to rounding to 1, 2 or 5 times a power of ten."""
    lams = np.geomspace(1e-7, 1, 100_001)
    setting = get_model("logistic").setting(20_000, 100, 1e-7)
    bias = lams * 20**2 / 2
    in_objective = bias + 500.0**2 / (2 * setting.n**2 * lams)
    found = rules.against_objective_noise(setting, 500.0)
    assert abs(math.log(found / lams[in_objective.argmin()])) <= math.log(2.5) / 2 + 1e-3
    assert rules.regularisation(20_000, 5) == 5e-7
    assert [rules.regularisation(20_000, d) for d in (40, 100)] == [2e-6, 2e-6], "1/(30 n): no shorter weights for more features"
    assert rules.against_objective_noise(get_model("logistic").setting(20_000, 100, 0.05), 50.0) == 0.05, "never below that"


def test_curvature_that_holds_noise_back_needs_less_lambda() -> None:
    """Smallest point of (lambda^2 r + s)/(h + lambda)^2, for h = beta/(10 d), r = R^2/d and s = |b|^2/(d n^2), on a grid."""
    setting, lams = get_model("logistic").setting(20_000, 20, 1e-8), np.geomspace(1e-8, 1e-2, 100_001)
    h = 0.25 / 200
    for length in (20.0, 50.0, 200.0):
        lost = (lams**2 * 20**2 / 20 + length**2 / (20 * setting.n**2)) / (h + lams) ** 2
        found = rules.against_objective_noise(setting, length)
        assert abs(math.log(found / lams[lost.argmin()])) <= math.log(2.5) / 2 + 1e-3
        assert found < length / (setting.n * 20)


def test_what_curvature_may_cost_grows_with_rows_and_budget() -> None:
    """In proportion to the smallest point of what noise and the least regularisation lose, found on a grid, between both ends."""
    built, shares = dpviz.list_mechanisms()["objective-tight"](), np.geomspace(1e-3, 1, 100_001)

    def smallest(n: int, epsilon: float) -> float:
        # 2 s |b|^2/(2 n^2 h) + beta R^2/(2 n s epsilon) with h = beta/(10 d), R = 20, d = 20 and |b| = 40/epsilon
        lost = shares * (40 / epsilon / n) ** 2 / (0.25 / 200) + 0.25 * 20**2 / (2 * n * epsilon * shares)
        return float(shares[lost.argmin()])

    for n, epsilon, share in (
        (100, 1.0, 0.1),
        (10_000, 0.1, 0.1),
        (10_000, 1.0, 100 / 750),
        (5000, 4.0, 2**0.5 * 100 / 750),
        (10**6, 1.0, 0.2),
    ):
        setting, budget = get_model("logistic").setting(n, 20, 1e-9), Budget(epsilon, 1e-7)
        assert built.value("curvature_share", setting, budget) == pytest.approx(share)
        assert built.calibrate(setting, budget).details["J"] == pytest.approx(share * epsilon)
        # for a person of four rows each row has a quarter of epsilon
        four = protection.calibrate(built, replace(setting, person_rows=4), Budget(4 * epsilon, 1e-7)).for_row()
        assert four.details["J"] == pytest.approx(share * epsilon)
        if 0.1 < share < 0.2:
            assert share / (100 / 750) == pytest.approx(smallest(n, epsilon) / smallest(10_000, 1.0), rel=1e-3)
    assert built.value("curvature_share", get_model("logistic").setting(10**6, 20, 1e-9)) == 0.1, "before a budget is known"


def test_curvature_costs_cms_objective_a_tenth_of_epsilon_where_noise_asks_for_less_lambda() -> None:
    """The least lambda on a grid with ln(1 + beta/(n lambda)) <= epsilon/10, up to rounding; many features need more."""
    n, lams, built = 500, np.geomspace(1e-6, 0.1, 100_001), dpviz.list_mechanisms()["cms-objective"]()
    few, many = (get_model("logistic").setting(n, d, rules.regularisation(n, d)) for d in (5, 400))
    for epsilon in (3.0, 10.0):
        wanted = lams[np.log1p(0.25 / (n * lams)) <= epsilon / 10].min()
        found = built.automatic_lam(few, Budget(epsilon))
        assert abs(math.log(found / wanted)) <= math.log(2.5) / 2 + 1e-3
        assert built.automatic_lam(many, Budget(epsilon)) > 3 * found
        # for a person of four rows each row has a quarter of epsilon
        assert protection.automatic_lam(built, replace(few, person_rows=4), Budget(4 * epsilon)) == found
        # the published count has two terms
        wanted = lams[2 * np.log1p(0.25 / (n * lams)) <= rules.curvature_share(few, epsilon, 2) * epsilon].min()
        found = type(built)(slack="published").automatic_lam(few, Budget(epsilon))
        assert abs(math.log(found / wanted)) <= math.log(2.5) / 2 + 1e-3


@pytest.mark.parametrize("name", ["objective-tight", "cms-objective", "output-gaussian", "cms-output", "fukuchi-input"])
def test_lambda_falls_as_the_budget_grows_and_is_that_of_the_non_private_model_at_last(name: str) -> None:
    runs = [dpviz.resolve(dpviz.RunSpec("census-2000", mechanism=name, epsilon=e)) for e in (0.1, 1.0, 10.0, 1e6)]
    lams = [run.lam for run in runs]
    assert lams == sorted(lams, reverse=True)
    assert lams[0] > 10 * lams[-1]
    assert lams[-1] == runs[0].base_lam == rules.regularisation(1600, 27)
    assert dpviz.resolve(dpviz.RunSpec("census-2000", mechanism="dp-gd", epsilon=0.1)).lam == runs[0].base_lam


def test_an_automatic_lambda_is_the_same_as_that_value_set_by_hand() -> None:
    """The released model is; the non-private one that it is compared with has the lambda that no noise asks for."""
    spec = dpviz.RunSpec("teaching", mechanism="objective-tight", epsilon=0.5, seeds=2)
    run = dpviz.run(spec)
    by_hand = dpviz.run(dpviz.RunSpec("teaching", mechanism="objective-tight", epsilon=0.5, seeds=2, lam=dpviz.resolve(spec).lam))
    np.testing.assert_array_equal(run.theta, by_hand.theta)
    assert np.linalg.norm(run.non_private.theta) > np.linalg.norm(by_hand.non_private.theta)  # type: ignore[arg-type]


def test_a_lambda_of_each_budget_trains_the_same_models_together_and_alone() -> None:
    spec = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=3)
    together = run_epsilons(spec, [0.1, 10.0, 1.0, 10.5])
    assert len({run.setup.problem.lam for run in together}) == 3
    for run in together:
        alone = dpviz.run(run.spec)
        np.testing.assert_allclose(run.theta, alone.theta, rtol=1e-9)
        np.testing.assert_array_equal(run.non_private.theta, together[0].non_private.theta)  # type: ignore[arg-type]


def test_the_clip_norm_is_the_slope_of_the_loss_at_zero() -> None:
    """Where every row's gradient is just as long, so that no row pays for noise that another one's gradient asks for."""
    for model, norm in (("logistic", 0.5), ("svm", 1.0), ("mlp", 1.0)):
        setting = get_model(model).setting(4000, 20, 1e-3)
        assert rules.clip_norm(setting) == norm
        for name in ("dp-gd", "dp-sgd", "dp-lssgd", "bassily-sgd", "dp-svrg", "dp-agd", "song-sgd"):
            built = dpviz.list_mechanisms()[name]()
            if built.refusal(setting) is None:
                assert built.value("clip_norm", setting) == norm
                own = dpviz.list_mechanisms()[name].from_params({"clip_norm": 0.3})
                assert own.value("clip_norm", setting) == 0.3
    assert dpviz.list_mechanisms()["renyi-filter"]().clip_norm == 1.0, "its rows pay by the length of their own gradients"
    searching = dpviz.list_mechanisms()["dp-agd"]()
    norms = [searching.value("clip_norm", get_model("logistic").setting(n, 20, 1e-3)) for n in (9_999, 10_000)]
    assert norms == [0.5, 1.0]


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


@pytest.mark.parametrize("share", [0.5, 1 / 3**0.5, 0.7])
def test_the_longest_step_on_a_clipped_loss_contracts_on_rows_of_one_line(share: float) -> None:
    """Descent in one dimension, a share of the labels +1, from near the minimum; with steps a third longer it runs off."""
    setting = get_model("logistic").setting(1000, 1, 1e-9)
    assert rules.longest_step(setting, 0.5) == 3.7
    assert rules.longest_step(setting, 0.51) == rules.longest_step(setting) == 1.9

    def gap(step: float) -> float:
        theta, best = 0.01 + math.log(2 * share / (1 - share) - 1), math.log(2 * share / (1 - share) - 1)
        for _ in range(300):
            slopes = np.minimum(0.5, 1 / (1 + np.exp([theta, -theta])))
            theta += step / 0.25 * (share * slopes[0] - (1 - share) * slopes[1])
        return abs(theta - best)

    assert gap(3.7) < 1e-3
    assert gap(3.7 * 4 / 3) > 1


def test_networks_of_many_rows_take_the_steps_that_their_training_time_asks_for() -> None:
    """At the least number of rows that counts as many, as many steps of the longest length as 20 epochs of these batches are."""
    few, many = (get_model("mlp").setting(n, 20, 1e-5) for n in (9_999, 10_000))
    assert [rules.sampling_rate(one) for one in (few, many, SETTING)] == [0.1, 0.02, 0.1]
    steps = rules.training_time(many, 2 / (many.n * gaussian_mu(Budget(10.0, 1e-5)))) / many.unit_step
    built = get_mechanism("dp-sgd")()
    assert [built.step_count(one) for one in (few, many)] == [200, 1000]  # type: ignore[attr-defined]
    assert steps == pytest.approx(1000, rel=0.15)


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
        assert ruled.released_event(problem.setting, cal) == typed.released_event(problem.setting, cal)
        fits = [one.fit(Training(problem, [cal, cal.noiseless()], spawn(0, 2))) for one in (ruled, typed)]
        np.testing.assert_array_equal(fits[0].theta, fits[1].theta)
        own = [one.individual(problem, cal, fits[0].theta[0], fits[0].record.select(0)) for one in (ruled, typed)]
        assert own[0] is not None
        assert own[1] is not None
        np.testing.assert_array_equal(own[0].epsilon, own[1].epsilon)
    other = ruled.calibrate(neighbours[119 - n].setting, Budget(1.0, 1e-5))
    assert_refused(ruled.fit, Training(neighbours[n], [cal, other], spawn(0, 1)), match=r"different sampling rates: 0\.02, 0\.1")


#: rows, features and epsilon, for noise in the objective and on the model
OBJECTIVES = ("objective-tight", "kst-objective", "amp"), ((300, 20, 1.0), (30_000, 100, 3.0), (30_000, 100, 10.0))
MODELS = ("output-gaussian", "cms-output", "bolt-on-psgd"), ((300, 3, 1.0), (3000, 50, 1.0), (30_000, 100, 10.0))


@pytest.mark.parametrize(("name", "cases"), [(name, cases) for names, cases in (OBJECTIVES, MODELS) for name in names])
def test_lambda_is_the_least_that_is_enough_for_its_own_noise(name: str, cases: tuple[tuple[int, int, float], ...]) -> None:
    built = dpviz.list_mechanisms()[name]()
    for n, d, epsilon in cases:
        setting, budget = get_model("logistic").setting(n, d, rules.regularisation(n, d)), Budget(epsilon, 1e-7)

        def enough(lam: float, setting: Setting = setting, budget: Budget = budget) -> bool:
            length = built.calibrate(replace(setting, lam=lam), budget).rms_noise(setting.m)
            if cases is OBJECTIVES[1]:
                return rules.against_objective_noise(replace(setting, lam=1e-9), length) <= lam
            return length / math.sqrt(setting.m) <= 0.5

        lam = built.automatic_lam(setting, budget)
        assert enough(lam)
        assert not any(enough(less) for less in rules.LAMS if setting.lam <= less < lam)
        if cases is MODELS[1]:
            assert built.automatic_lam(setting, Budget(1e-5, 1e-7)) == 1.0, "the largest that the sidebar offers"
            assert built.automatic_lam(setting, Budget(1e8, 1e-7)) == setting.lam
    if name == "bolt-on-psgd":  # the other rules' noise does not fall with lambda
        assert get_mechanism(name)(rule="convex-sqrt").automatic_lam(setting, Budget(0.1, 1e-7)) == setting.lam  # type: ignore[call-arg]
