"""Where powers meet: weights, persons, batches, budgets, regularisations and replicas together reach training as was planned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from support import make_problem

from dpviz.common.random import spawn
from dpviz.mechanisms import Mechanism, Training, protection
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.gradient.dp_sgd import DPSGD
from dpviz.models import Rows
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget

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
