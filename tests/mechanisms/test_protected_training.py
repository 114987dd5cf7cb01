"""What is trained is what is accounted for: clipped gradients, batches by their laws, and where powers meet, as planned."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, chi2
from support import assert_refused, make_problem, options

import dpviz
from dpviz.common.random import generator, poisson_batches, shuffled_batches, spawn
from dpviz.mechanisms import DeclaresEvent, Mechanism, ProtectsQuery, Training, protection
from dpviz.mechanisms.gradient.dp_agd import DPAGD, Runs
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.gradient.dp_sgd import DPSGD
from dpviz.mechanisms.output.bolt_on_psgd import BoltOnPSGD
from dpviz.mechanisms.output.permuted_sgd import Permuted
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Step, steps_of
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.budget import Budget

ALL = dpviz.list_mechanisms()
BUDGET = Budget(1.0, 1e-5)
CLIPS = [name for name, cls in ALL.items() if "clip_norm" in cls.knobs()]
#: knobs with which the end of a run depends on the clip norm alone
STEADY: dict[str, dict[str, Any]] = {"bassily-sgd": {"rule": "strongly-convex", "radius": 1000.0}, "dp-gd": {"steps": 3}}
STEADY |= {"dp-svrg": {"rounds": 2, "inner_steps": 3}, "renyi-filter": {"full_steps": 3}}


def end(name: str, params: dict[str, Any], clip: float, n: int) -> np.ndarray:
    """(m,) where training without noise ends on n equal rows, whose gradients are all longer than the clip norm."""
    problem = Problem(Rows(np.tile([1.0, 0.0, 0.0], (n, 1)), np.ones(n)), get_model("logistic"), 0.05)
    knobs = {"sampling_rate": 1.0, "epochs": 3.0, "step_size": 0.5, "batch": n, "clip_norm": clip}
    knobs |= STEADY.get(name, {}) | params
    built = ALL[name].from_params({k: v for k, v in knobs.items() if k in ALL[name].knobs()})
    cal = built.calibrate(problem.setting, BUDGET)
    if isinstance(built, DPAGD):  # its steps have lengths of their own
        runs = Runs(built, problem, [cal.noiseless()], spawn(0, 1))
        runs.measure()
        found: np.ndarray = runs.exact[0] / n
        return found
    return built.fit(Training(problem, [cal.noiseless()], spawn(0, 1))).theta[0, 0]


@pytest.mark.parametrize("name", CLIPS)
def test_every_row_is_clipped_before_rows_are_added(name: str) -> None:
    """Twice the clip norm takes the model twice as far, and twice as many rows no further."""
    for params in options(name):
        if "rule" in params or params.get("relation") == "add-remove":
            continue
        far, near = end(name, params, 0.02, 12), end(name, params, 0.01, 24)
        assert np.linalg.norm(near) > 0
        np.testing.assert_allclose(far, 2 * near, rtol=1e-4, err_msg=str(params))


@pytest.mark.parametrize("clip", [0.02, 1.0, 7.0])
@pytest.mark.parametrize("name", CLIPS)
def test_rows_are_clipped_at_the_clip_norm_itself(name: str, clip: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of the model, in every form: a factor in it would pass the test above."""
    seen: set[float] = set()
    model = type(get_model("logistic"))
    original = model.sum_gradient

    def sum_gradient(self: Any, theta: Any, rows: Any, **more: Any) -> Any:
        seen.add(more.get("clip_norm", np.inf))
        return original(self, theta, rows, **more)

    monkeypatch.setattr(model, "sum_gradient", sum_gradient)
    for params in options(name):
        try:
            end(name, params, clip, 12)
        except dpviz.InvalidInput:
            continue  # this option is refused with such steps
        built = ALL[name].from_params({"clip_norm": clip})
        small = make_problem(n=12)
        if isinstance(built, ProtectsQuery):
            built.query(small, np.zeros((1, small.m)), spawn(0, 1))
    assert seen == {clip}


