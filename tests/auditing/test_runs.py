"""Pairs of neighbours, audits of a run, the survey of all mechanisms, and what cannot be audited."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from support import assert_refused, make_problem
from support_game import BUDGET, SVM

import dpviz
from dpviz.auditing import (
    EXCEEDED,
    NO_CLAIM,
    PAIRS,
    audit,
    audit_one_run,
    axis_canaries,
    battery,
    most_influential,
    pair_without,
    replace_by,
    worst_case,
)
from dpviz.auditing.attacks.halves import Halves
from dpviz.auditing.attacks.study import attack_over_epsilon
from dpviz.auditing.pairs import Pair, differing_rows, label_flip, make
from dpviz.auditing.result import NO_VIOLATION
from dpviz.auditing.runs import audit_run, one_run_of, pair_of, watch_run
from dpviz.auditing.survey import survey, table
from dpviz.experiments.run.setup import mechanism_of, setup_for
from dpviz.influence import influence_of
from dpviz.mechanisms import HasWorstPair, Mechanism
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.knobs import Number
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
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
        assert_refused(pair_of, SPEC, kind, match="not a training row", field=list(asked)[-1], **asked)


def test_the_game_of_a_run_has_the_runs_own_mechanism_budget_and_seed() -> None:
    pair, budget = pair_of(SPEC), dpviz.resolve(SPEC).budget
    assert (pair.first.n, pair.first.rows.X.shape[1], pair.first.lam) == (1000, 2, 0.1)
    *_, (_, last) = watch_run(SPEC, runs=120, confidence=0.9, looks=2)
    by_hand = audit(SPEC.build(), pair.first, pair.second, budget, 120, SPEC.seed, confidence=0.9)
    for result in (last, audit_run(SPEC, runs=120, confidence=0.9)):
        assert (result.seed, result.confidence, result.runs, result.score) == (3, 0.9, 120, by_hand.score)
        assert (result.counts, result.calibration) == (by_hand.counts, by_hand.calibration)
    assert audit_run(SPEC, runs=120, score="gradient").score == "gradient"
    canaries, one = one_run_of(SPEC, 60)
    assert (one.seed, one.calibration.budget) == (3, budget)
    assert len(canaries.positions) == 60


@pytest.mark.long
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
    chosen = built.settle(setup_for(spec).problem.setting, run.budget)
    kinds = {name: knob for name, knob in built.knobs().items() if knob.automatic}

    def same(other: Mechanism, n: int) -> None:
        for name, knob in kinds.items():
            share = n / run.n_train if isinstance(knob, Number) and knob.share_of_rows else 1.0
            assert getattr(other, name) == pytest.approx(share * getattr(chosen, name), abs=0.5 if share < 1 else 0)

    same(mechanism_of(spec, 1000), 1000)
    same(Halves.make(spec).mechanism, run.n_train // 2)
    if network:
        assert chosen.sampling_rate == 0.02 != built.settle(get_model("mlp-2").setting(1000, 2, 0.1), run.budget).sampling_rate
        made = audit_run(spec, runs=40), one_run_of(spec, 20)[1], Halves.make(spec)
        assert [one.calibration.details["sampling_rate"] for one in made] == [0.02] * 3


def test_the_batches_of_a_claim_stay_those_of_the_run() -> None:
    """PIDP claims single rows only: on more rows than the run's they are no larger share, and the claim is audited."""
    spec = dpviz.RunSpec("teaching", mechanism="pidp-sgd", seeds=1)
    assert mechanism_of(spec, 1000).batch_size == 1
    assert spec.build().knobs()["batch_size"].unit == "rows", "what keeps its share of the rows is declared, not read off a unit"
    assert one_run_of(spec, 1000)[1].calibration.claimed_budget is not None


def test_the_worst_case_is_the_declared_pair_or_the_opposed_one_for_noise_on_rows() -> None:
    budget, names = Budget(1.0, 1e-5), {}
    for name in ("dbdp", "fukuchi-input", "output-gaussian"):
        names[name] = worst_case(dpviz.list_mechanisms()[name](), SVM, budget, n=20, d=3, lam=0.1).name
    assert names == {"dbdp": "own", "fukuchi-input": "opposed", "output-gaussian": "quiet"}


def test_quiet_pair_uses_up_the_sensitivity() -> None:
    pair = worst_case(OutputGaussian(), SVM, BUDGET, n=50, d=3, lam=0.1)
    bound = OutputGaussian().calibrate(pair.first.setting, BUDGET).sensitivity
    assert np.linalg.norm(pair.first.optimum - pair.second.optimum) == pytest.approx(bound, rel=1e-6)


def test_pairs_from_data() -> None:
    problem = make_problem(n=60, d=3, lam=0.05)
    worst = most_influential(problem)
    index = differing_rows(worst.first, worst.second)
    assert index == influence_of(problem).leave_one_out().norm.argmax()
    other = replace_by(problem, 3, np.zeros(3), -1.0)
    assert differing_rows(other.first, other.second) == 3
    assert [p.name for p in battery(OutputGaussian(), SVM)] == list(PAIRS)


def test_add_remove_is_audited_on_a_row_that_is_there_or_not() -> None:
    budget, relation = Budget(1.0, 1e-5), dpviz.list_mechanisms()["dp-sgd"].from_params({"relation": "add-remove", "epochs": 1.0})
    gone = pair_without(make_problem(n=20, d=2, lam=0.2), 3)
    assert audit(relation, gone.first, gone.second, budget, runs=40).verdict == NO_VIOLATION


OWN = [name for name, cls in dpviz.list_mechanisms().items() if issubclass(cls, HasWorstPair)]


