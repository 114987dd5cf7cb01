"""Audits that start from a run, and the survey of all mechanisms: they attack what they say, with the run's own numbers."""

import math

import numpy as np
import pytest

import dpviz
from dpviz.auditing import EXCEEDED, NO_CLAIM, audit, worst_case
from dpviz.auditing.attacks.halves import Halves
from dpviz.auditing.pairs import differing_rows
from dpviz.auditing.result import NO_VIOLATION
from dpviz.auditing.runs import audit_run, one_run_of, pair_of, watch_run
from dpviz.auditing.survey import survey, table
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.setup import mechanism_for_rows, setup_for
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms.knobs import Number
from dpviz.models import get_model
from dpviz.privacy.budget import Budget

SPEC = dpviz.RunSpec("teaching", mechanism="output-gaussian", lam=0.1, seed=3, seeds=4)
SHARED = setup_for(SPEC)
IDS = SHARED.split.train


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kind", ["without", "label-flip", "two-rows"])
def test_the_pair_of_a_run_changes_the_row_that_was_asked_for(kind: str, named: bool) -> None:
    at, by = (7, 4) if named else (0, 1)  # the first and the second training row where none is named
    pair = pair_of(SPEC, kind, row=int(IDS[at]), other=int(IDS[by])) if named else pair_of(SPEC, kind)
    rows = SHARED.problem.rows
    assert differing_rows(pair.first, pair.second) == at
    np.testing.assert_array_equal(pair.first.rows.X, rows.X)
    x, y = {
        "without": (np.zeros(rows.X.shape[1]), rows.y[at]),
        "label-flip": (rows.X[at], -rows.y[at]),
        "two-rows": (rows.X[by], rows.y[by]),
    }[kind]
    np.testing.assert_array_equal(pair.second.rows.X[at], x)
    assert pair.second.rows.y[at] == y
    assert f"ow {IDS[at]}" in pair.why
    assert kind != "two-rows" or f"row {IDS[by]}" in pair.why


def test_what_is_no_training_row_is_refused() -> None:
    missing = int(SHARED.split.test[0])
    for kind, asked in (("label-flip", {"row": missing}), ("two-rows", {"row": int(IDS[0]), "other": missing})):
        with pytest.raises(InvalidInput, match="not a training row") as refused:
            pair_of(SPEC, kind, **asked)
        assert refused.value.field == list(asked)[-1]
    with pytest.raises(InvalidInput, match="pair"):
        pair_of(SPEC, "nothing")


def test_the_game_of_a_run_has_the_runs_own_mechanism_budget_and_seed() -> None:
    pair, budget = pair_of(SPEC), dpviz.resolve(SPEC).budget
    assert (pair.first.n, pair.first.rows.X.shape[1], pair.first.lam) == (1000, 2, 0.1)
    *_, (_, last) = watch_run(SPEC, runs=120, confidence=0.9, looks=2)
    by_hand = audit(SPEC.build(), pair.first, pair.second, budget, 120, SPEC.seed, confidence=0.9)
    for result in (last, audit_run(SPEC, runs=120, confidence=0.9)):
        assert (result.seed, result.confidence, result.runs, result.score) == (3, 0.9, 120, by_hand.score)
        assert result.counts == by_hand.counts
        assert result.calibration == by_hand.calibration
    assert audit_run(SPEC, runs=120, score="gradient").score == "gradient"
    canaries, one = one_run_of(SPEC, 60)
    assert (one.seed, one.calibration.budget) == (3, budget)
    assert len(canaries.positions) == 60


def test_a_survey_audits_every_mechanism_on_its_worst_pair() -> None:
    model, budget, seen = get_model("svm"), Budget(1.0, 1e-5), list[float]()
    few = {name: dpviz.list_mechanisms()[name] for name in ("output-gaussian", "input-perturbation", "non-private")}
    rows = list(survey(model, budget, mechanisms=few, runs=200, lam=1e-6, monitor=seen.append))
    assert [row.mechanism for row in rows] == list(few)
    proved, claimed, nothing = rows
    pair = worst_case(few["output-gaussian"](), model, budget, n=60, d=2, lam=0.01)  # with less lambda it would be far out
    alone = audit(few["output-gaussian"](), pair.first, pair.second, budget, 200, 0, confidence=0.99)
    assert (proved.claimed, proved.proved, proved.audited) == (1.0, 1.0, alone.epsilon_lower)
    assert proved.gaussian == alone.measured_epsilon_lower
    assert (proved.verdict, proved.by, proved.exceeded) == (NO_VIOLATION, "", False)
    assert (claimed.claimed, math.isnan(claimed.proved), claimed.verdict, claimed.exceeded) == (1.0, True, EXCEEDED, True)
    assert claimed.by
    assert (math.isnan(nothing.claimed), math.isnan(nothing.proved), nothing.verdict) == (True, True, NO_CLAIM)
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 1
    assert list(table(rows)["mechanism"]) == list(few)


@pytest.mark.parametrize("mechanism", ["dp-sgd", "song-sgd", "rsgd", "objective-tight"])
def test_an_audit_has_the_automatic_hyperparameters_of_its_run(mechanism: str) -> None:
    """On 1,000 synthetic rows, on canaries and on halves: what the rules give for all rows, batches of the same share."""
    network = mechanism == "dp-sgd"  # its rule of the sampling rate has 10,000 rows as its limit
    params = {"epochs": 0.5} if network else {}
    spec = dpviz.RunSpec("census-15000", "mlp-2" if network else "logistic", mechanism=mechanism, seeds=1, params=params)
    run, built = dpviz.resolve(spec), spec.build()
    chosen = built.settled(setup_for(spec).problem.setting, run.budget)
    kinds = {name: knob for name, knob in built.knobs().items() if knob.automatic}

    def same(other: Mechanism, n: int) -> None:
        for name, knob in kinds.items():
            share = n / run.n_train if isinstance(knob, Number) and knob.share_of_rows else 1.0
            assert getattr(other, name) == pytest.approx(share * getattr(chosen, name), abs=0.5 if share < 1 else 0)

    same(mechanism_for_rows(spec, 1000), 1000)
    same(Halves.make(spec).mechanism, run.n_train // 2)
    if network:
        assert chosen.sampling_rate == 0.02 != built.settled(get_model("mlp-2").setting(1000, 2, 0.1), run.budget).sampling_rate
        made = audit_run(spec, runs=40), one_run_of(spec, 20)[1], Halves.make(spec)
        assert [one.calibration.details["sampling_rate"] for one in made] == [0.02] * 3


def test_the_batches_of_a_claim_stay_those_of_the_run() -> None:
    """PIDP claims single rows only: on more rows than the run's they are no larger share, and the claim is audited."""
    spec = dpviz.RunSpec("teaching", mechanism="pidp-sgd", seeds=1)
    assert mechanism_for_rows(spec, 1000).batch_size == 1
    assert spec.build().knobs()["batch_size"].unit == "rows", "what keeps its share of the rows is declared, not read off a unit"
    assert one_run_of(spec, 1000)[1].calibration.claimed_budget is not None
