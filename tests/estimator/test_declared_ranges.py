"""Declared norms and ranges: rows beyond are clipped, also at the ends of double precision, and nothing else is read."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support_estimator import rows

import dpviz
from dpviz import PrivacyWarning, PrivateClassifier
from dpviz.common.validate import InvalidInput
from dpviz.estimator.features import by_ranges


def test_rows_outside_are_clipped_with_a_warning() -> None:
    x, y = rows()
    long = x.copy()
    long[0] *= 100 / np.linalg.norm(long[0])
    short = long.copy()
    short[0] /= 100
    within = PrivateClassifier(random_state=0).fit(short, y)
    for options in ({}, {"ranges": (-1, 1)}):
        with pytest.warns(PrivacyWarning, match=f"1 of 400 rows outside {'ranges' if options else 'data_norm'} were clipped"):
            clipped = PrivateClassifier(random_state=0, **options).fit(long, y)
        if not options:
            np.testing.assert_allclose(clipped.coef_, within.coef_, atol=1e-9)


def test_nothing_is_read_from_the_rows_unless_it_is_written_out() -> None:
    x, y = rows()
    with pytest.raises(InvalidInput, match="from data"):
        PrivateClassifier(data_norm=None).fit(x, y)
    model = PrivateClassifier(ranges="from data").fit(x, y)
    assert model.guarantee_.looked_at == ("the range of x0", "the range of x1", "class labels")
    assert ", given 2 ranges and categories that were read from the rows" in str(model.guarantee_)


def test_corners_of_declared_ranges_reach_the_unit_sphere_and_nothing_lies_beyond() -> None:
    """Also without a constant feature, where 0 stays 0 and a range need not lie around it."""
    corners = np.array(list(itertools.product((-4.0, 1.0), repeat=3)))
    for intercept in (True, False):
        z, outside = by_ranges(corners, (-4, 1), ["a", "b", "c"], intercept).rows(corners, intercept)
        assert not outside
        assert np.linalg.norm(z, axis=1).max() == pytest.approx(1.0)
    far = by_ranges(corners, (-4, 1), ["a", "b", "c"], True)
    beyond, outside = far.rows(np.array([[-9.0, 0.0, 7.0]]), True)
    assert outside
    np.testing.assert_allclose(beyond, far.rows(np.array([[-4.0, 0.0, 1.0]]), True)[0])


def test_ranges_are_centred_beside_an_intercept_and_empty_ones_are_refused() -> None:
    corners = np.array(list(itertools.product((-4.0, 1.0), (2.0, 3.0))))
    z, _ = by_ranges(corners, [(-4, 1), (2, 3)], ["a", "b"], True).rows(corners, False)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1.0)  # every corner, so that no part of the ball is wasted
    np.testing.assert_allclose(z.sum(axis=0), 0.0, atol=1e-12)
    for ranges in ((1, 1), (2, 1)):
        with pytest.raises(InvalidInput, match="not below"):
            by_ranges(corners, ranges, ["a", "b"], True)


ENDS = [1.5e308, -1.7e308, 5e-324, 1e-320, 3.4e38, 1.4e-45, 1e160, 1e-160, 0.0]


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
@pytest.mark.parametrize("options", [{"data_norm": 0.5}, {"data_norm": 1e-140}, {"data_norm": 1e140}, {"ranges": (-1, 2)}])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_row_at_the_ends_of_double_precision_stays_within_its_clip(options: dict[str, object], intercept: bool) -> None:
    """It moves the minimiser by no more than is declared, and does not end the fit."""
    x, y = rows(60)
    x = x * float(options.get("data_norm", 1.0))  # type: ignore[arg-type]
    made = PrivateClassifier("output-gaussian", lam=0.1, fit_intercept=intercept, random_state=0, **options)  # type: ignore[arg-type]
    before = made.fit(x, y)
    unit = float(options.get("data_norm", 1.0)) if "data_norm" in options else np.sqrt(2) * 1.5  # type: ignore[arg-type]
    sensitivity = dpviz.calibrate("output-gaussian", n=60, d=2 + intercept, epsilon=1.0, lam=0.1).sensitivity
    coef = before.coef_ * unit
    for value in zip(ENDS, [*ENDS[4:], *ENDS[:4]], strict=True):
        moved = x.copy()
        moved[0] = value
        after = made.fit(moved, y).coef_ * unit  # the same noise, so the difference is that of the minimisers
        assert np.isfinite(after).all()
        assert np.linalg.norm(after - coef) <= sensitivity * (1 + 1e-6)


@pytest.mark.filterwarnings("ignore::dpviz.PrivacyWarning")
def test_values_whose_sum_overflows_give_no_other_warning() -> None:
    x, y = rows(60)
    x[0], x[1] = 1.7e308, -1.7e308
    fitted = PrivateClassifier(ranges=(-1, 1), random_state=0).fit(x, y)
    assert fitted.predict(x[2:]).shape == (58,)


@pytest.mark.parametrize("options", [{"data_norm": 1e-320}, {"ranges": (0, 5e-324)}, {"ranges": (-1.7e308, 1.7e308)}])
def test_units_beyond_double_precision_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="beyond double precision"):
        PrivateClassifier(**options).fit(*rows())  # type: ignore[arg-type]
