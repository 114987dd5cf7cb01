"""Runs with private ranges: a tenth of the budget pays for them, each epsilon and seed has its own, and every answer says so."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import assert_refused

import dpviz
from dpviz.auditing import runs as audited_runs
from dpviz.common.validate import InvalidInput
from dpviz.datasets import Dataset
from dpviz.experiments.run import resolve as resolving
from dpviz.experiments.run.resolve import dataset_of, fit_key, resolve
from dpviz.experiments.run.run import tabulate
from dpviz.experiments.run.setup import calibration_of, setting_of, setup_for
from dpviz.experiments.studies import noise_comparison
from dpviz.experiments.studies.excess_risk import excess_over_epsilon
from dpviz.mechanisms import Mechanism, list_mechanisms, protection
from dpviz.mechanisms.attack import strongest_attack
from dpviz.mechanisms.capabilities import BoundsDistance, DeclaresEvent
from dpviz.models import get_model
from dpviz.preparing import get_preparation, ranges
from dpviz.preparing.base import Facts
from dpviz.preparing.ranges import PUBLIC_KINDS
from dpviz.privacy.accounting.events import Gaussian
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu, total_variation
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.budget import Budget
from dpviz.privacy.private_ranges import shares

WHOLE = Budget(1.0, 1e-5)
OF_RANGES, OF_METHOD = Budget(0.1, 1e-6), Budget(0.9, 9e-6)
KINDS = (
    "output-gaussian",
    "nsgd",
    "cms-output",
    "objective-tight",
    "dp-gd",
    "song-sgd",
    "fukuchi-input",
    "ldp-gaussian",
    "majority",
)
SETTING = get_model("logistic").setting(2000, 10, 0.01)
RANGED = replace(SETTING, preparations=(get_preparation("ranges").cost(Facts(2000, WHOLE)),))


def spec(mechanism: str = "output-gaussian", epsilon: float = 1.0, **how: Any) -> dpviz.RunSpec:
    return dpviz.RunSpec("census-2000", mechanism=mechanism, epsilon=epsilon, **{"ranges": "private", "seeds": 2, **how})


def ends(of: dpviz.RunSpec) -> dict[str, tuple[float, float]]:
    encoder = dataset_of(of).encoder
    return {c.name: (c.low, c.high) for c in encoder.columns if c.kind == "number"}


def left(mechanism: Mechanism, whole: Budget = WHOLE) -> Budget:
    """What ranges for a tenth leave: exactly of a Gaussian release, by basic composition of another one."""
    if protection.calibrate(mechanism, SETTING, whole).mu is None:
        return shares(whole)[1]
    mu = math.sqrt(gaussian_mu(whole) ** 2 - gaussian_mu(shares(whole)[0]) ** 2)
    return Budget(float(gaussian_epsilon(whole.delta, mu)), whole.delta)


@pytest.mark.parametrize("name", KINDS)
def test_a_method_of_each_kind_has_the_noise_of_what_is_left(name: str) -> None:
    """Against a calibration for what is left without private ranges, and the sum of both budgets."""
    mechanism = list_mechanisms()[name]()
    try:
        own = left(mechanism)
        alone = protection.calibrate(mechanism, SETTING, own)
    except InvalidInput:
        pytest.skip("refuses this budget")
    cal = protection.calibrate(mechanism, RANGED, WHOLE)
    assert cal.noise_scale == pytest.approx(alone.noise_scale, rel=1e-6)
    assert cal.noise_scale == 0 or cal.noise_scale > protection.calibrate(mechanism, SETTING, WHOLE).noise_scale
    assert (cal.budget, cal.method_budget.epsilon) == (WHOLE, pytest.approx(own.epsilon))
    if alone.proved_budget == own:
        assert cal.proved_budget == WHOLE
    assert (cal.claimed_budget is None) == (alone.claimed_budget is None)
    assert cal.proved_budget is None or PUBLIC_KINDS in cal.conditions
    assert any("found privately" in note for note in cal.notes)
    for knob, declared in mechanism.knobs().items():
        if declared.automatic:
            value = protection.knob_value(mechanism, knob, RANGED, WHOLE)
            assert value == pytest.approx(mechanism.value(knob, SETTING, own)), "a rule is for the noise that there is"
    if isinstance(mechanism, BoundsDistance) and alone.proved_budget is not None:
        apart = protection.distance(mechanism, SETTING, alone) + total_variation(gaussian_mu(OF_RANGES))
        assert protection.distance(mechanism, RANGED, cal) == pytest.approx(min(1, apart))
    if isinstance(mechanism, DeclaresEvent):
        assert (protection.released_event(mechanism, RANGED, cal) is None) == (mechanism.released_event(SETTING, alone) is None)


@pytest.mark.parametrize("name", ["output-gaussian", "dp-gd"])
def test_the_event_holds_the_ranges_and_the_method(name: str) -> None:
    """Accounted for part by part, and within the whole budget; one without the ranges would cost less."""
    mechanism = list_mechanisms()[name]()
    cal, alone = protection.calibrate(mechanism, RANGED, WHOLE), protection.calibrate(mechanism, SETTING, left(mechanism))
    event, own = protection.released_event(mechanism, RANGED, cal), protection.released_event(mechanism, SETTING, alone)
    together = total_epsilon([event], WHOLE.delta)
    assert total_epsilon([own], WHOLE.delta) < together <= WHOLE.epsilon
    assert together == pytest.approx(WHOLE.epsilon, rel=1e-3)
    assert together == pytest.approx(total_epsilon([Gaussian(gaussian_mu(OF_RANGES)), own], WHOLE.delta), rel=1e-3)
    attack = strongest_attack(mechanism, RANGED, cal)
    assert strongest_attack(mechanism, SETTING, alone).accuracy < attack.accuracy < attack.accuracy_by_budget


def test_training_rows_give_the_ranges_for_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, Budget]] = []
    original = ranges.private_ranges

    def watched(columns: dict[str, np.ndarray], budget: Budget, *rest: Any, **how: Any) -> Any:
        asked.append((len(next(iter(columns.values()))), budget))
        return original(columns, budget, *rest, **how)

    monkeypatch.setattr(ranges, "private_ranges", watched)
    dataset_of(spec(seed=11))
    x = np.random.default_rng(0).uniform(size=200)
    table = pd.DataFrame({"who": np.arange(200) % 50, "x": x, "y": np.where(x > 0.5, "b", "a")})
    rows = dpviz.dataset(table, target="y", person="who", person_rows=4)
    dataset_of(dpviz.RunSpec(rows, ranges="private"))
    (n, row), (persons, of_one) = asked
    assert (n, persons) == (1600, 160)
    assert gaussian_mu(row) == pytest.approx(gaussian_mu(OF_RANGES))
    tenth = shares(resolve(dpviz.RunSpec(rows)).budget)[0]
    assert gaussian_mu(of_one) == pytest.approx(gaussian_mu(tenth) / 4), "so that four rows cost the tenth"


def test_ranges_are_repeatable_and_follow_seed_and_epsilon() -> None:
    same, columns = ends(spec(lam=0.01)), dataset_of(replace(spec(), ranges="declared"))
    resolving._kept.clear()
    assert ends(spec()) == same
    assert same != {c.name: (c.low, c.high) for c in columns.encoder.columns if c.kind == "number"}  # type: ignore[union-attr]
    assert len({str(ends(spec(epsilon=0.6, seed=seed))) for seed in range(4)}) > 1
    first, other = spec(epsilon=1.0, lam=0.01), spec(epsilon=0.01, lam=0.01)
    assert fit_key(first) != fit_key(other)
    assert setup_for(first) is not setup_for(other)
    assert not np.array_equal(setup_for(first).problem.rows.X, setup_for(other).problem.rows.X)
    assert "too few to see" in dataset_of(other).remarks[-1]
    declared = replace(first, ranges="declared")
    assert fit_key(declared) == fit_key(replace(declared, epsilon=0.01))


def test_a_sweep_is_its_runs() -> None:
    """Each epsilon in its own ranges, whether cells, one call or single runs train it."""
    mechanism, epsilons = "output-gaussian", [0.01, 3.0]
    swept = dpviz.sweep("census-2000", mechanisms=[mechanism], epsilons=epsilons, seeds=2, lam=0.01, ranges="private")
    results = dpviz.run_epsilons(spec(mechanism, lam=0.01), epsilons, instances=False)
    together = tabulate(results)
    for k, epsilon in enumerate(epsilons):
        alone = dpviz.run(spec(mechanism, epsilon, lam=0.01))
        for table in (swept, together):
            part = table[table["epsilon"] == epsilon]
            assert part["accuracy"].to_numpy() == pytest.approx(alone.accuracy)
            assert part["log_loss"].to_numpy() == pytest.approx(alone.metrics["log_loss"].to_numpy())
            assert part["non_private_log_loss"].to_numpy() == pytest.approx(
                float(alone.setup.baselines.at["non-private", "log_loss"])
            )
        assert results[k].calibration.noise_scale == alone.calibration.noise_scale
    at = [one.mean for one in excess_over_epsilon(spec(mechanism, lam=0.01), epsilons)]
    assert at == pytest.approx([float(r.optimality_gap.mean()) for r in results])


def test_what_was_read_from_the_rows_is_found_instead() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(17, 91, 3000).astype(float), "job": rng.choice(["a", "b"], 3000)})
    rows: Dataset = dpviz.dataset(frame.assign(old=np.where(frame["age"] > 50, "yes", "no")), target="old")
    assert set(rows.looked_at) == {"age", "job"}
    assert dataset_of(dpviz.RunSpec(rows, ranges="private", epsilon=3.0)).looked_at == ("job",)


def test_rows_without_ranges_refuse() -> None:
    problems: list[InvalidInput] = []
    assert_refused(
        dpviz.run,
        dpviz.RunSpec("teaching", ranges="private"),
        match="ranges: no column of 'teaching' becomes a feature by its range",
    )
    assert resolve(dpviz.RunSpec("teaching", ranges="private"), problems).spec.ranges == "declared"
    assert [problem.field for problem in problems] == ["ranges"]


@pytest.mark.parametrize("kind", ["worst-case", "label-flip"])
def test_an_audit_is_of_the_method_with_its_part(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def prepare(mechanism: Any, first: Any, second: Any, budget: Budget, *rest: Any) -> None:
        given.extend((protection.calibrate(mechanism, first.setting, budget), first.setting, second.setting))

    monkeypatch.setattr(audited_runs, "prepare", prepare)
    monkeypatch.setattr(audited_runs, "watch", lambda *_: [SimpleNamespace()])
    audited_runs.audit_run(spec("dp-gd"), kind, runs=40)
    cal, first, second = given
    assert 0.9 < cal.budget.epsilon < 1.0
    assert (cal.preparation_mu, first.preparations, second.preparations) == (0, (), ())
    whole = calibration_of(spec("dp-gd"))
    assert (cal.budget, cal.noise_scale * first.n) == (whole.method_budget, pytest.approx(whole.noise_scale * 1600))


def test_accountants_compare_the_method_alone() -> None:
    found = noise_comparison.accounted_release(spec("dp-gd"))
    assert (found.calibration.budget.epsilon, found.compared.budget) == (1.0, found.calibration.method_budget)
    own = found.compared.budget
    assert total_epsilon([found.released], own.delta) == pytest.approx(own.epsilon, rel=1e-3)
    assert "dp-gd" in noise_comparison.accountable_methods(spec("dp-gd"))
    assert [one.id for one in setting_of(spec("dp-gd")).preparations] == ["ranges"]


def test_the_key_holds_the_numbers_that_ranges_are_found_in() -> None:
    """In other units the rows are the same within their ranges, and their private ranges are not."""
    rows = np.random.default_rng(0).random((300, 2))
    labels = (rows[:, 0] > 0.5).astype(int)

    def key(unit: float, ranges: str) -> tuple[str, str]:
        frame = pd.DataFrame({"a": unit * rows[:, 0], "b": rows[:, 1], "y": labels})
        made = dpviz.dataset(frame, target="y", ranges={"a": (0.0, unit), "b": (0.0, 1.0)})
        run = dpviz.RunSpec(made.name, mechanism="output-gaussian", ranges=ranges)
        return resolve(run).key().replace(made.name, ""), made.sha256

    (declared, same), (private, alike) = key(1.0, "declared"), key(1.0, "private")
    assert same == alike == key(4.0, "declared")[1]
    assert key(4.0, "declared")[0] == declared
    assert key(4.0, "private")[0] != private