def drawn(name: str, params: dict[str, Any]) -> tuple[Any, Step] | None:
    """The mechanism, and the step of its event in which a row takes part by chance."""
    built = ALL[name].from_params({"epochs": 5.0} | params if "epochs" in ALL[name].knobs() else params)
    problem = make_problem(n=40)
    if not isinstance(built, DeclaresEvent) or built.refusal(problem.setting):
        return None
    event = built.released_event(problem.setting, built.calibrate(problem.setting, BUDGET))
    chance = [step for step in (() if event is None else steps_of(event)) if step.rate < 1]
    return (built, chance[0]) if chance else None


SAMPLED = ["bassily-sgd", "dp-lssgd", "dp-sgd", "dp-svrg"]


def test_the_sampled_mechanisms_are_among_these() -> None:
    assert [name for name in sorted(ALL) if any(drawn(name, params) for params in options(name))] == SAMPLED


@pytest.mark.parametrize("name", SAMPLED)
def test_rows_are_drawn_as_often_as_the_event_says(name: str) -> None:
    found = drawn(name, {})
    assert found is not None
    built, step = found
    problem = make_problem(n=40)
    cal = built.calibrate(problem.setting, BUDGET)
    visits = built.fit(Training(problem, [cal], spawn(3, 10))).record.visits
    always = built.rounds if name == "dp-svrg" else 0  # full gradients
    times = np.broadcast_to(visits, (1, 10, 40))[0] - always
    trials = step.count * 40 * 10
    assert binomtest(int(times.sum()), trials, step.rate).pvalue > 1e-6
    assert binomtest(round(times.sum() * 1.1), trials, step.rate).pvalue < 1e-6 or trials < 5000
    # a fresh choice in every step: the times of a row are binomial, and no two replicas have the same ones
    spread = float(((times - step.count * step.rate) ** 2).sum() / (step.count * step.rate * (1 - step.rate)))
    assert chi2.ppf(1e-6, times.size) < spread < chi2.isf(1e-6, times.size)
    assert len(np.unique(times, axis=0)) == 10
    assert times.sum(axis=1).var() > 0.1 * trials / 10 * step.rate * (1 - step.rate), "as do the sizes of batches"


@pytest.mark.parametrize("name", [name for name, cls in ALL.items() if issubclass(cls, Permuted | BoltOnPSGD)])
def test_every_replica_has_an_order_of_its_own(name: str) -> None:
    problem = make_problem(n=40)
    built = ALL[name].from_params({"batch_size": 10})
    ends = built.query(problem, np.zeros((1, problem.m)), spawn(4, 6))  # type: ignore[attr-defined]
    assert len(np.unique(ends, axis=0)) == 6


ALPHA = 1e-6


def batch_matrix(rate: float, n: int, draws: int, seed: int) -> np.ndarray:
    draw = poisson_batches(n, rate)(generator(spawn(seed, 1)[0]))
    out = np.zeros((draws, n), bool)
    for t in range(draws):
        index = draw(t)
        assert np.all(np.diff(index) > 0)
        out[t, index] = True
    return out


def p_values(rate: float, included: np.ndarray) -> list[float]:
    """Total count, spread of the batch sizes, spread over rows: two-sided against the Poisson-sampling law."""
    draws, n = included.shape
    total = included.sum()
    count = 2 * min(binom.cdf(total, draws * n, rate), binom.sf(total - 1, draws * n, rate))
    spreads = []
    for axis, trials, groups in ((1, n, draws), (0, draws, n)):
        statistic = ((included.sum(axis) - trials * rate) ** 2 / (trials * rate * (1 - rate))).sum()
        spreads.append(2 * min(chi2.cdf(statistic, groups), chi2.sf(statistic, groups)))
    return [count, *spreads]


@pytest.mark.parametrize("rate", [0.003, 0.02, 0.1, 0.5])
def test_batches_follow_poisson_sampling(rate: float) -> None:
    included = batch_matrix(rate, 1000, 1500, seed=4)
    assert min(p_values(rate, included)) > ALPHA
    # batches are not repeated from one step to the next
    both = (included[:-1] & included[1:]).sum()
    assert 2 * min(binom.cdf(both, included[1:].size, rate**2), binom.sf(both - 1, included[1:].size, rate**2)) > ALPHA


