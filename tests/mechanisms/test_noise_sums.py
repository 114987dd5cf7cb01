"""Sums of reports' noise: their joint law is that of noise drawn row by row, and rows drawn given them have both."""

import numpy as np
import pytest
from scipy import stats
from support import mostly_long

from dpviz.common.random import spawn
from dpviz.mechanisms.local.local_reports import NoiseSums

#: rows and features; more rows than features, as many, fewer, and one
SHAPES = mostly_long([(12, 3), (5, 4), (4, 4), (3, 5), (1, 2)], (5, 4), (1, 2))
DRAWS = 4000


def table(n: int, d: int) -> np.ndarray:
    """(n, d) rows; the last feature repeats the first one, so that the columns have a rank below their number."""
    rows = np.random.default_rng(1).standard_normal((n, d)) / np.sqrt(d)
    rows[:, -1] = rows[:, 0]
    return rows


def functionals(rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Numbers that hang on the sums together: (11,) of noise (n, d)."""
    return of_sums(noise.sum(axis=0), rows.T @ noise, noise.T @ noise)


def of_sums(total: np.ndarray, cross: np.ndarray, square: np.ndarray) -> np.ndarray:
    first, *_, last = np.linalg.eigvalsh(square)
    ends = [total[0], total @ cross[0], cross[0, -1], cross[-1, 0], np.abs(cross).sum(), total @ square @ total, first, last]
    return np.array([*ends, square[0, -1], square[0, 0] - square[-1, -1], np.linalg.eigvalsh(cross + cross.T + square)[-1]])


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_sums_have_the_joint_law_of_noise_drawn_row_by_row(n: int, d: int) -> None:
    rows, rng = table(n, d), np.random.default_rng(2)
    sums = NoiseSums(rows, rows.T @ rows)
    drawn = np.array([of_sums(*sums.draw(stream)) for stream in spawn(3, DRAWS)])
    plain = np.array([functionals(rows, rng.standard_normal((n, d))) for _ in range(DRAWS)])
    drawn[np.abs(drawn) < 1e-12], plain[np.abs(plain) < 1e-12] = 0.0, 0.0  # eigenvalues that are 0 but for rounding
    for mine, theirs in zip(drawn.T, plain.T, strict=True):
        assert stats.ks_2samp(mine, theirs).pvalue > 1e-5
    wrong = np.array([functionals(rows, 1.07 * rng.standard_normal((n, d))) for _ in range(DRAWS)])
    assert min(stats.ks_2samp(a, b).pvalue for a, b in zip(wrong.T, plain.T, strict=True)) < 1e-5, "the control"


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_rows_have_these_sums_and_are_standard_normal(n: int, d: int) -> None:
    rows = table(n, d)
    sums, streams = NoiseSums(rows, rows.T @ rows), spawn(4, DRAWS)
    noise = np.array([sums.rows(stream) for stream in streams])
    for one, stream in zip(noise[:20], streams, strict=False):
        total, cross, square = sums.draw(stream)
        np.testing.assert_allclose(one.sum(axis=0), total, atol=1e-9)
        np.testing.assert_allclose(rows.T @ one, cross, atol=1e-9)
        np.testing.assert_allclose(one.T @ one, square, atol=1e-9)
    flat = noise.reshape(DRAWS, n * d)
    directions = np.concatenate([np.eye(n * d)[[0, -1]], np.random.default_rng(5).standard_normal((6, n * d))])
    for direction in directions:
        assert stats.kstest(flat @ direction / np.linalg.norm(direction), "norm").pvalue > 1e-5
    assert stats.kstest((flat**2).sum(axis=1), stats.chi2(n * d).cdf).pvalue > 1e-5
    assert stats.kstest(1.12 * flat.ravel(), "norm").pvalue < 1e-5, "the control"
    np.testing.assert_allclose(flat.T @ flat / DRAWS, np.eye(n * d), atol=6 / np.sqrt(DRAWS))


@pytest.mark.parametrize(("n", "apart"), [(20_000, 0.0), (200_000, 0.0), (200_000, 1e-4)])
def test_many_rows(n: int, apart: float) -> None:
    """In double precision where they are not many, or two columns nearly equal."""
    rows, exact = table(n, 6), n == 20_000 or apart > 0
    rows[:, -1] += apart * np.random.default_rng(7).standard_normal(n)
    sums, stream = NoiseSums(rows, rows.T @ rows), spawn(6, 1)[0]
    noise = sums.rows(stream)
    assert (noise.dtype == np.float64) == exact
    noise, atol = noise.astype(float), 1e-7 if exact else 1e-5 * n**0.5
    for found, expected in zip((noise.sum(axis=0), rows.T @ noise, noise.T @ noise), sums.draw(stream), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0 if exact else 1e-5, atol=atol)
    assert stats.kstest(noise.ravel()[:100_000], "norm").pvalue > 1e-3
    between = (rows[:, -1] - rows[:, 0]) @ noise if apart else noise.sum(axis=0)
    assert stats.kstest(between / (n**0.5 * (apart or 1.0)), "norm").pvalue > 1e-3
