"""Privacy curves and their tables against the exact Gaussian; a new accountant is one file, listed wherever accountants are."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm
from support import assert_refused, mostly_long, noisy_sums

from dpviz.privacy.accounting import account, accountants, curves, events, tables
from dpviz.privacy.accounting.account import Method, describe, log_delta, tightest
from dpviz.privacy.accounting.events import CannotAccount, Event, Gaussian, Mixture, PureEpsilon, Repeated, Sampled, scale_noise
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget, Neighbouring, Status, attack_accuracy

BUDGET = Budget(1.0, 1e-5)
ONE = Gaussian(0.02, 0.02 / gaussian_mu(BUDGET))
WITH_NOISE = Gaussian(0.02, 0.03)
SAMPLED = Repeated(Sampled(Gaussian.of_rows(0.01, 0.03), 0.1), 20)


def test_one_gaussian_is_exact_everywhere() -> None:
    curve = tables.renyi_curve(ONE, BUDGET.delta)
    assert curve.epsilon == pytest.approx(1.0, rel=1e-9)
    assert curve.table["divergence"].to_numpy() == pytest.approx(curve.table["alpha"].to_numpy() * gaussian_mu(BUDGET) ** 2 / 2)
    order, best = curve.best["improved"]
    assert best > curve.epsilon, "no Rényi conversion is exact"
    assert best < curve.best["mironov"][1]
    assert order > 1
    alarms = np.linspace(0, 1, 1001)
    detections = curves.detections(ONE, alarms)
    accuracy = 0.5 + (detections - alarms).max() / 2
    assert accuracy == pytest.approx(ndtr(gaussian_mu(BUDGET) / 2), abs=1e-3)
    assert accuracy < attack_accuracy(BUDGET)
    assert (alarms[0], detections[0]) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert tables.delta_at(ONE, 1.0) == pytest.approx(1e-5, rel=1e-6)
    assert tables.delta_at(scale_noise(ONE, 0.95), 1.0) > 1.2e-5, "5 % less noise is seen"


@pytest.mark.parametrize("released", [WITH_NOISE, SAMPLED, Mixture((0.01, 0.02), (0.7, 0.3), 0.03)])
def test_the_best_order_is_the_lowest_point_of_each_curve(released: Event) -> None:
    curve = tables.renyi_curve(released, 1e-5)
    for name, (order, epsilon) in curve.best.items():
        lowest = int(curve.table[name].argmin())
        assert epsilon == pytest.approx(curve.table[name][lowest], rel=2e-3)
        assert epsilon <= curve.table[name][lowest] * (1 + 1e-9)
        assert order == pytest.approx(curve.table["alpha"][lowest], rel=0.3)
    assert curve.epsilon <= curve.best["improved"][1] * (1 + 1e-9)
    assert curve.best["improved"][1] < curve.best["mironov"][1]


@pytest.mark.parametrize("released", [WITH_NOISE, SAMPLED])
def test_delta_falls_with_epsilon_and_the_tightest_proof_is_below_the_others(released: Event) -> None:
    table = tables.delta_curve(released, 1e-5)
    assert (np.diff(table["delta"]) < 0).all()
    for name in tables.CONVERSIONS:
        assert (table["delta"] <= table[name] * (1 + 1e-9)).all()


def test_composition_orders_the_accountants_and_says_who_refuses() -> None:
    found = tables.composition(1.0, 0.1, 1e-5, Neighbouring.ADD_REMOVE, (1, 10, 100))
    table = found.table.set_index("steps")
    assert (table["PLD"] <= table["RDP, improved conversion"]).all()
    assert (table["RDP, improved conversion"] <= table["RDP, Mironov's conversion"]).all()
    assert table[found.single].loc[100] > table["PLD"].loc[100]
    assert table[found.single].loc[1] == pytest.approx(table["PLD"].loc[1])
    assert "zCDP" in found.refused
    assert not tables.composition(1.0, 1.0, 1e-5, Neighbouring.ADD_REMOVE, (1,)).refused


def test_relations_mark_what_is_proved_and_what_is_in_use() -> None:
    for released in (WITH_NOISE, SAMPLED):
        table = tables.relations(released, 1e-5)
        assert table["in_use"].sum() == 1
        assert table[table["in_use"]]["proved"].all()
        there, other = table["epsilon"].iloc[0], table[table["in_use"]]["epsilon"].iloc[0]
        assert there < other, "a replacement is a removal and an addition"
    assert math.isfinite(tables.relations(SAMPLED, 1e-5)["epsilon"].sum())


@pytest.mark.parametrize("budget", [Budget(1e-3, 0.01), Budget(0.03, 0.5), Budget(1e-3, 1e-6), Budget(50.0, 1e-12)], ids=str)
def test_every_accountant_answers_at_odd_budgets(budget: Budget) -> None:
    found = {option.name: option.sigma for option in tables.options(Gaussian(1.0), budget)}
    assert found["Exact Gaussian"] <= found["RDP, improved conversion"] <= found["RDP, Mironov's conversion"] * (1 + 1e-9)
    # Canonne, Kamath, Steinke 2020, Proposition 12, at the noise found: the best real order gives the budget's epsilon
    a = 1 + np.geomspace(1e-4, 1e7, 400_001)

    def reached(sigma: float) -> float:
        return float(np.min(a / (2 * sigma**2) + np.log1p(-1 / a) - (math.log(budget.delta) + np.log(a)) / (a - 1)))

    assert reached(found["RDP, improved conversion"]) == pytest.approx(budget.epsilon, rel=1e-5, abs=1e-7)
    assert reached(0.95 * found["RDP, improved conversion"]) > budget.epsilon * 1.01


def test_a_comparison_without_sampling_is_that_of_full_steps() -> None:
    ignored, *others = tables.options(Repeated(Sampled(Gaussian.of_rows(3.0), 0.01), 10), Budget(1.0, 1e-5))
    full = {o.name: o.sigma for o in tables.options(Repeated(Gaussian.of_rows(3.0), 10), Budget(1.0, 1e-5))}
    assert ignored.sigma == pytest.approx(full["Exact Gaussian"])
    assert r"\sigma" in ignored.formula
    assert all(not option.sigma > ignored.sigma for option in others)


def by_formula(event: curves.Event, e: float) -> float:
    """Kairouz, Oh, Viswanath 2015, Theorem 2.1."""
    delta = math.exp(log_delta(event, tightest(event), e))
    return (math.exp(e) - 1 + 2 * delta) / (math.exp(e) + 1)


@pytest.mark.parametrize(("rate", "count"), mostly_long([(0.3, 1), (0.1, 4), (0.01, 40), (1e-3, 1)], (0.3, 1), (0.1, 4)))
def test_the_advantage_is_that_of_one_epsilon(rate: float, count: int) -> None:
    event = noisy_sums(0.7, rate, count)
    near = by_formula(event, 1e-5)
    expected = min(near, by_formula(event, near / 4)) if rate < 2e-3 else near
    assert curves.advantage(event) == pytest.approx(expected, rel=1e-9)
    alarms = np.linspace(0.0, 1.0, 2001)
    largest = float((curves.detections(event, alarms) - alarms).max())
    assert curves.advantage(event) == pytest.approx(largest, rel=2e-3), "the curve's largest distance"


@pytest.mark.parametrize("rate", mostly_long([0.3, 1e-3], 0.3))
def test_the_advantage_over_one_batch_is_exact(rate: float) -> None:
    """A row is in the batch with probability q: q N(m) + (1 - q) N(0) and the same with m' differ by q TV(N(m), N(m')).

    One row for another moves a sum by twice what a row more or less does; two hops would allow twice the distance of one.
    """

    def distance(mu: float) -> float:
        return rate * (2 * float(norm.cdf(mu / 2)) - 1)

    assert distance(2 / 0.7) * (1 - 1e-9) <= curves.advantage(noisy_sums(0.7, rate)) <= 1.01 * distance(2 / 0.7)
    assert 1.2 * distance(2 / 0.7) < 2 * distance(1 / 0.7), "by two hops"


def test_the_advantage_over_releases_of_several_kinds_is_at_least_that_of_each() -> None:
    parts = noisy_sums(0.9, 1.0), noisy_sums(2.0, 0.1, 3)
    both = curves.advantage(events.Composed(parts))
    assert max(map(curves.advantage, parts)) <= both < 1.0
    assert both < curves.advantage(events.Composed((*parts, *parts)))


#: delta of a Gaussian by a Chernoff bound: mu = sqrt(T)/z ignores that batches are sampled, which is proved and loose
TOY = """
import math
from dpviz.privacy.accounting.accountants.base import Accountant