def test_the_batch_test_can_fail() -> None:
    included = batch_matrix(0.1, 1000, 1500, seed=4)
    assert p_values(0.105, included)[0] < ALPHA
    # shuffled batches of a fixed size are not Poisson batches
    fixed = np.zeros((1500, 1000), bool)
    rng = np.random.default_rng(0)
    for row in fixed:
        row[rng.permutation(1000)[:100]] = True
    assert p_values(0.1, fixed)[1] < ALPHA


def test_a_fresh_order_uses_every_row_once_an_epoch_and_orders_are_uniform() -> None:
    edges = np.array([0, 3, 6, 10])
    draw = shuffled_batches(edges)(generator(spawn(3, 1)[0]))
    epochs = [[draw(3 * e + k) for k in range(3)] for e in range(4000)]
    for batches in epochs:
        assert [len(b) for b in batches] == [3, 3, 4]
        assert np.array_equal(np.sort(np.concatenate(batches)), np.arange(10))
    first = np.array([np.isin(np.arange(10), batches[0]) for batches in epochs])
    assert chi2.sf(((first.sum(axis=0) - 1200) ** 2 / (4000 * 0.3 * 0.7)).sum() * 0.9, 9) > ALPHA
    # two rows share the first batch with chance 3/10 x 2/9, and what one epoch drew says nothing about the next
    for together, chance in ((first[:, 0] & first[:, 1], 1 / 15), (first[1:, 0] & first[:-1, 0], 0.09)):
        count = int(together.sum())
        assert min(binom.cdf(count, len(together), chance), binom.sf(count - 1, len(together), chance)) > ALPHA
    # the control: the same order in every epoch
    again = np.tile(first[:1], (4000, 1))
    assert binom.sf(int((again[1:, np.argmax(first[0])] & again[:-1, np.argmax(first[0])]).sum()) - 1, 3999, 0.09) < ALPHA


@pytest.mark.parametrize("epochs", [0.3, 1.4, 1.6, 2.5, 7.0])
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_a_fresh_order_is_paid_for_as_often_as_it_is_gone_through(epochs: float, accountant: str) -> None:
    """Whole epochs: what is trained and what is accounted for are the same number, which is not the one that was asked for."""
    built = DPSGD.from_params({"batches": "reshuffled", "epochs": epochs, "sampling_rate": 0.25, "accountant": accountant})
    problem = make_problem(n=40)
    cal = built.calibrate(problem.setting, Budget(1.0, 1e-5))
    fit = built.fit(Training(problem, [cal], spawn(0, 3)))
    (passes,) = set(np.ravel(fit.record.visits).tolist())
    assert passes == max(1, round(epochs))
    # replacing a row moves one sum of every epoch by 2C; all of them together are a Gaussian of this mu (Dong et al. 2022)
    mu = math.sqrt(passes) * cal.sensitivity / cal.noise_scale
    reached = float(gaussian_epsilon(1e-5, mu))
    assert reached <= 1.0 * (1 + 1e-6)
    if accountant == "pld":
        assert reached == pytest.approx(1.0, rel=1e-6), "exact"
    assert float(gaussian_epsilon(1e-5, math.sqrt(passes + 1) * cal.sensitivity / cal.noise_scale)) > 1.0 or accountant == "rdp"


