"""Pairs of neighbours that are audited."""

import numpy as np
import pytest
from support import make_problem
from support_game import BUDGET, SVM

import dpviz
from dpviz.auditing import PAIRS, audit, battery, most_influential, pair_without, replace_by, worst_case
from dpviz.auditing.pairs import differing_rows, make
from dpviz.auditing.result import NO_VIOLATION
from dpviz.common.validate import InvalidInput
from dpviz.influence import influence_of
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model
from dpviz.privacy.budget import Budget


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(("n", "d"), [(4, 2), (31, 7)])
def test_pairs_are_neighbours_in_the_unit_ball(name: str, n: int, d: int, model_id: str) -> None:
    pair = make(name, get_model(model_id), n, d, 0.1)
    assert differing_rows(pair.first, pair.second) == n - 1
    for problem in (pair.first, pair.second):
        assert problem.rows.norms.max() <= 1 + 1e-12
        assert set(problem.rows.y) <= {-1.0, 1.0}
        if name in ("quiet", "presence", "opposed"):  # as many of either label, so that none is learnt for its number
            assert abs(problem.rows.y[:-1].sum()) <= 1


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
    with pytest.raises(InvalidInput, match="row"):
        replace_by(problem, 3, np.full(3, 2.0), 1.0)
    with pytest.raises(InvalidInput, match="pair"):
        audit(OutputGaussian(), problem, problem, Budget(1.0, 1e-5))
    assert [p.name for p in battery(OutputGaussian(), SVM)] == list(PAIRS)


def test_add_remove_is_audited_on_a_row_that_is_there_or_not() -> None:
    budget, relation = Budget(1.0, 1e-5), dpviz.list_mechanisms()["dp-sgd"].from_params({"relation": "add-remove", "epochs": 1.0})
    replaced = make("quiet", SVM, 20, 2, 0.2)
    with pytest.raises(InvalidInput, match="replaces one"):
        audit(relation, replaced.first, replaced.second, budget, runs=40)
    problem = make_problem(n=20, d=2, lam=0.2)
    gone = pair_without(problem, 3)
    assert audit(relation, gone.first, gone.second, budget, runs=40).verdict == NO_VIOLATION
    network = pair_without(make_problem(n=20, d=2, lam=0.2, model="mlp"), 3)
    with pytest.raises(InvalidInput, match="row of zeros"):
        audit(relation, network.first, network.second, budget, runs=40)
