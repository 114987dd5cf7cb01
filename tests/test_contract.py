"""What every mechanism must keep, whatever it does. A new file in dpviz/mechanisms is tested without an edit here."""

import itertools
import math
import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from support import ONE_OF_EACH_FAMILY, Cancelled, assert_refused, cancel, cases, make_problem, neighbour, options

import dpviz
from dpviz.common.random import spawn
from dpviz.mechanisms import Calibration, Mechanism, ProtectsQuery, Training
from dpviz.mechanisms.base import FAMILIES
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.privacy.noise import GAUSSIAN

ALL = dpviz.list_mechanisms()
SPEC_FIELDS = {f.name for f in fields(dpviz.RunSpec)}

each = pytest.mark.parametrize("cls", ALL.values(), ids=ALL)
#: every mechanism on one model, and one of each family on the others, whose numbers `test_kept_numbers.py` compares
each_model = pytest.mark.parametrize(
    ("cls", "model_id"),
    [
        pytest.param(cls, model, id=f"{model}-{name}")
        for model in dpviz.list_models()
        for name, cls in ALL.items()
        if cls.refusal(make_problem(model=model).setting) is None and (model == "logistic" or name in ONE_OF_EACH_FAMILY)
    ],
)


def calibrated(cls: type[Mechanism], problem: Problem, *epsilons: float) -> tuple[Mechanism, list[Calibration]]:
    built = cls()
    return built, [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in epsilons]


@each
def test_declares_itself(cls: type[Mechanism]) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cls.id)
    assert cls.family in FAMILIES
    for words in (cls.label, cls.citation, cls.noise_enters, cls.guarantee, cls.__doc__):
        assert words
        assert len(words.strip()) >= 5
    assert isinstance(cls.neighbouring, Neighbouring)
    for name, declared in cls.knobs().items():
        assert name not in SPEC_FIELDS
        assert declared.label
        assert declared.help
        default = cls.defaults()[name]
        assert declared.check(name, default) == default
        assert declared.parse(name, declared.text(default)) == default
        tried = declared.candidates(default, 7)
        assert default in tried or declared.automatic
        assert [declared.check(name, value) for value in tried] == list(tried)


@each_model
def test_constructs_runs_and_repeats_bit_by_bit(cls: type[Mechanism], model_id: str) -> None:
    spec = dpviz.RunSpec(dataset="teaching", model=model_id, mechanism=cls.id, seeds=2)
    first, second = dpviz.run(spec), dpviz.run(spec)
    assert first.theta.shape[0] == 2
    assert np.isfinite(first.theta).all()
    assert np.array_equal(first.theta, second.theta)
    assert np.all((first.accuracy >= 0) & (first.accuracy <= 1))
    assert np.all(first.optimality_gap >= -1e-9)
    other = dpviz.run(dpviz.RunSpec(dataset="teaching", model=model_id, mechanism=cls.id, seeds=2, seed=1))
    if first.calibration.noise_scale > 0:
        assert not np.array_equal(first.theta, other.theta)


def test_the_network_is_refused_by_exactly_those_who_need_a_convex_or_linear_model() -> None:
    setting = make_problem(model="mlp").setting
    for cls in ALL.values():
        reason = cls.refusal(setting)
        assert (reason is not None) == (cls.needs_strong_convexity or cls.needs_linear), cls.id
        if reason is not None:
            assert_refused(
                dpviz.resolve,
                dpviz.RunSpec(model="mlp", mechanism=cls.id),
                match="strongly convex" if cls.needs_strong_convexity else "linear models only",
            )


@each_model
def test_calibration_is_complete(cls: type[Mechanism], model_id: str) -> None:
    _, (cal,) = calibrated(cls, make_problem(n=400, model=model_id), 1.0)
    for words in (cal.query, cal.sensitivity_source, cal.noise_family.name, cal.accountant):
        assert words
    assert math.isfinite(cal.noise_scale)
    assert cal.noise_scale >= 0
    if cal.status is Status.PROVED:
        assert cal.proved_budget is not None
        assert math.isfinite(cal.sensitivity)
    if cal.status is Status.PROVED_IF:
        assert cal.conditions
    if cal.proved_budget is None and cal.status is not Status.NONE:
        assert cal.notes, "where nothing is proved the reason stands in words"
    if cal.status is Status.NONE:
        assert cal.proved_budget is None
    if cal.noise_family == GAUSSIAN:
        assert all(b is None or b.delta > 0 for b in (cal.claimed_budget, cal.proved_budget)), "sold as pure"


