"""Batches against their laws: by Poisson sampling, and by random reshuffling."""

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2
from support import make_problem

from dpviz.common.random import generator, poisson_batches, shuffled_batches, spawn
from dpviz.mechanisms import Training
from dpviz.mechanisms.gradient.dp_sgd import DPSGD
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.budget import Budget

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
