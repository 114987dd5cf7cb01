"""DP-AGD: published constants, every draw paid for, and both kinds of noise against their exact laws."""

import math

import numpy as np
import pytest
from support import make_problem, neighbour

import dpviz
from dpviz.common.random import generator, spawn, substreams
from dpviz.mechanisms import Training
from dpviz.models import line_losses_of
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget


def build(**params: object) -> dpviz.Mechanism:
    return dpviz.list_mechanisms()["dp-agd"].from_params({"clip_norm": 1.0} | params)


def reference(problem: Problem, cal: dpviz.Calibration, stream: np.random.SeedSequence, knobs: dpviz.Mechanism) -> tuple:
    """One run, written straight from the algorithm: (parameters, steps, payments)."""
    _, noise, choice = (generator(s) if k else s for k, s in enumerate(substreams(stream, 3)))
    rho, price, paid, steps, chosen = cal.details["rho_total"], cal.details["rho_ng"], [], 0, []
    longest = knobs.longest
    v, n, lam, loss = problem.rows.signed, problem.n, problem.lam, problem.model.loss  # type: ignore[attr-defined]
    w = np.zeros(problem.m)

    def can_pay(cost: float) -> bool:
        nonlocal rho
        if rho < cost:
            return False
        rho -= cost
        paid.append(cost)
        return True

    while can_pay(price):
        exact = (loss.slope(v @ w)[:, None] * v).sum(axis=0)
        noisy = exact + 2.0 / math.sqrt(2 * price) * noise.standard_normal(problem.m)
        while True:
            if not can_pay(cal.details["rho_nmax"]):
                return w, steps, paid
            direction = noisy / n + lam * w
            length = np.linalg.norm(direction)
            direction = direction / length
            grid = np.linspace(0, longest, knobs.candidates + 1)
            scores = [
                np.minimum(loss.value(v @ (w - a * direction)), 3.0).sum() + n * lam / 2 * ((w - a * direction) ** 2).sum()
                for a in grid
            ]
            # exponential mechanism: epsilon_n = sqrt(8 rho), sensitivity 3, not monotone
            scale = 2 * 3.0 / math.sqrt(8 * cal.details["rho_nmax"])
            k = int(np.argmin(np.array(scores) - scale * choice.gumbel(size=len(grid))))
            if k > 0:
                w, steps = w - grid[k] * direction, steps + 1
                chosen.append(grid[k])
                if steps % 10 == 0:
                    longest, chosen = min(1.1 * max(chosen), knobs.longest), []
                break
            if knobs.shrink < 1 and length**2 >= 2 * problem.m * (2.0 / math.sqrt(2 * price) / n) ** 2:
                longest *= knobs.shrink
                continue
            if not can_pay(0.1 * price):
                return w, steps, paid
            second = exact + 2.0 / math.sqrt(2 * 0.1 * price) * noise.standard_normal(problem.m)
            noisy, price = (noisy + 0.1 * second) / 1.1, 1.1 * price
    return w, steps, paid


@pytest.mark.parametrize(("epsilon", "longest", "shrink"), [(0.5, 2.0, 0.5), (8.0, 2.0, 1.0), (8.0, 50.0, 0.5)])
def test_replicas_match_a_straight_run(model_id: str, epsilon: float, longest: float, shrink: float) -> None:
    problem = make_problem(n=300, d=3, model=model_id)
    built = build(splits=20, gamma=0.1, candidates=20, longest=longest, shrink=shrink)
    cals = [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in (epsilon, 2.0)]
    fit = built.fit(Training(problem, cals, spawn(3, 3)))
    w, steps, paid = reference(problem, cals[0], spawn(3, 3)[2], built)
    np.testing.assert_allclose(fit.theta[0, 2], w, rtol=1e-5, atol=1e-6)
    assert fit.record.visits[0, 2, 0] == steps
    assert steps >= 10
    assert sum(paid) <= cals[0].details["rho_total"]


def test_scores_of_neighbours_stay_in_the_range_that_is_paid_for(model_id: str) -> None:
    rng, widest = np.random.default_rng(6), 0.0
    for k in range(300):
        problem = make_problem(n=15, d=3, model=model_id, seed=k % 7)
        other = neighbour(problem, rng)
        theta, direction = rng.standard_normal((2, 1, 3)) * rng.choice([1.0, 10.0], size=(2, 1, 1))
        here, there = (line_losses_of(p.model)(theta, direction, np.full(1, 2.0), 21, p.rows, clip=0.7) for p in (problem, other))
        widest = max(widest, float(np.ptp(here - there)))
    assert widest <= 2 * 0.7 * (1 + 1e-5)
    assert widest > 0.7  # the one-sided range of add-remove is not enough for replacements
