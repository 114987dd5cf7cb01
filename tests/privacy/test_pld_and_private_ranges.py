"""The PLD accountant against a contour integral that puts no loss on a grid: never below it, and within 0.05 % of epsilon.

delta(eps) = E_P[(1 - e^(eps - L))_+] for the sum L of T independent losses, and 1 - e^-y for y > 0 has the Laplace transform
1/(s (s + 1)). With the moment M(s) = E_P[e^(s loss)] of one step, for every c > 0,

    delta(eps) = 1/(2 pi) * integral over t of M(c + it)^T e^(-(c + it) eps) / ((c + it)(c + it + 1)).

c is the saddle point. Both integrals are over analytic functions, where the trapezoidal rule converges exponentially; halving
both steps changes nothing below the digits that are asked for, which is tested.

Private ranges: the sensitivity of their counts, what they cover, what they cost, and a person at the end of a range.
"""

import itertools
import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp
from scipy.stats import norm
from support import mostly_long, noisy_sums

import dpviz
from dpviz.privacy import private_ranges as module
from dpviz.privacy.accounting import account, pld
from dpviz.privacy.accounting.account import Method
from dpviz.privacy.accounting.events import CannotAccount, Gaussian
from dpviz.privacy.accounting.gaussian import log_gaussian_delta
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.accounting.pld import Pair, log_delta
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.private_ranges import EDGES, _listed, plan_noise, private_ranges
from dpviz.spending import Ledger

Floats = NDArray[np.float64]
FLOOR = -80.0


