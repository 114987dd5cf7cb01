"""Tables behind the page on sensitivity and behind the comparison of accountants, without a page."""

from dataclasses import replace

import numpy as np
import pytest

import dpviz
from dpviz.experiments.run.setup import setting_of, setup_for
from dpviz.experiments.studies import excess_risk, noise_comparison, observed, scaling
from dpviz.papers import rate_curves

SPEC = dpviz.RunSpec(dataset="teaching", mechanism="output-gaussian", seeds=2)


def test_a_sensitivity_that_is_2G_over_n_lambda_has_the_slopes_of_that_formula() -> None:
    for name in ("n", "lam"):
        over = scaling.axis(SPEC, name)
        table = scaling.bounds(SPEC, over)
        column = table.columns[0]
        assert scaling.slopes(over.grid, table[column]).fitted == pytest.approx(-1, abs=1e-5)
        # what the solver leaves does not fall with n: a few millionths at the largest n
        assert scaling.reference(over, table[column]) == pytest.approx(table[column].to_numpy(), rel=1e-5)


def test_only_what_changes_the_sensitivity_is_an_axis() -> None:
    spec = dpviz.RunSpec(dataset="teaching", mechanism="rsgd")
    assert {"n", "lam", "step_size", "batch_size"} <= set(scaling.axes(spec))
    for name in scaling.axes(spec):
        over = scaling.axis(spec, name)
        assert (np.diff(over.grid) > 0).all()
        assert over.grid[0] <= over.value <= over.grid[-1] or name == "n"
    assert scaling.axis(spec, "batch_size").grid[-1] <= setting_of(spec).n, "no batch has more rows than there are"


def test_methods_without_a_protected_query_say_so_before_anything_is_trained() -> None:
    setting = setting_of(SPEC)
    built = {name: cls() for name, cls in dpviz.list_mechanisms().items() if cls.refusal(setting) is None}
    can = {name for name, m in built.items() if observed.protects_a_query(m, setting)}
    assert "output-gaussian" in can
    assert "non-private" not in can
    problem = setup_for(SPEC).problem
    for name in sorted(set(built) - can):
        with pytest.raises(dpviz.InvalidInput, match="has no query of bounded"):
            observed.observed_sensitivity(problem, built[name], 1)


def test_what_is_observed_stays_below_the_bound_at_every_value() -> None:
    over = scaling.axis(SPEC, "lam")
    table = scaling.observed_table(scaling.observe(SPEC, over, ()))
    worst = scaling.bounds(SPEC, over).set_index("lam").iloc[:, 0]
    seen = table.set_index("x")[list(observed.KINDS)].max(axis=1)
    assert len(seen) == 5
    assert (seen <= worst.loc[seen.index] * (1 + 1e-6)).all()
    assert not (seen <= 0.01 * worst.loc[seen.index]).any(), "adversarial neighbours come near"


def test_rates_go_through_the_middle_point_and_the_own_method_comes_first() -> None:
    spec = dpviz.RunSpec(dataset="teaching", mechanism="dp-gd", seeds=3, params={"clip_norm": 1.0})
    over = excess_risk.AXES["epsilon"]
    found = over.measure(spec, (0.1, 1.0, 10.0))
    curves = rate_curves.rate_curves(spec, over, found)
    assert curves[0].own
    assert not curves[-1].own
    for curve in curves:
        assert curve.scaled[1] == pytest.approx(found[1].mean)
    assert next(c for c in curves if c.own).slope == pytest.approx(-2, abs=1e-6), "d ln(1/delta)/(n eps)^2"
    formulas = excess_risk.theory(spec, found)
    assert list(excess_risk.table(found, formulas)["epsilon"]) == [0.1, 1.0, 10.0]
    share = excess_risk.share_of_the_start(formulas)
    assert 0 <= share <= 1
    assert rate_curves.rate_curves(dpviz.RunSpec(dataset="teaching", model="mlp", mechanism="dp-sgd"), over, found) == []


def test_accounted_noise_is_the_run_s_noise_and_gives_the_run_s_metrics() -> None:
    spec = replace(SPEC, seed=5, split_seed=3)
    found = noise_comparison.accounted(spec)
    assert "output-gaussian" in noise_comparison.with_releases(spec)
    result = dpviz.run(spec)
    again = noise_comparison.metrics_by_noise(spec, found.mechanism, found.calibration, [found.calibration.noise_scale])
    assert set(again) == set(result.metrics)
    for name, values in again.items():
        np.testing.assert_array_equal(values[0], result.metrics[name])
