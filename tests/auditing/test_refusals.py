"""What cannot be audited is refused in words, before the first run."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from support import assert_refused, make_problem
from support_game import BUDGET, SVM

import dpviz
from dpviz.auditing import audit, audit_one_run, axis_canaries, pair_without, replace_by
from dpviz.auditing.attacks.study import attack_over_epsilon
from dpviz.auditing.pairs import Pair, label_flip, make
from dpviz.auditing.runs import pair_of
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model

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