class Referee:
    """ln delta of `count` steps of the sampled Gaussian with noise multiplier z, in one direction of add/remove."""

    def __init__(self, direction: str, q: float, z: float, count: int, fine: float = 1.0) -> None:
        self.direction, self.count, self.fine = direction, count, fine
        step = 0.01 * min(1.0, z) / fine
        self.lost = math.log1p(-q)
        self.y = np.arange(-14.0, 14.0 + 14.0 / z, step)
        # ln of (mixture / standard normal) at y
        self.ratio = np.logaddexp(math.log1p(-q), math.log(q) + self.y / z - 1 / (2 * z * z))
        self.weight = -(self.y**2) / 2 + math.log(step) - 0.5 * math.log(2 * math.pi)

    def log_moment(self, s: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """ln E_P[e^(s loss)]: E[ratio^(s + 1)] where the row is removed, E[ratio^-s] where it is added."""
        power = s + 1 if self.direction == "remove" else -s
        out = np.empty(len(s), complex)
        for k, value in enumerate(power):
            out[k] = logsumexp(self.weight + value * self.ratio)
        return out

    def log_delta(self, epsilon: float) -> float:
        if self.direction == "add" and epsilon >= -self.count * self.lost:
            return -math.inf  # no sum of losses is as large

        def exponent(log_s: float) -> float:
            s = math.exp(log_s)
            moment = float(self.log_moment(np.array([s + 0j])).real[0])
            return self.count * moment - s * epsilon - math.log(s * (s + 1))

        c = math.exp(minimize_scalar(exponent, bounds=(-6.0, math.log(13.0 / 0.9)), method="bounded").x)
        top, step = exponent(math.log(c)), 0.02 * min(1.0, c) / self.fine
        total, start, block = 0.0, 0, 200
        while True:
            t = step * (start + np.arange(block))
            s = c + 1j * t
            values = np.exp(self.count * self.log_moment(s) - s * epsilon - np.log(s * (s + 1)) - top)
            values[0] *= 0.5 if start == 0 else 1.0
            total += float(values.real.sum())
            start += block
            if np.abs(values[-1]) * t[-1] / step < 1e-11 * abs(total):
                return top + math.log(2 * total * step / (2 * math.pi))
            assert start < 200_000, "the integral does not converge"


CASES = [
    ("remove", 0.01, 1.0, 1000, 1.8),
    ("add", 0.01, 1.0, 1000, 1.5),
    ("remove", 0.01, 1.0, 1000, 6.0),
    ("remove", 0.1, 0.8, 100, 8.0),
    ("add", 0.1, 0.8, 100, 4.0),
    ("remove", 0.3, 3.0, 200, 3.0),
    ("add", 0.3, 3.0, 200, 7.0),
    ("remove", 0.002, 0.6, 2000, 2.0),
    ("remove", 0.5, 5.0, 10, 1.0),
    ("remove", 0.05, 2.0, 10_000, 10.0),
    ("remove", 0.9, 1.5, 5, 4.0),
]


@pytest.mark.parametrize(("direction", "q", "z", "count", "epsilon"), mostly_long(CASES, *CASES[::4]))
def test_delta_is_never_below_the_integral_and_within_a_2000th_of_epsilon(
    direction: str, q: float, z: float, count: int, epsilon: float
) -> None:
    referee = Referee(direction, q, z, count)
    truth = referee.log_delta(epsilon)
    assert truth > FLOOR, "a case in which ours is computed"
    # delta falls with epsilon, so this is the truth at an epsilon that is smaller by 0.05 %
    most = referee.log_delta(epsilon * (1 - 5e-4))
    assert truth - 1e-8 <= log_delta(Pair(direction, q, 1 / z), count, epsilon, FLOOR) <= most
    # controls: 5 % too little noise, and an epsilon that is off by 0.1 % to either side, leave that range
    assert log_delta(Pair(direction, q, 1 / (1.05 * z)), count, epsilon, FLOOR) < truth - 1e-3
    assert log_delta(Pair(direction, q, 1 / (0.95 * z)), count, epsilon, FLOOR) > most + 1e-3
    assert log_delta(Pair(direction, q, 1 / z), count, epsilon * 1.001, FLOOR) < truth - 1e-8
    assert log_delta(Pair(direction, q, 1 / z), count, epsilon * 0.999, FLOOR) > most


@pytest.mark.parametrize(("q", "epsilon"), [(1e-4, 0.05), (3e-4, 0.05), (1e-3, 0.3)])
def test_at_low_rates_the_grid_is_fine_enough_too(q: float, epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the integral would take hours, a grid many times as fine stands in for it: the error falls with the cells."""
    found = log_delta(Pair("remove", q, 2.0), 20, epsilon, FLOOR)
    for name, times in (("_FINE", 64), ("_FINEST_GRID", 16), ("_LARGEST_GRID", 16)):
        monkeypatch.setattr(pld, name, getattr(pld, name) * times)
    finer, most = (log_delta(Pair("remove", q, 2.0), 20, epsilon * factor, FLOOR) for factor in (1, 1 - 5e-4))
    assert finer <= found <= most


def test_the_integral_does_not_depend_on_its_steps() -> None:
    case = CASES[0]
    assert Referee(*case[:4], fine=2.0).log_delta(case[4]) == pytest.approx(Referee(*case[:4]).log_delta(case[4]), abs=1e-8)


@pytest.mark.parametrize(("count", "z", "epsilon"), [(30, 5.0, 5.0), (1, 1.0, 2.0), (400, 20.0, 0.5)])
def test_the_integral_is_the_closed_form_of_full_batches(count: int, z: float, epsilon: float) -> None:
    exact = float(log_gaussian_delta(epsilon, math.sqrt(count) / z))
    assert Referee("remove", 1 - 1e-15, z, count).log_delta(epsilon) == pytest.approx(exact, abs=1e-8)


def test_epsilon_of_a_run_is_that_of_its_worse_direction() -> None:
    q, z, count, delta = 0.1, 0.6, 100, 1e-6
    found, referees = (
        account.epsilon(noisy_sums(z, q, count), Method(), delta),
        [Referee(d, q, z, count) for d in ("remove", "add")],
    )
    assert max(r.log_delta(found) for r in referees) <= math.log(delta) + 1e-8
    assert max(r.log_delta(found * (1 - 5e-4)) for r in referees) > math.log(delta)


def test_mass_that_is_dropped_instead_of_moved_up_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control for rounding: losses rounded down to their cell's lower end give a delta below the truth."""
    cells = pld._cells

    def rounded_down(pair: Pair, h: float, theta: float, ends: tuple[float, float]) -> tuple[int, Floats, float, float, float]:
        first, mass, scale, lost, blur = cells(pair, h, theta, ends)
        return first - 1, mass * math.exp(-theta * h), scale, lost, blur

    direction, q, z, count, epsilon = CASES[0]
    truth = Referee(direction, q, z, count).log_delta(epsilon)
    monkeypatch.setattr(pld, "_cells", rounded_down)
    assert log_delta(Pair(direction, q, 1 / z), count, epsilon, FLOOR) < truth - 1e-8


def test_small_batches_have_a_delta_near_epsilon_0() -> None:
    """Powers beyond the window underflow at rates of 1e-4, which ended in a math domain error."""
    pair = Pair("remove", 1e-4, 0.5)
    assert log_delta(pair, 10_000, 0.005, FLOOR) < log_delta(pair, 10_000, 2.650379317425066e-05, -700.0) < 0


@pytest.mark.parametrize(("z", "epsilon"), [(0.02, 1.0), (0.3, 150.0), (2.0, 20.0)])
@pytest.mark.parametrize("rate", [0.01, 0.5, 0.99])
def test_batches_of_a_fixed_size_are_exact_for_one_batch_and_overflow_nowhere(rate: float, z: float, epsilon: float) -> None:
    """delta' = q delta(ln(1 + (e^eps - 1)/q)), also where delta is e^-600 and the tilt of losses is as large."""
    found = log_delta(Pair("symmetric", rate, 2 / z), 1, epsilon, -700.0)
    exact = math.log(rate) + float(log_gaussian_delta(math.log1p(math.expm1(epsilon) / rate), 2 / z))
    assert exact - 1e-9 <= found <= exact + 1e-3 * max(1.0, abs(exact))


@pytest.mark.parametrize(("q", "z", "delta"), [(2e-3, 1.5, 1e-5), (1e-2, 0.5, 1e-10)])
def test_one_rare_step_is_not_blurred_by_the_grid(q: float, z: float, delta: float) -> None:
    # nearly all losses lie near 0, in a range far smaller than the few that make up delta; removing a row is the worse
    # direction, with the profile q delta_G(ln(1 + (e^eps - 1)/q), 1/z) (Balle, Barthe, Gaboardi 2018, Theorem 9)
    exact = brentq(
        lambda eps: math.log(q / delta) + float(log_gaussian_delta(math.log1p(math.expm1(eps) / q), 1 / z)), 1e-9, 20, xtol=1e-14
    )
    assert exact * (1 - 1e-6) <= account.epsilon(noisy_sums(z, q, 1), Method(), delta) <= exact * (1 + 1e-3)
    assert account.epsilon(noisy_sums(z * 1.05, q, 1), Method(), delta) < exact * (1 - 1e-3), "5 % of noise is seen"


def test_delta_falls_with_epsilon_at_low_rates() -> None:
    values = [log_delta(Pair("remove", 1e-3, 1.0), 20, eps, -60.0) for eps in np.linspace(0.05, 0.8, 16)]
    assert all(b < a for a, b in itertools.pairwise(values))


def test_noise_that_no_grid_resolves_proves_nothing() -> None:
    """Of one step the exact epsilon is above 1e9; the quadrature saw a single point, with no spread."""
    with pytest.raises(CannotAccount, match="too small for a finite epsilon"):
        account.epsilon(noisy_sums(1e-5, 0.5, 4, "without-replacement"), Method("pld", Neighbouring.REPLACE_ONE), 0.25)
    assert log_delta(Pair("symmetric", 0.5, 1e5), 1, 1e12, -30.0) == 0


BUDGET = Budget(0.5, 1e-6)


@pytest.mark.parametrize(("numbers", "categories"), [(1, 0), (4, 0), (100, 0), (0, 1), (3, 2), (0, 50)])
@pytest.mark.parametrize("budget", [BUDGET, Budget(3.0, 1e-3)])
def test_all_queries_cost_the_budget(numbers: int, categories: int, budget: Budget) -> None:
    """The Gaussian part by the accountant, at the distance that one replaced row can make; the threshold by its definition."""
    noise = plan_noise(numbers, categories, budget)
    distance = math.sqrt(2 * 2 * numbers + 2 * categories)
    lifted = categories * float(norm.sf((noise.threshold - 1) / noise.sigma))
    delta = budget.delta - (1 + math.exp(budget.epsilon)) * lifted
    assert delta == pytest.approx(budget.delta / (2 if categories else 1), rel=1e-9)
    assert total_epsilon([Gaussian(distance, noise.sigma)], delta) == pytest.approx(budget.epsilon, rel=1e-6)
    assert total_epsilon([noise.release], budget.delta) == pytest.approx(budget.epsilon, rel=1e-6)


class Recorded(random.Random):
    """A source whose draws are known and that keeps the standard deviations it was asked for."""

    drawn = 0.0

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        self.asked = [*getattr(self, "asked", []), sigma]
        return mu + self.drawn


def test_every_bin_of_both_queries_receives_noise() -> None:
    source, noise = Recorded(), plan_noise(1, 0, BUDGET)
    private_ranges({"x": np.full(5000, 3.0)}, BUDGET, source)
    assert source.asked == [noise.sigma] * (len(EDGES) - 1 + module._PARTS)
    source.drawn = 1e9
    assert private_ranges({"x": np.full(5000, 3.0)}, BUDGET, source).ranges["x"] == (EDGES[0], EDGES[-1])


def test_categories_are_those_whose_noisy_number_passes() -> None:
    budget = Budget(1.0, 1e-3)
    noise = plan_noise(0, 1, budget)
    enough = math.ceil(noise.threshold) + 1
    values = ["many"] * 900 + ["b"] * enough + ["a"] * (enough + 5) + ["c"] * (enough - 3) + ["queen", None, float("nan")]
    source = Recorded()
    found = private_ranges({}, budget, source, categories={"x": values})
    assert found.categories == {"x": ("a", "b", "many")}
    assert source.asked == [noise.sigma] * 5, "every value that occurs, and gaps are none"
    listed = Counter(
        value
        for k in range(600)
        for value in private_ranges({}, budget, random.Random(k), categories={"x": values}).categories["x"]
    )
    for value, count in Counter(v for v in values if isinstance(v, str)).items():
        share = float(norm.sf((noise.threshold - count) / noise.sigma))
        assert listed[value] / 600 == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 600) + 1e-3)


