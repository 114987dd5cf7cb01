"""No low bit of what is published depends on a row: the attack of Haney et al. (2022), the grid of every method, a black box."""

import dataclasses
import json
import math
import random
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support import assert_refused, mostly_long, of_each

import dpviz
from dpviz.datasets import Dataset
from dpviz.mechanisms import list_mechanisms
from dpviz.mechanisms.calibration import REAL_NOISE, SECRET_RANDOMNESS
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.releasing import grid
from dpviz.spending import Ledger

N, LAM = 100, 0.069  # with x = 1 in all rows the minimiser is just below 1 for 80 positive labels, and above for 81


def table(positive: int) -> Dataset:
    return dpviz.dataset(np.ones((N, 1)), np.arange(N) < positive, data_norm=1.0)


def releases(rows: Dataset, count: int, mechanism: str = "output-gaussian") -> np.ndarray:
    spec = dpviz.RunSpec(rows, mechanism=mechanism, lam=LAM, intercept=False, delta=1e-5)
    return np.array([dpviz.release(spec, all_rows=True).model.theta[0] for _ in range(count)])


def odd_and_negative(theta: np.ndarray) -> int:
    """The event: in (-1/2, 0) and an odd multiple of 2^-53."""
    return sum(-0.5 < t < 0 and (Fraction(t) * 2**53).denominator == 1 and (Fraction(t) * 2**53) % 2 == 1 for t in theta.tolist())


def in_doubles(centre: np.ndarray, scale: float, family: str, sensitivity: float, source: random.Random) -> np.ndarray:
    """What a release without a grid does: noise of the best kind, added as doubles.

    The last bit of a minimiser is rounding's, and another one on another processor; below 1 it is odd here.
    """
    even = (centre < 1) & (np.rint(centre * 2.0**53) % 2 == 0)
    centre = np.where(even, np.nextafter(centre, 0.0), centre)
    draws, one = grid.EXACT[family](len(centre), source)
    return centre + scale * np.array([draw / one for draw in draws])