@each_model
def test_noise_falls_as_epsilon_grows(cls: type[Mechanism], model_id: str) -> None:
    problem, budgets = make_problem(n=400, model=model_id), [Budget(e, 1e-5) for e in (0.1, 0.5, 1.0, 3.0, 10.0)]
    built = cls().settle(problem.setting, budgets[2])  # an automatic batch may fall with the noise
    cals = [built.calibrate(problem.setting, budget) for budget in budgets]
    noise = [c.noise_scale for c in cals]
    if noise[0] == 0:
        assert cals[0].proved_budget is None
        return
    assert all(a > b for a, b in itertools.pairwise(noise)), noise


@each_model
def test_large_epsilon_approaches_the_noiseless_run(cls: type[Mechanism], model_id: str) -> None:
    problem = make_problem(n=400, model=model_id)
    built, cals = calibrated(cls, problem, 1e5)
    streams = spawn(3, 2)
    noisy = built.fit(Training(problem, cals, streams)).theta
    clean = built.fit(Training(problem, [c.noiseless() for c in cals], streams)).theta
    if problem.model.convex:
        assert np.linalg.norm(noisy - clean) <= 0.05 * (1 + np.linalg.norm(clean))
    else:  # long steps take a network elsewhere after any nudge, to a place that is as good
        assert np.abs(problem.objective(noisy[0]) - problem.objective(clean[0])).max() <= 0.005


@each
def test_replicas_do_not_depend_on_their_company(cls: type[Mechanism]) -> None:
    problem = make_problem(n=60)
    built, cals = calibrated(cls, problem, 0.5, 2.0)
    streams = spawn(5, 3)
    together = built.fit(Training(problem, cals, streams)).theta
    for e, s in ((0, 1), (1, 2)):
        alone = built.fit(Training(problem, [cals[e]], [streams[s]])).theta
        np.testing.assert_allclose(together[e, s], alone[0, 0], rtol=1e-4, atol=1e-6)


@each
def test_training_ends_when_its_monitor_raises(cls: type[Mechanism]) -> None:
    problem = make_problem(n=60)
    built, cals = calibrated(cls, problem, 1.0)
    noise = built.fit(Training(problem, cals, spawn(0, 2))).distribution
    if cls.family != "reference" and not (noise is not None and np.array_equal(noise.centre, problem.optimum)):
        with pytest.raises(Cancelled):
            built.fit(Training(problem, cals, spawn(0, 2), monitor=cancel))


@each
def test_record_covers_every_training_row(cls: type[Mechanism]) -> None:
    result = dpviz.run(dpviz.RunSpec(dataset="teaching", mechanism=cls.id, seeds=2))
    table = result.instances
    assert list(table.index) == list(result.setup.split.train)
    assert str(result.record.where).startswith(str(cls.noise_enters))
    # NaN where a method clips no gradients, has no rule, or counts no visits
    assert np.isfinite(table.drop(columns=["visits", "rule_margin", "clipped"]).to_numpy(float)).all()
    assert (table["times_noised"] >= 0).all()


def bounded_pairs(cls: type[Mechanism], model_id: str, pairs: int) -> tuple[float, np.ndarray]:
    """(declared bound, observed distances) of the protected query over neighbouring pairs with shared randomness."""
    rng = np.random.default_rng(11)
    distances = []
    problem = make_problem(n=30, d=3, lam=0.1, model=model_id)
    built, (cal,) = calibrated(cls, problem, 1.0)
    built = built.settle(problem.setting, cal.budget)
    for k in range(pairs):
        if k % 50 == 0:
            problem = make_problem(n=30, d=3, lam=0.1, model=model_id, seed=k)
        theta = rng.standard_normal((1, problem.m)) * rng.choice([0.1, 1.0, 10.0])
        streams = spawn(k, 1)
        here = built.query(problem, theta, streams)
        there = built.query(neighbour(problem, rng), theta, streams)
        distances.append(float(np.linalg.norm(here - there)))
    return cal.sensitivity, np.array(distances)


@each_model
def test_replayed_neighbours_stay_within_the_declared_sensitivity(cls: type[Mechanism], model_id: str) -> None:
    if not issubclass(cls, ProtectsQuery):
        _, (cal,) = calibrated(cls, make_problem(model=model_id), 1.0)
        assert math.isnan(cal.sensitivity), "a mechanism that declares a sensitivity declares its query too"
        return
    bound, distances = bounded_pairs(cls, model_id, 150)
    assert distances.max() <= bound * (1 + 1e-7)
    # the check can fail: a bound cut as a planted bug would cut it, by the batch or by n, is broken
    assert distances.max() > bound / 10


@pytest.mark.parametrize(("name", "params"), cases(options))
def test_without_delta_a_budget_is_refused_or_met_without_gaussian_noise(name: str, params: dict[str, Any]) -> None:
    try:
        cal = ALL[name].from_params(params).calibrate(make_problem(n=400).setting, Budget(1.0, 0.0))
    except dpviz.InvalidInput:
        return
    assert cal.noise_family != GAUSSIAN or cal.noise_scale == 0
    assert math.isfinite(cal.noise_scale)
