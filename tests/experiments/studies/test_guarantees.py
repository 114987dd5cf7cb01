"""Guarantees of all mechanisms beside the runs; tables behind the pages on sensitivity and accountants."""

import numpy as np
import pytest
from support import assert_refused

import dpviz
from dpviz.experiments.run.setup import calibration_of, setting_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import guarantees, observed, scaling
from dpviz.mechanisms.attack import Attacker, strongest_attack
from dpviz.privacy.budget import Status


def test_every_private_mechanism_has_a_row_and_the_label_of_its_calibration() -> None:
    found = {one.spec.mechanism: one for one in guarantees.guarantees(RunSpec("teaching", mechanism="dp-gd", seeds=2))}
    assert set(found) == {name for name, cls in dpviz.list_mechanisms().items() if cls.family != "reference"}
    for one in found.values():
        assert (one.calibration is None) == bool(one.problem)
    labels = {name: one.calibration.status for name, one in found.items() if one.calibration is not None}
    assert labels["output-gaussian"] is Status.PROVED
    assert labels["dbdp-pi"] is Status.CLAIM


@pytest.mark.parametrize("attacker", [None, pytest.param(Attacker.parse("advantage=0.9"), marks=pytest.mark.long)])
def test_each_noise_is_that_of_the_run_at_its_own_regularisation_and_no_attacker_does_better_than_is_tolerated(
    attacker: Attacker | None,
) -> None:
    rows = guarantees.guarantees(RunSpec("breast-cancer", epsilon=10.0 if attacker is None else 1.0), attacker)
    found = [one for one in rows if one.calibration is not None]
    scales = {one.spec.mechanism: one.calibration.noise_scale for one in found}
    assert scales == {one.spec.mechanism: calibration_of(one.spec).noise_scale for one in found}
    assert len({setting_of(one.spec).lam for one in found}) > 1
    for one in found if attacker else ():
        attack = strongest_attack(one.spec.build(), setting_of(one.spec), one.calibration)
        assert attack is None or 2 * attack.accuracy - 1 <= 0.9 * (1 + 1e-6), one.spec.mechanism


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
        assert_refused(observed.observed_sensitivity, problem, built[name], 1, seed=0, match="has no query of bounded")


def test_what_is_observed_stays_below_the_bound_at_every_value() -> None:
    over = scaling.axis(SPEC, "lam")
    table = scaling.observed_table(scaling.observe(SPEC, over, ()))
    worst = scaling.bounds(SPEC, over).set_index("lam").iloc[:, 0]
    seen = table.set_index("x")[list(observed.KINDS)].max(axis=1)
    assert len(seen) == 5
    assert (seen <= worst.loc[seen.index] * (1 + 1e-6)).all()
    assert not (seen <= 0.01 * worst.loc[seen.index]).any(), "adversarial neighbours come near"