def test_a_value_of_one_row_stays_hidden_as_often_as_the_proof_says() -> None:
    """Replacing the only row of a value, with a delta that can be counted; at 0 as the threshold it is seen."""
    budget, runs = Budget(1.0, 0.2), 3000
    noise = plan_noise(0, 1, budget)
    source = random.Random(3)

    def shown(threshold: float) -> float:
        weak = replace(noise, threshold=threshold)
        return sum("queen" in _listed("x", Counter({"many": 10_000, "queen": 1}), weak, source) for _ in range(runs)) / runs

    most = budget.delta / 2 / (1 + math.e)
    assert shown(noise.threshold) <= most + 4 * math.sqrt(most / runs)
    assert shown(noise.threshold - 1.5 * noise.sigma) > most + 4 * math.sqrt(most / runs)


def test_replacing_a_row_moves_the_counts_by_no_more_than_the_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """All counts of both queries are recorded without noise; values at the ends of doubles and gaps are among the rows."""
    counted: list[np.ndarray] = []
    original = np.histogram
    monkeypatch.setattr(module.np, "histogram", lambda v, e: (counted.append(original(v, e)[0]), original(v, e))[1])
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 3)) * np.array([1, 1e3, 1e-3])
    extremes = np.array([0.0, -0.0, 1.7e308, -1.7e308, 5e-324, np.inf, -np.inf, np.nan, 1.0, 2.0**40, -(2.0**40)])
    for trial in range(60):
        neighbour = rows.copy()
        neighbour[trial] = rng.choice(extremes, 3)
        for queried in (rows, neighbour):
            private_ranges({f"c{j}": queried[:, j] for j in range(3)}, Budget(50.0, 1e-6), random.Random(7))
        first, second = counted[:3], counted[6:9]  # the coarse counts; fine ones follow from what was released of them
        moved = math.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in zip(first, second, strict=True)))
        assert moved <= math.sqrt(2 * 3) + 1e-12
        assert sum(int(c.sum()) for c in second) >= 3 * 1999 - 3
        counted.clear()


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (np.random.default_rng(1).integers(17, 91, 20_000), 17, 90),
        (np.random.default_rng(1).integers(1985, 2021, 20_000), 1985, 2020),
        (-np.random.default_rng(1).exponential(1e5, 20_000), -3e5, -1e3),
        (np.random.default_rng(1).normal(0, 1e-3, 20_000), -2e-3, 2e-3),
        (np.zeros(20_000), 0, 0),
        (np.random.default_rng(1).normal(0, 1, 20_000) * 1e30, 2.0**40, 2.0**40),
    ],
)
def test_nearly_all_values_lie_inside(values: np.ndarray, low: float, high: float) -> None:
    for seed in range(5):
        a, b = private_ranges({"x": values}, BUDGET, random.Random(seed)).ranges["x"]
        assert a <= low <= high <= b
        inside = np.clip(values, EDGES[0], EDGES[-1])
        assert ((inside >= a) & (inside <= b)).mean() > 0.95


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_the_classifier_pays_for_its_ranges(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(17, 91, 5000), rng.exponential(1e4, 5000)])
    y = X[:, 0] > 50
    ledger = Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(2.0, 1e-4))
    model = dpviz.PrivateClassifier(epsilon=2.0, delta=1e-6, ranges="private", ledger=ledger, random_state=3).fit(X, y)
    again = dpviz.PrivateClassifier(epsilon=2.0, delta=1e-6, ranges="private", random_state=3).fit(X, y)
    assert model.guarantee_.proved == Budget(2.0, 1e-6)
    assert any("ranges were found privately" in note for note in model.guarantee_.notes)
    assert not any("range" in what for what in model.guarantee_.looked_at)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.score(X, y) > 0.9
    (entry,) = ledger.entries()
    assert entry.release == Budget(2.0, 1e-6)


def test_noise_of_ranges_and_of_training_come_from_different_streams() -> None:
    """With one seed the two must not share a draw, or the ranges would tell the noise of the model."""
    model = dpviz.PrivateClassifier(random_state=5)
    _, training, ranges = model._randomness(1)
    assert [training.random() for _ in range(5)] != [ranges.random() for _ in range(5)]