MOST, STEPS = 4, 3
WHO = np.repeat(np.arange(20), np.arange(20) % MOST + 1)[np.random.default_rng(0).permutation(50)]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Rows that need not have weights, that need not say whose they are, and of which the number may be private."""
    rng, n = np.random.default_rng(draw(st.integers(0, 99))), len(WHO)
    plain = make_problem(n=n, d=3, lam=draw(st.floats(0.01, 1.0)), seed=draw(st.integers(0, 99)))
    weights = draw(st.sampled_from([None, rng.uniform(size=n)]))
    by_class = None if weights is not None else draw(st.sampled_from([None, (1.0, 0.2), (0.3, 1.0)]))
    persons, most = draw(st.sampled_from([(None, 0), (WHO, MOST)]))
    rows = Rows(plain.rows.X, plain.rows.y, most, weights, by_class, persons)
    return Problem(rows, plain.model, plain.lam, draw(st.sampled_from([0, 35])))


@st.composite
def descents(draw: st.DrawFn, problem: Problem, steps: int) -> Mechanism:
    """Every row in every batch."""
    how = {"clip_norm": draw(st.floats(0.05, 1.5)), "step_size": draw(st.floats(0.2, 2.0))}
    if draw(st.booleans()):
        return DPGD(steps=steps, **how)
    batches = draw(st.sampled_from(["poisson", "persons"])) if problem.rows.person_rows else "poisson"
    return DPSGD(sampling_rate=1.0, epochs=float(steps), batches=batches, **how)


def reference(problem: Problem, mechanism: Mechanism, lam: float) -> np.ndarray:
    """Descent on the sum of clipped gradients over the public number of rows, from the formulas alone."""
    rows, theta = problem.rows, np.zeros(problem.m)
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    if mechanism.draws_persons:
        weights = weights / np.bincount(WHO)[WHO]
    z, eta = rows.y[:, None] * rows.X, mechanism.step_size / (lam + 0.25)  # beta = 1/4 of the logistic loss
    for _ in range(STEPS):
        gradients = -z / (1 + np.exp(z @ theta))[:, None]
        gradients *= np.minimum(1, mechanism.clip_norm / np.linalg.norm(gradients, axis=1))[:, None]
        theta = theta - eta * (weights @ gradients / (problem.public_n or len(rows)) + lam * theta)
    return theta


@settings(max_examples=60)
@given(st.data())
def test_training_without_noise_is_descent_on_what_was_calibrated_for(data: st.DataObject) -> None:
    """And several budgets, each at a regularisation of its own, and several replicas are what each is alone."""
    problem = data.draw(problems())
    mechanism, record = data.draw(descents(problem, STEPS)), problem.public_n == 0 and data.draw(st.booleans())
    lams = data.draw(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=3)) if mechanism.joins_lams else [problem.lam]
    each = [Problem(problem.rows, problem.model, lam, problem.public_n) for lam in lams]
    quiet = [protection.calibrate(mechanism, one.setting, Budget(0.7, 1e-5)).noiseless() for one in each]
    fit = mechanism.fit(Training(each[0], quiet, spawn(3, 2), record=record, problems=each))
    for e, lam in enumerate(lams):
        assert fit.theta[e] == pytest.approx(np.tile(reference(problem, mechanism, lam), (2, 1)), rel=2e-4, abs=1e-6)


@settings(max_examples=30)
@given(st.data(), st.lists(st.floats(0.2, 5.0), min_size=2, max_size=3))
def test_noise_is_that_of_each_calibration(data: st.DataObject, epsilons: list[float]) -> None:
    """One step, whose noise over its scale is standard normal and the same at each budget."""
    problem = data.draw(problems())
    mechanism, record = data.draw(descents(problem, 1)), problem.public_n == 0 and data.draw(st.booleans())
    loud = [protection.calibrate(mechanism, problem.setting, Budget(epsilon, 1e-5)) for epsilon in epsilons]
    fit = mechanism.fit(Training(problem, [*loud, loud[0].noiseless()], spawn(5, 400), record=record))
    scales = np.array([cal.for_row().noise_scale for cal in loud])[:, None, None]
    noise = (fit.theta[:-1] - fit.theta[-1]) / (scales * mechanism.step_size / (problem.lam + 0.25))
    assert noise == pytest.approx(np.broadcast_to(noise[:1], noise.shape), abs=1e-3)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], noise[0].size)
    assert low < (noise[0] ** 2).sum() < high


def test_rows_are_recorded_where_their_number_is_the_public_one() -> None:
    problem = make_problem()
    other = replace(problem, public_n=len(problem.rows) - 1)
    calibration = DPGD().calibrate(other.setting, Budget(1.0, 1e-5))
    assert DPGD().fit(Training(other, [calibration], spawn(0, 2), record=False)).theta.shape == (1, 2, problem.m)
    assert_refused(Training, other, [calibration], spawn(0, 2), match=r"record: cannot be kept of .* Pass record=False")
