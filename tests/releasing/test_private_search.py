"""A private search releases one model; its epsilon pays for the choice, and mistakes are noticed."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import assert_refused

import dpviz
from dpviz.mechanisms import get_mechanism
from dpviz.models import get_model
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.repeated_selection import best_of, repetitions, replace_one_curve
from dpviz.privacy.budget import Budget, Status
from dpviz.releasing.tuning import private_search
from dpviz.spending import Ledger
from dpviz.spending.private_search import Candidate, Plan, plan, search

SPEC = dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=2.0)
LAM = {"lam": [1e-3, 1e-2, 1e-1]}
TOTAL = Budget(2.0, 1e-6)


def candidates(*lams: float, mechanism: str = "output-gaussian", n: int = 1000, **knobs: object) -> list[Candidate]:
    return [Candidate(get_mechanism(mechanism).from_params(knobs), get_model("logistic").setting(n, 5, lam)) for lam in lams]


@pytest.mark.parametrize("mechanism", ["output-gaussian", "cms-output", "dp-gd", "rsgd-ar", "outpert-gd", "dp-sgd"])
@pytest.mark.parametrize("kind", ["geometric", "logarithmic", "poisson"])
def test_the_plan_meets_the_total_and_wastes_little(mechanism: str, kind: str) -> None:
    some, distribution = candidates(1e-2, 1e-1, mechanism=mechanism), repetitions(kind, 10.0)
    made = plan(some, distribution, TOTAL)
    curves = [
        replace_one_curve(c.mechanism.released_event(c.setting, cal))  # type: ignore[attr-defined]
        for c, cal in zip(some, made.calibrations, strict=True)
    ]
    score = np.asarray(rdp.ORDERS) / (2 * made.score_sigma**2)
    for curve in (*curves, score):  # a row takes part in training or in scores
        assert best_of(curve, distribution, 1e-6) <= 2.0 * (1 + 1e-9)
    assert 1.98 <= made.total.epsilon <= 2.0
    assert made.each.epsilon < 2.0


def test_a_run_costs_more_than_the_total_allows_if_the_choice_were_free() -> None:
    """The control: runs at the total itself, as a search that forgets to pay would train them."""
    each = plan(candidates(1e-2), repetitions("geometric", 10.0), TOTAL).each
    assert each.epsilon < 0.75 * TOTAL.epsilon
    cal = get_mechanism("output-gaussian")().calibrate(get_model("logistic").setting(1000, 5, 1e-2), TOTAL)
    event = get_mechanism("output-gaussian")().released_event(get_model("logistic").setting(1000, 5, 1e-2), cal)
    assert best_of(replace_one_curve(event), repetitions("geometric", 10.0), 1e-6) > 1.5 * TOTAL.epsilon


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_search_for_persons_costs_the_total_by_group_privacy(rows: int) -> None:
    """Joined by hand: k replacements, each at the cost of the whole search for a row; the control is the plan for a row."""
    total, distribution, some = Budget(3.0, 1e-6), repetitions("logarithmic", 5.0), candidates(1e-2, 1e-1)
    made = plan(some, distribution, total, rows)
    assert made.total.epsilon <= total.epsilon
    assert made.total.delta <= total.delta * (1 + 1e-9)
    assert made.total.epsilon >= 0.98 * total.epsilon
    delta = made.each.delta
    assert delta * sum(np.exp(i * total.epsilon / rows) for i in range(rows)) == pytest.approx(total.delta)

    def cost(of: Plan) -> float:
        released = [c.mechanism.released_event(c.setting, cal) for c, cal in zip(some, of.calibrations, strict=True)]  # type: ignore[attr-defined]
        return max(best_of(replace_one_curve(event), distribution, delta) for event in released)

    assert rows * cost(made) <= total.epsilon * (1 + 1e-9)
    assert (rows * cost(plan(some, distribution, total)) > 1.5 * total.epsilon) == (rows > 1)
    cal = made.calibration(0)
    assert (cal.person_rows, cal.proved_budget) == (rows, made.total)
    assert ("group privacy of the whole search" in cal.accountant) == (rows > 1)
    with pytest.raises(ValueError, match="for a row"):
        plan([replace(c, setting=replace(c.setting, person_rows=rows)) for c in some], distribution, total, rows)
    if rows > 1:
        assert_refused(plan, some, distribution, Budget(1e6, 1e-6), rows, match="leaves no δ")


def test_the_number_of_runs_and_the_settings_are_random_and_the_best_is_taken() -> None:
    made = plan(candidates(1e-3, 1e-2, 1e-1), repetitions("geometric", 4.0), TOTAL)
    runs, tried, source = [], Counter[int](), random.Random(5)
    for _ in range(400):
        scores: list[tuple[float, int]] = []

        def train(index: int, scores: list[tuple[float, int]] = scores) -> int:
            tried[index] += 1
            scores.append((0.0, index))
            return len(scores)

        _, model = search(made, train, lambda model: 10**9 * model, source)
        assert model == len(scores), "the run with the highest score is the last one here"
        runs.append(len(scores))
    assert np.mean(runs) == pytest.approx(4.0, abs=5 * np.sqrt(12 / 400))
    assert len(set(runs)) > 5, "a fixed number of runs is not covered by the proof"
    assert min(tried.values()) > 0.8 * max(tried.values())


def test_scores_carry_the_noise_of_the_plan() -> None:
    """The control is a search without noise, which would always take the model that is right once more."""
    made = plan(candidates(1e-2, 1e-1), repetitions("geometric", 50.0), TOTAL)
    source, wins = random.Random(2), Counter[int]()
    for _ in range(300):
        index, _ = search(made, lambda index: index, lambda index: 100 + index, source)
        wins[index] += 1
    assert made.score_sigma > 2
    assert 20 < wins[0] < wins[1] + 60


def test_the_release_says_what_it_is(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.toml", table="t", limit=Budget(3.0, 1e-4))
    made = private_search(SPEC, LAM, ledger=ledger, call="a search")
    proved = made.calibration.proved_budget
    assert proved.epsilon <= 2.0
    assert made.calibration.status is Status.PROVED_IF
    assert made.spec.lam in LAM["lam"]
    assert "private search chose from a list of 3 settings" in made.card
    assert "only the best model leaves the search" in made.card
    (entry,) = ledger.entries()
    assert (entry.what, entry.release, entry.call) == ("search", proved, "a search")
    made.save(tmp_path / "model")
    assert dpviz.load_model(tmp_path / "model").theta.tolist() == made.model.theta.tolist()
    assert_refused(private_search, SPEC, LAM, ledger=ledger, match="would bring the total")


@pytest.mark.parametrize(
    ("spec", "values", "more", "field"),
    [
        (SPEC, {}, {}, "grid"),
        (SPEC, {"lam": []}, {}, "grid"),
        (SPEC, {"nothing": [1]}, {}, "grid"),
        (SPEC, {"lam": [-1.0]}, {}, "lam"),
        (SPEC, {"lam": list(np.geomspace(1e-4, 1, 300))}, {}, "grid"),
        (SPEC, LAM, {"mean_runs": 1.0}, "mean_runs"),
        (SPEC, LAM, {"held_out": 0.9}, "held_out"),
        (SPEC, LAM, {"distribution": "uniform"}, "distribution"),
        (dpviz.RunSpec("teaching", mechanism="pidp-sgd"), LAM, {}, "mechanism"),
        (dpviz.RunSpec("teaching", mechanism="non-private"), LAM, {}, "mechanism"),
        (dpviz.RunSpec("teaching", mechanism="majority"), LAM, {}, "mechanism"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_words(
    spec: dpviz.RunSpec, values: dict[str, list[float]], more: dict[str, object], field: str
) -> None:
    assert_refused(private_search, spec, values, field=field, **more)