@pytest.mark.parametrize(("mechanism", "count"), [("output-gaussian", 150), ("cms-output", 600)])
@pytest.mark.long
def test_low_bits_do_not_tell_neighbours_apart(mechanism: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(7)
    monkeypatch.setattr(random, "SystemRandom", lambda: source)
    first, second = table(80), table(81)
    assert odd_and_negative(releases(first, count, mechanism)) == odd_and_negative(releases(second, count, mechanism)) == 0
    monkeypatch.setattr(grid, "add_on_grid", in_doubles)
    seen = odd_and_negative(releases(first, count, mechanism)), odd_and_negative(releases(second, count, mechanism))
    assert seen[0] >= 1, "the control: without the grid this table gives the event"
    assert seen[1] == 0, "and its neighbour never does, so no (ε, δ) below that share holds"


def on_grid(theta: np.ndarray, step: float) -> bool:
    return math.log2(step) == round(math.log2(step)) and bool((theta / step == np.rint(theta / step)).all())


@of_each(sorted(list_mechanisms()))
def test_every_method_publishes_multiples_of_a_step_that_no_row_decides(mechanism: str) -> None:
    """The steps of two tables are the same; as doubles without a grid, numbers would not be multiples of it."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)) / 4, np.arange(60) % 2
    moved = x.copy()
    moved[3] = 1.0, -2.0
    params = {"private": True} if mechanism == "majority" else {}
    spec = dpviz.RunSpec(dpviz.dataset(x, y, data_norm=1.0), mechanism=mechanism, lam=0.01, params=params)
    other = dataclasses.replace(spec, dataset=dpviz.dataset(moved, y, data_norm=1.0))
    made = [dpviz.release(one, unproved=True) for one in (spec, other)]
    assert made[0].grid == made[1].grid == made[0].model.privacy["grid"]
    for one in made:
        assert on_grid(one.model.theta, one.grid)
    if mechanism != "majority":
        assert not on_grid(np.nextafter(made[0].model.theta, np.inf), made[0].grid), "the control"


def test_noise_and_parameters_are_added_as_whole_numbers() -> None:
    """Rounding first and adding then is rounding of the sum of the rounded parameters and the noise, exactly."""
    centre = np.array([1 / 3, -2 / 7, 1e-9, 0.0])
    out = grid.add_on_grid(centre, 0.7, "gaussian", math.nan, random.Random(3))
    step = grid.step_of(0.7)
    draws, one = grid.EXACT["gaussian"](4, random.Random(3))
    for c, draw, value in zip(centre, draws, out, strict=True):
        whole = Fraction(float(np.rint(c / step)) * step)
        exact = (whole + Fraction(0.7) * draw / one) / Fraction(step)
        assert value == float(math.floor(exact + Fraction(1, 2)) * step)


def test_rounding_is_paid_for_by_more_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rounded parameters have the sensitivity D + g sqrt(m); a step as coarse as D shows the factor."""
    monkeypatch.setattr(grid, "step_of", lambda scale: 0.25)
    with_, without = (grid.add_on_grid(np.zeros(4), 1e6, "gaussian", d, random.Random(1)) for d in (0.5, math.nan))
    np.testing.assert_allclose(with_ / without, 1 + 0.25 * 2 / 0.5, rtol=1e-5)


@pytest.mark.parametrize(("mechanism", "pure"), [("cms-output", False), ("cms-objective", True)])
def test_pure_noise_on_a_grid_is_not_called_pure(mechanism: str, pure: bool, tmp_path: Path) -> None:
    """The sampler's total variation is in every statement. Noise in the objective, the control, is pure if it is real-valued."""
    spec = dpviz.RunSpec(table(60), mechanism=mechanism, lam=LAM, intercept=False)
    slack = 0.0 if pure else (1 + math.e) * 2**1.5 * 2.0 ** (40 - grid.gaussian(1, random.Random(0))[1].bit_length() + 1)
    ledger = Ledger.create(tmp_path / "l.toml", table="t", limit=dpviz.Budget(3.0, 1e-6))
    made = dpviz.release(spec, ledger=ledger)
    proved = made.calibration.proved_budget
    assert (proved.epsilon, proved.delta) == (1.0, pytest.approx(slack, rel=1e-12, abs=0.0))
    assert f"- Proved: {proved} (" in made.card
    assert made.model.privacy["proved"] == {"epsilon": 1.0, "delta": proved.delta}
    assert (REAL_NOISE in made.calibration.conditions) == pure
    x, y = np.ones((60, 1)), np.arange(60) % 3
    model = dpviz.PrivateClassifier(mechanism, ledger=ledger, lam=LAM, fit_intercept=False, classes=[0, 1, 2]).fit(x, y)
    assert (model.guarantee_.proved.epsilon, model.guarantee_.proved.delta > 0) == (1.0, not pure)
    assert total_epsilon([entry.release for entry in ledger.entries()], 0.0) == (2.0 if pure else math.inf)
    assert all({REAL_NOISE, SECRET_RANDOMNESS} <= {*entry.conditions} for entry in ledger.entries()), "known before training"
    assert ledger.total().budget == dpviz.Budget(2.0, 0.0 if pure else 1e-6)


def test_nothing_is_proved_where_the_slack_of_the_sampler_is_large() -> None:
    assert_refused(
        dpviz.release,
        dpviz.RunSpec("census-100", mechanism="output-gaussian", epsilon=400.0),
        match=r"only \(ε = 400, δ = 1\) is proved",
    )


def test_the_step_follows_the_noise_and_stays_within_what_doubles_hold() -> None:
    for scale in (1e-9, 1e-3, 0.5, 1.0, 7.0, 1e20):
        step = grid.step_of(scale)
        assert on_grid(np.zeros(1), step)
        assert step == 2.0**-44 or 2.0**-31 * scale < step <= 2.0**-30 * scale
    assert grid.public_step(10**6, 1e6, 1e4) == 2.0**-44


@pytest.mark.parametrize("centre", [np.array([np.nan]), np.array([np.inf]), np.array([1e30])])
def test_what_is_no_number_or_too_large_raises(centre: np.ndarray) -> None:
    assert_refused(grid.add_on_grid, centre, 1.0, "gaussian", 0.1, random.Random(0))


def test_a_hardened_release_draws_from_the_operating_system_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With that source made repeatable the release repeats: no other noise is in it, and none is missing."""
    spec = dpviz.RunSpec("census-100", mechanism="output-gaussian", lam=0.1)

    def released(seed: int) -> np.ndarray:
        monkeypatch.setattr(random, "SystemRandom", lambda: random.Random(seed))
        made = dpviz.release(spec)
        assert made.hardened
        return made.model.theta

    np.testing.assert_array_equal(released(1), released(1))
    assert (released(1) != released(2)).all()


@pytest.mark.parametrize("sign", mostly_long([1, -1], 1))
def test_the_private_majority_is_released_with_its_noise(sign: int) -> None:
    """60 labels of 100, noise of scale 200 on the difference of 20: the rarer label comes out often, as often as declared."""
    y = np.arange(100) < 60 if sign > 0 else np.arange(100) >= 60
    rows = dpviz.dataset(np.ones((100, 1)), y, data_norm=1.0)
    spec = dpviz.RunSpec(rows, mechanism="majority", params={"private": True}, epsilon=0.01)
    labels = np.array([dpviz.release(spec, all_rows=True).model.constant_label for _ in range(200)])
    share, declared = (labels == sign).mean(), 1 - math.exp(-20 / 200) / 2
    assert abs(share - declared) < 5.5 * math.sqrt(declared * (1 - declared) / 200)  # fails once in 10^7 runs
    assert abs(1.0 - declared) > 5.5 * math.sqrt(declared * (1 - declared) / 200), "the control: without noise it is seen"


_LOW = 20  # bits above the grid that are below 2^-10 of the noise, where every value is as likely as its neighbours
_LEVEL = 1e-6  # of each audit, divided by its comparisons


def thetas(count: int, moved: bool) -> tuple[np.ndarray, dpviz.releasing.Release]:
    """((count, m) parameters of thetas of one table, the last release)."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 2)) / 3, (np.arange(50) % 2).astype(float)
    if moved:
        x[0], y[0] = (0.6, 0.8), 1 - y[0]
    spec = dpviz.RunSpec(dpviz.dataset(x, y, data_norm=1.0), mechanism="output-gaussian", lam=0.1, delta=1e-5)
    made = [dpviz.release(spec, all_rows=True) for _ in range(count)]
    return np.array([one.model.theta for one in made]), made[-1]


def audit(count: int) -> set[str]:
    """What is wrong with `count` thetas of each of two neighbours, in words; nothing where all is as promised."""
    (first, made), (second, _) = thetas(count, False), thetas(count, True)
    step, scale = json.loads(made.model.to_json())["privacy"]["grid"], made.calibration.noise_scale
    wrong = set()
    both = np.concatenate([first, second])
    if len(np.unique(both, axis=0)) < len(both):
        wrong.add("repeated")
    if (both / step != np.rint(both / step)).any():
        wrong.add("off the grid")
    bits = [((np.rint(theta / step).astype(np.int64)[:, :, None] >> np.arange(_LOW)) & 1) for theta in (first, second)]
    tests = bits[0].shape[1] * _LOW
    for j, b in product(range(bits[0].shape[1]), range(_LOW)):
        ones = [int(one[:, j, b].sum()) for one in bits]
        fair = [stats.binomtest(k, count).pvalue for k in ones]
        alike = stats.fisher_exact([[ones[0], count - ones[0]], [ones[1], count - ones[1]]]).pvalue
        if min(*fair, alike) < _LEVEL / (3 * tests):
            wrong.add("low bits")
    for j in range(first.shape[1]):  # the lowest four bits together
        table = [np.bincount(np.rint(theta[:, j] / step).astype(np.int64) & 15, minlength=16) for theta in (first, second)]
        if stats.chi2_contingency(np.array(table) + 1).pvalue < _LEVEL / first.shape[1]:
            wrong.add("low bits")
    for theta in (first, second):
        law = stats.chi2((count // 2) * theta.shape[1])
        square = ((theta[: 2 * (count // 2) : 2] - theta[1::2]) ** 2).sum() / (2 * scale**2)
        if min(law.cdf(square), law.sf(square)) < _LEVEL:
            wrong.add("noise")
    return wrong


def plant(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixes the source of randomness, so that a test is the same every time, and plants a mistake."""
    source = random.Random(4)
    monkeypatch.setattr(random, "SystemRandom", lambda: source)
    usual = grid.EXACT["gaussian"]
    if mistake == "half the noise":
        monkeypatch.setitem(grid.EXACT, "gaussian", lambda m, bits: ([k // 2 for k in usual(m, bits)[0]], usual(0, bits)[1]))
    elif mistake == "no rounding":

        def in_doubles(centre: np.ndarray, scale: float, *_: object) -> np.ndarray:
            draws, one = usual(len(centre), source)
            return centre + scale * np.array([draw / one for draw in draws])

        monkeypatch.setattr(grid, "add_on_grid", in_doubles)
    elif mistake == "a reused seed":
        monkeypatch.setattr(random, "SystemRandom", lambda: random.Random(5))
    elif mistake == "one low bit of the rows":  # rounding to every other multiple under one table
        added = grid.add_on_grid

        def parity(centre: np.ndarray, scale: float, *rest: object) -> np.ndarray:
            theta, step = added(centre, scale, *rest), grid.step_of(scale)  # type: ignore[arg-type]
            return theta - step * (np.rint(theta / step) % 2) * (np.rint(centre / step) % 2)

        monkeypatch.setattr(grid, "add_on_grid", parity)


SEEN = {
    "nothing": set[str](),
    "half the noise": {"noise"},
    "no rounding": {"off the grid"},
    "a reused seed": {"repeated", "low bits", "noise"},
    "one low bit of the rows": {"low bits"},
}


@pytest.mark.parametrize("mistake", mostly_long(SEEN, "nothing", "one low bit of the rows"))
def test_a_few_hundred_releases_are_as_promised_and_mistakes_are_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mistake, monkeypatch)
    assert audit(100) == SEEN[mistake]


@pytest.mark.long
def test_two_thousand_releases_of_neighbours_are_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    plant("nothing", monkeypatch)
    assert audit(1_000) == set()