class Chernoff(Accountant):
    name = "chernoff"
    words = "Chernoff bound of the privacy loss, sampling ignored"
    label = "Chernoff"
    conversion_words = "Chernoff bound"
    place = 5
    samplings = ("full", "poisson")
    columns = (("Chernoff", "improved"),)

    def log_delta(self, step, method, epsilon, floor, directions):
        sampled = step.sampling == "poisson"
        mu = 2 / step.event.noise_multiplier if sampled else step.event.sensitivity / step.event.sigma
        mu *= math.sqrt(step.count)
        return min(0.0, -max(epsilon - mu**2 / 2, 0.0) ** 2 / (2 * mu**2))


ACCOUNTANT = Chernoff()
"""
REPLACE = Neighbouring.REPLACE_ONE
BATCHES: Event = Repeated(Sampled(Gaussian.of_rows(1.0, 8.0), 0.1), 20)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Method:
    (tmp_path / "chernoff.py").write_text(TOY)
    others = list(accountants.base.list_accountants())
    monkeypatch.setattr(accountants, "__path__", [*accountants.__path__, str(tmp_path)])
    found = accountants.base.find_accountants.__wrapped__()
    assert list(found)[1:] == others, "it adds itself and moves no other"
    monkeypatch.setattr(accountants.base, "find_accountants", lambda: found)
    return Method("chernoff", REPLACE)


def test_it_accounts_for_events_and_refuses_what_it_does_not_cover(toy: Method) -> None:
    full, budget = Repeated(Gaussian(1.0, 4.0), 5), Budget(1.0, 1e-5)
    mu = math.sqrt(5) / 4
    by_hand = mu**2 / 2 + mu * math.sqrt(2 * math.log(1e5))
    assert account.epsilon(full, Method("chernoff", REPLACE), 1e-5) == pytest.approx(by_hand, rel=1e-6)
    for event in (full, BATCHES):
        noise = account.noise_for(event, toy, budget)
        assert noise > account.noise_for(event, tightest(event), budget)
    with pytest.raises(CannotAccount, match=r"Chernoff has no proof for PureEpsilon.*hockey-stick"):
        account.epsilon(PureEpsilon(1.0), toy, 1e-5)
    with pytest.raises(CannotAccount, match="Chernoff has no bound for shuffled fixed batches"):
        account.epsilon(Sampled(Gaussian.of_rows(1.0), 0.1, "fixed"), toy, 1e-5)
    assert describe(toy) == "Chernoff bound of the privacy loss, sampling ignored, replace-one"


@pytest.mark.parametrize("event", [Gaussian(1.0), BATCHES])
def test_it_has_a_line_where_accountants_are_compared(toy: Method, event: Event) -> None:
    found = {option.name: option for option in tables.options(event, Budget(1.0, 1e-5))}
    assert found["Chernoff"].status is Status.PROVED
    assert found["Chernoff"].sigma > min(option.sigma for option in found.values())
    table = tables.composition(2.0, 0.1, 1e-5, Neighbouring.ADD_REMOVE, (1, 10)).table
    assert (table["Chernoff"] > table["PLD"]).all()


def test_without_its_file_it_is_unknown() -> None:
    assert_refused(account.epsilon, Gaussian(1.0), Method("chernoff"), 1e-5, match="accountant")


@pytest.mark.long
def test_mechanisms_on_poisson_batches_take_it(tmp_path: Path) -> None:
    """Hyperparameters are declared while the package is loaded, hence a process of its own."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "chernoff.py").write_text(TOY)
    (tmp_path / "use.py").write_text(
        "from dpviz.privacy.accounting import accountants\n"
        f"accountants.__path__.append({str(tmp_path / 'more')!r})\n"
        "import dpviz\n"
        "from dpviz.experiments.run.setup import calibration_of\n"
        "spec = dpviz.RunSpec(mechanism='dp-sgd', params={'accountant': 'chernoff'}, dataset='teaching')\n"
        "print(dpviz.list_mechanisms()['dp-sgd'].knobs()['accountant'].options, calibration_of(spec).accountant)\n"
    )
    done = subprocess.run([sys.executable, tmp_path / "use.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "('pld', 'rdp', 'chernoff') Chernoff bound" in done.stdout
