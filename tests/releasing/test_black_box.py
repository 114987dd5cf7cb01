"""`dpviz release` as a black box: many models of two neighbouring tables, their low bits against each other, and their noise.

Nothing of how a release is made is looked at: only its parameters, and what its file says of its grid. 2,000 releases in the
long test, fewer in the others, which see the same mistakes.
"""

import json
import random
from itertools import product

import numpy as np
import pytest
from scipy import stats

import dpviz
from dpviz.releasing import grid

_LOW = 20  # bits above the grid that are below 2^-10 of the noise, where every value is as likely as its neighbours
_LEVEL = 1e-6  # of each audit, divided by its comparisons


def releases(count: int, moved: bool) -> tuple[np.ndarray, dpviz.releasing.Release]:
    """((count, m) parameters of releases of one table, the last release)."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 2)) / 3, (np.arange(50) % 2).astype(float)
    if moved:
        x[0], y[0] = (0.6, 0.8), 1 - y[0]
    spec = dpviz.RunSpec(dpviz.dataset(x, y, data_norm=1.0), mechanism="output-gaussian", lam=0.1, delta=1e-5)
    made = [dpviz.release(spec, all_rows=True) for _ in range(count)]
    return np.array([one.model.theta for one in made]), made[-1]


def audit(count: int) -> set[str]:
    """What is wrong with `count` releases of each of two neighbours, in words; nothing where all is as promised."""
    (first, made), (second, _) = releases(count, False), releases(count, True)
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


@pytest.mark.parametrize("mistake", SEEN)
def test_a_few_hundred_releases_are_as_promised_and_mistakes_are_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(mistake, monkeypatch)
    assert audit(100) == SEEN[mistake]


@pytest.mark.long
def test_two_thousand_releases_of_neighbours_are_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    plant("nothing", monkeypatch)
    assert audit(1_000) == set()
