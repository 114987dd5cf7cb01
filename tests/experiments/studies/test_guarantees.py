"""Guarantees of all mechanisms side by side agree with the runs themselves."""

import numpy as np
import pytest

import dpviz
from dpviz.experiments.run.setup import calibration_of, setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import guarantees
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


def test_each_noise_is_that_of_the_run_at_its_own_automatic_regularisation() -> None:
    found = [one for one in guarantees.guarantees(RunSpec("breast-cancer", epsilon=10.0)) if one.calibration is not None]
    scales = {one.spec.mechanism: one.calibration.noise_scale for one in found}
    assert scales == {one.spec.mechanism: calibration_of(one.spec).noise_scale for one in found}
    assert len({setting_of(one.spec).lam for one in found}) > 1


@pytest.mark.long
def test_no_run_of_the_table_lets_an_attacker_do_better_than_is_tolerated() -> None:
    spec, attacker = RunSpec("breast-cancer"), Attacker.parse("advantage=0.9")
    found = [one for one in guarantees.guarantees(spec, attacker) if one.calibration is not None]
    scales = {one.spec.mechanism: one.calibration.noise_scale for one in found}
    assert scales == {one.spec.mechanism: calibration_of(one.spec).noise_scale for one in found}
    for one in found:
        attack = strongest_attack(one.spec.build(), setting_of(one.spec), one.calibration)
        assert attack is None or 2 * attack.accuracy - 1 <= 0.9 * (1 + 1e-6), one.spec.mechanism


def test_accuracies_are_those_of_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: dpviz.list_mechanisms()[name] for name in ("majority", "output-gaussian", "dp-gd")}
    monkeypatch.setattr(guarantees, "list_mechanisms", lambda: few)
    spec = RunSpec("teaching", mechanism="dp-gd", params={"steps": 5}, seeds=3)
    first, *_, last = guarantees.watch(spec)
    assert first.metrics == {}
    assert list(last.metrics) == ["output-gaussian", "dp-gd"]
    np.testing.assert_array_equal(last.metrics["dp-gd"]["accuracy"], dpviz.run(spec).accuracy)  # its own hyperparameters
    other = dpviz.run(RunSpec("teaching", mechanism="output-gaussian", seeds=3))
    np.testing.assert_array_equal(last.metrics["output-gaussian"]["accuracy"], other.accuracy)
    assert last.expected["output-gaussian"]["accuracy"] == other.expected_accuracy != other.accuracy.mean()
    assert last.baselines.at["majority", "accuracy"] == other.majority.accuracy