@pytest.mark.parametrize("name", [*PAIRS, *OWN])
@pytest.mark.parametrize(("n", "d"), [(4, 2), (31, 7)])
def test_pairs_are_neighbours_in_the_unit_ball(name: str, n: int, d: int, model_id: str) -> None:
    model = get_model(model_id)
    if name in OWN:
        worst = dpviz.list_mechanisms()[name].worst_pair  # type: ignore[attr-defined]
        assert worst(model, model.setting(3, 2, 0.1)) is worst(model, model.setting(4, 1, 0.1)) is None
        sides = worst(model, model.setting(n, d, 0.1))
        along = [float(p.rows.y[-1] * p.rows.signed_rows[0] @ p.rows.X[-1]) for p in sides]
        assert along[0] == along[1] <= 0, "the others teach neither form"
        assert [p.rows.norms[-1] for p in sides] == pytest.approx([1.0, 1.0]), "a short row differs by less"
    else:
        pair = make(name, model, n, d, 0.1)
        sides = pair.first, pair.second
    assert differing_rows(*sides) == n - 1
    for problem in sides:
        assert (problem.n, problem.lam) == (n, 0.1)
        assert problem.rows.norms.max() <= 1 + 1e-12
        assert set(problem.rows.y) <= {-1.0, 1.0}
        if name in ("quiet", "presence", "opposed"):  # as many of either label, so that none is learnt for its number
            assert abs(problem.rows.y[:-1].sum()) <= 1


LINEAR, TWO, PROBLEM = make("quiet", SVM, 20, 2, 0.2), get_model("mlp-2"), make_problem(n=60, d=3, lam=0.05)
PERSONS = make("quiet", SVM, 20, 2, 0.2, 5)
QUERY, LEAVING = DPGD(steps=4), dpviz.list_mechanisms()["dp-sgd"].from_params({"relation": "add-remove"})
SVRG = dpviz.list_mechanisms()["dp-svrg"].from_params({"relation": "add-remove"})
MAJORITY = dpviz.list_mechanisms()["majority"].from_params({"private": True})
ROWS, LABELS = np.random.default_rng(0).standard_normal((300, 3)), np.arange(300) % 2


def audited(mechanism: Mechanism | None = None, pair: Pair = LINEAR, second: Any = None, **more: Any) -> object:
    other = pair.second if second is None else second
    return audit(mechanism or OutputGaussian(), pair.first, other, BUDGET, **{"runs": 40} | more)


def canaries(count: int, model: str = "logistic", mechanism: Mechanism = QUERY) -> Any:
    return axis_canaries(mechanism, get_model(model), BUDGET, count)


REFUSED: list[tuple[str, Callable[[], object]]] = [
    ("runs", lambda: audited(runs=3)),
    ("seed", lambda: audited(seed=-1)),
    ("score", lambda: audited(score="magic")),
    ("score", lambda: audited(QUERY, score="likelihood")),
    ("iterates", lambda: audited(iterates=(1,))),
    ("iterates", lambda: audited(QUERY, score="steps")),
    ("mechanism", lambda: audited(pair=make("quiet", get_model("mlp"), 20, 2, 0.2))),
    ("pair", lambda: audited(second=make("quiet", SVM, 19, 2, 0.2).second)),
    ("pair", lambda: audited(second=make("quiet", SVM, 20, 2, 0.3).second)),
    ("pair", lambda: audited(second=make("quiet", get_model("logistic"), 20, 2, 0.2).second)),
    ("pair", lambda: audited(pair=PERSONS, second=LINEAR.second)),
    ("pair", lambda: audited(second=LINEAR.first)),
    ("pair", lambda: pair_of(dpviz.RunSpec("teaching", mechanism="output-gaussian", lam=0.1), "nothing")),
    ("replaces one", lambda: audited(LEAVING)),
    ("row of zeros", lambda: audited(LEAVING, pair_without(make_problem(n=20, d=2, lam=0.2, model="mlp"), 3))),
    ("row of zeros", lambda: canaries(20, "mlp-4", LEAVING)),
    ("not the same as no row", lambda: audited(SVRG, make("presence", TWO, 30, 3, 0.1))),
    ("row", lambda: replace_by(PROBLEM, 3, np.full(3, 2.0), 1.0)),
    ("differ in 3 rows", lambda: label_flip(LINEAR.first, np.array([17, 18, 19]))),
    ("several persons", lambda: label_flip(PERSONS.first, np.arange(14, 20))),
    ("one label", lambda: audit_one_run(MAJORITY, canaries(20, mechanism=MAJORITY), BUDGET)),
    ("canaries", lambda: canaries(3)),
    ("canaries", lambda: canaries(10**6)),
    ("canaries", lambda: canaries(2000, "mlp")),
    ("canaries", lambda: audit_one_run(QUERY, canaries(20, mechanism=LEAVING), BUDGET)),
    ("confidence", lambda: audit_one_run(QUERY, canaries(20), BUDGET, confidence=0.3)),
    ("epsilons", lambda: list(attack_over_epsilon(dpviz.RunSpec("iris", mechanism="dp-gd"), []))),
    ("needs 10,000", lambda: dpviz.membership_risk("lira-online", 0.001)(LogisticRegression(), ROWS[:20], LABELS[:20])),
    ("no predict_proba", lambda: dpviz.membership_risk("lira-online", 0.001)(LinearSVC(), ROWS, LABELS)),
]


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_what_cannot_be_audited_is_refused(words: str, call: Callable[[], object]) -> None:
    assert_refused(call, match=words)
