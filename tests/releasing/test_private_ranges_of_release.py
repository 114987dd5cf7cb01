"""A release that finds ranges privately: what it shows and costs, and accuracy by the ranges of number columns."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import assert_refused
from support_shell import Shell

import dpviz
from dpviz.auditing import AuditResult
from dpviz.cli.main import main
from dpviz.dashboard.components.lessons import BY_ID
from dpviz.experiments.run.resolve import dataset_of
from dpviz.experiments.run.setup import setup_for
from dpviz.mechanisms.calibration import REAL_NOISE, SECRET_RANDOMNESS
from dpviz.mechanisms.persons import budget_of_row
from dpviz.preparing.ranges import PUBLIC_KINDS, ranges_matter
from dpviz.privacy.budget import Budget, Status
from dpviz.releasing import bounds, ranges, training
from dpviz.releasing.bounds import best_width, compare
from dpviz.spending import Ledger


def person_ledger(ledger: Ledger) -> Ledger:
    return Ledger.create(ledger.path.with_name("p.toml"), table="people", limit=Budget(5.0, 1e-4), unit="person")


TOTAL = Budget(1.0, 1e-5)


@pytest.fixture(autouse=True)
def _the_same_noise_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the operating system finds values where there are none in up to 5 % of all queries, as is declared."""
    source = random.Random(0)
    monkeypatch.setattr(random, "SystemRandom", lambda: source)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"age": rng.integers(17, 91, 6000).astype(float), "job": rng.choice(["a", "b", "c"], 6000)})
    made.loc[3, "job"], made.loc[4, "age"] = "queen", 1e6
    return made.assign(old=np.where(made["age"] + rng.normal(0, 5, 6000) > 50, "yes", "no"))


def spec(frame: pd.DataFrame, mechanism: str = "output-gaussian", **how: object) -> dpviz.RunSpec:
    made = dpviz.dataset(frame, target="old", positive="yes", **how)  # type: ignore[arg-type]
    return dpviz.RunSpec(made.name, mechanism=mechanism, epsilon=TOTAL.epsilon, delta=TOTAL.delta)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "l.toml", table="people", limit=Budget(1.5, 1e-4))


@pytest.mark.parametrize("mechanism", ["output-gaussian", "objective-tight"])
def test_the_total_pays_for_both_and_a_person_alone_is_not_shown(mechanism: str, frame: pd.DataFrame, ledger: Ledger) -> None:
    made = dpviz.release(spec(frame, mechanism), private_ranges=True, ledger=ledger)
    cal = made.calibration
    assert cal.status is Status.PROVED_IF
    assert PUBLIC_KINDS in cal.conditions
    assert (cal.proved_budget.epsilon, cal.proved_budget.delta) == pytest.approx((1.0, 1e-5))
    assert (made.of_ranges.epsilon, made.of_ranges.delta) == pytest.approx((0.1, 1e-6))
    age, job = made.model.encoder.columns
    assert job.levels == ("a", "b", "c")
    assert age.low < 30 < 75 < age.high < 1000
    for text in (made.card, made.model.to_json()):
        assert "queen" not in text
        assert "1000000" not in text
    assert "found privately, for (ε = 0.1, δ = 10⁻⁶) of the total" in made.card
    (entry,) = ledger.entries()
    assert entry.release == cal.proved_budget
    assert set(entry.conditions) == {*cal.conditions, REAL_NOISE, SECRET_RANDOMNESS}
    # the noise of the model is that of nine tenths, on the same rows with the same ranges
    part = dpviz.RunSpec(made.spec.dataset, mechanism=mechanism, epsilon=0.9, delta=9e-6)
    assert cal.noise_scale == pytest.approx(dpviz.run(part).calibration.noise_scale)


def test_the_limit_refuses_before_a_row_is_looked_at(
    frame: pd.DataFrame, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    dpviz.release(spec(frame), private_ranges=True, ledger=ledger)
    looked: list[object] = []
    monkeypatch.setattr(ranges, "private_ranges", lambda *a, **k: looked.append(a))
    monkeypatch.setattr(training, "train", lambda *a: looked.append(a))
    assert_refused(dpviz.release, spec(frame), private_ranges=True, ledger=ledger, match="would bring the total")
    assert not looked
    assert len(ledger.entries()) == 1


def test_a_run_in_private_ranges_is_released_in_private_ranges(frame: pd.DataFrame) -> None:
    """Those of all numbers are found, as the run's were, with noise of the operating system; declared ones are set aside."""
    run = replace(spec(frame, ranges={"age": (0, 1e7)}), ranges="private")
    made = [dpviz.release(run) for _ in range(2)]
    for one in made:
        assert one.of_ranges is not None
        assert one.model.encoder.columns[0].high < 1000
        assert (one.spec.ranges, one.calibration.proved_budget.epsilon) == ("declared", pytest.approx(1.0))
    assert [one.calibration.noise_scale for one in made] == [pytest.approx(made[0].calibration.noise_scale)] * 2


@pytest.mark.parametrize(("declared", "audits"), [({"categories": {"job": ["a", "b", "c"]}}, 1), ({}, 2)])
def test_the_audit_comes_before_the_ledger_and_again_for_other_features(
    declared: dict[str, Any], audits: int, frame: pd.DataFrame, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without private categories the number of features is public; with them λ is that of the features that were found."""
    entries, lams, original = list[int](), list[float](), training.audit

    def audit(mechanism: Any, first: Any, *rest: Any, **named: Any) -> Any:
        entries.append(len(ledger.entries()))
        lams.append(first.lam)
        return original(mechanism, first, *rest, **named)

    monkeypatch.setattr(training, "audit", audit)
    made = dpviz.release(spec(frame, **declared), private_ranges=True, audit_runs=60, ledger=ledger)
    assert entries == [0, 1][:audits]
    assert lams[-1] == setup_for(made.spec).problem.lam
    assert made.audited.runs == 60


def test_an_audit_that_refuses_after_the_ranges_says_that_the_entry_stays(
    frame: pd.DataFrame, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AuditResult, "evidence_against", lambda self, budget: "evidence" if ledger.entries() else "")
    assert_refused(
        dpviz.release, spec(frame), private_ranges=True, audit_runs=60, ledger=ledger, match="The ledger's entry stays"
    )
    assert len(ledger.entries()) == 1


def test_what_private_ranges_cannot_mend_is_refused_before_anything_is_spent(frame: pd.DataFrame, ledger: Ledger) -> None:
    declared = {"ranges": {"age": (0, 120)}, "categories": {"job": ["a", "b", "c"]}}
    for run in (dpviz.RunSpec("teaching"), spec(frame, **declared)):
        assert_refused(dpviz.release, run, private_ranges=True, ledger=ledger)
    assert not ledger.entries()


@pytest.mark.parametrize("search", [False, pytest.param(True, marks=pytest.mark.long)])
def test_ranges_of_persons_are_for_all_their_rows(
    search: bool, frame: pd.DataFrame, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1500 persons with four rows, of which two are kept: ranges see those alone, each at the budget of which two are a tenth."""
    seen: list[tuple[pd.Series, Budget]] = []
    original = ranges.private_ranges

    def watched(columns: dict[str, np.ndarray], budget: Budget, *rest: Any, categories: dict[str, pd.Series]) -> Any:
        seen.append((categories["job"], budget))
        return original(columns, budget, *rest, categories=categories)

    monkeypatch.setattr(ranges, "private_ranges", watched)
    table = frame.assign(who=np.arange(6000) // 4, age=frame["age"].clip(upper=90))
    run = replace(spec(table, person="who", person_rows=2), epsilon=3.0)
    if search:
        made = dpviz.private_search(run, {"lam": [1e-2]}, private_ranges=True, mean_runs=1.5)
    else:
        made = dpviz.release(run, private_ranges=True, unproved=True, ledger=person_ledger(ledger))
    ((jobs, budget),) = seen
    assert len(jobs) == 3000
    assert budget == budget_of_row(made.of_ranges, 2)
    assert made.calibration.person_rows == 2
    assert made.calibration.proved_budget.epsilon == pytest.approx(3.0, rel=0.02)
    assert "Unit of privacy: one person, of whom at most 2 rows are kept" in made.card


def test_the_shell_finds_them_too(frame: pd.DataFrame, tmp_path: Path, shell: Shell) -> None:
    table, out = tmp_path / "people.csv", tmp_path / "model"
    frame.to_csv(table, index=False)
    call = ["release", str(table), "--target", "old", "--positive", "yes", "--mechanism", "dp-gd", "--out", str(out)]
    shell(call, 2)
    assert "were read from the rows" in shell.err
    assert main([*call, "--private-ranges"]) == 0
    assert "found privately" in (out / "card.md").read_text(encoding="utf-8")


def test_too_few_rows_for_private_ranges_end_with_the_options_that_declare_them(frame: pd.DataFrame) -> None:
    assert_refused(
        dpviz.release,
        spec(frame.head(60).assign(age=range(60))),
        private_ranges=True,
        match=r"too few rows to see .* --range age=\S+ --categories 'job=a\|b\|c",
    )


def test_a_search_finds_ranges_once_and_pays_for_both(
    frame: pd.DataFrame, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    original = ranges.private_ranges
    monkeypatch.setattr(
        ranges, "private_ranges", lambda c, b, s, categories: asked.append(b) or original(c, b, s, categories=categories)
    )
    made = dpviz.private_search(spec(frame), {"lam": [1e-3, 1e-2]}, private_ranges=True, mean_runs=3.0, ledger=ledger)
    (of_ranges,) = asked
    assert made.of_ranges == of_ranges
    assert (of_ranges.epsilon, of_ranges.delta) == pytest.approx((0.1, 1e-6))
    proved = made.calibration.proved_budget
    assert 0.98 < proved.epsilon <= 1.0 + 1e-9
    assert proved.delta == pytest.approx(TOTAL.delta)
    assert PUBLIC_KINDS in made.calibration.conditions
    assert made.model.encoder.columns[1].levels == ("a", "b", "c")
    (entry,) = ledger.entries()
    assert entry.what == "search"
    assert isinstance(entry.release, Budget)
    assert (entry.release.epsilon, entry.release.delta) == pytest.approx((proved.epsilon, proved.delta))
    assert set(entry.conditions) == {*made.calibration.conditions, REAL_NOISE, SECRET_RANDOMNESS}
    for text in (made.card, made.model.to_json()):
        assert "queen" not in text
    assert "found privately, for (ε = 0.1, δ = 10⁻⁶) of the total" in made.card
    assert_refused(
        dpviz.private_search,
        dpviz.RunSpec("census-2000", mechanism="dp-gd"),
        {"lam": [1e-2]},
        private_ranges=True,
        match="tables of your own",
    )


LESSON = BY_ID["bounds"]


@pytest.mark.long
def test_the_lessons_sentences_are_true() -> None:
    compared = compare(LESSON.spec)
    by_width = compared.widths.set_index("width")
    narrow, right, wide = (by_width.loc[width] for width in (1 / 16, 1.0, 16.0))
    assert narrow["clipped"] > 0.5
    assert right["non_private"] - narrow["non_private"] > 0.03, "narrow ranges cost the non-private optimum"
    unclipped = compared.widths[compared.widths["width"] >= 1]
    assert (unclipped["clipped"] == 0).all()
    assert np.ptp(unclipped["non_private"]) < 0.003, "the non-private optimum stays as it is"
    lost = by_width["non_private"] - by_width["accuracy"]
    assert lost[16.0] > lost[4.0] > 2 * lost[1.0] > 0, "wide ranges cost the private model alone"
    error = np.hypot(right["spread"], wide["spread"]) / LESSON.spec.seeds**0.5
    assert right["accuracy"] - max(narrow["accuracy"], wide["accuracy"]) > 4 * error
    private = compared.kinds.set_index("kind").loc["private"]
    assert 1 / 16 < private["width"] < 16
    assert 0 < private["clipped"] < narrow["clipped"]
    assert private["accuracy"] > max(narrow["accuracy"], wide["accuracy"])
    assert compared.of_ranges.epsilon == pytest.approx(LESSON.spec.epsilon / 10)
    answer = LESSON.measure(LESSON.spec)
    assert answer.right == (answer.value,) == ("1",)
    assert not answer.accepts("16")


def test_each_kind_has_its_budget_and_what_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(LESSON.spec, dataset="census-2000", seeds=2)
    budgets = []
    original = bounds._Trial.measure
    monkeypatch.setattr(bounds._Trial, "measure", lambda self, e, b, s: (budgets.append(b), original(self, e, b, s))[1])
    made = compare(spec, widths=(1.0,))
    whole, rest = made.whole, made.of_model
    assert budgets == [whole, whole, rest, rest, whole]
    assert (rest.epsilon, rest.delta) == pytest.approx((0.9 * whole.epsilon, 0.9 * whole.delta))
    kinds = made.kinds.set_index("kind")
    assert kinds["read"].to_dict() == {"declared": 0, "read": 3, "private": 0}
    accuracy = dpviz.run(spec).accuracy  # of the run itself
    measured = kinds.loc["declared", ["accuracy", "spread"]].tolist()
    assert measured == pytest.approx([accuracy.mean(), accuracy.std(ddof=1)], abs=1e-12)
    assert measured[1] > 1.2 * accuracy.std() > 0, "the control: of the population"


def own(**how: object) -> dpviz.RunSpec:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(17, 91, 3000).astype(float), "job": rng.choice(["a", "b"], 3000)})
    frame = frame.assign(old=np.where(frame["age"] > 50, "yes", "no"), name=np.repeat(np.arange(1500), 2).astype(str))
    columns = ["age", "job"]
    made = dpviz.dataset(frame, target="old", positive="yes", columns=columns, **how)  # type: ignore[arg-type]
    return dpviz.RunSpec(made.name, mechanism="output-gaussian", epsilon=2.0, seeds=2)


def test_private_categories_replace_those_that_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[str], list[str], Budget]] = []
    original = bounds.private_ranges
    monkeypatch.setattr(
        bounds,
        "private_ranges",
        lambda n, b, s, categories: (asked.append((list(n), list(categories), b)), original(n, b, s, categories=categories))[1],
    )
    made = compare(own(), widths=(1.0,))
    assert made.kinds["kind"].tolist() == ["read", "private"], "nothing is declared"
    assert made.kinds["read"].tolist() == [2, 0]
    assert asked == [(["age"], ["job"], made.of_ranges)] * 2
    asked.clear()
    made = compare(own(ranges={"age": (0, 120)}, categories={"job": ["a", "b"]}), widths=(1.0,))
    assert made.kinds["read"].tolist() == [0, 1, 0]
    assert asked == [(["age"], [], made.of_ranges)] * 2
    asked.clear()
    made = compare(own(person="name", person_rows=2, ranges={"age": (0, 120)}, categories={"job": ["a", "b"]}), widths=(1.0,))
    assert asked == [(["age"], [], budget_of_row(made.of_ranges, 2))] * 2, "of one row, so that two together cost the tenth"


def test_persons_are_drawn_with_their_rows_at_every_width() -> None:
    """DP-SGD that draws persons needs to know whose each row is, in declared, read and private ranges alike."""
    run = own(person="name", person_rows=2, ranges={"age": (0, 120)}, categories={"job": ["a", "b"]})
    drawn = replace(run, mechanism="dp-sgd", params={"batches": "persons", "epochs": 1, "sampling_rate": 0.2}, seeds=1)
    made = compare(drawn, widths=(1.0, 2.0))
    assert made.kinds["kind"].tolist() == ["declared", "read", "private"]
    assert made.kinds["accuracy"].iloc[0] == pytest.approx(dpviz.run(drawn).accuracy.mean())
    assert made.widths["accuracy"].between(0, 1).all()


def test_what_cannot_be_compared_is_said() -> None:
    assert not ranges_matter(dataset_of(dpviz.RunSpec("teaching")))
    assert_refused(compare, dpviz.RunSpec("teaching"), match="no column of")
    made = compare(dpviz.RunSpec("iris", seeds=1), widths=(1.0, 2.0))
    assert "too few rows to see" in made.refusal
    assert made.kinds["kind"].tolist() == ["read"]
    assert made.kinds["spread"].isna().all(), "one draw has no spread"
    close = best_width(dpviz.RunSpec("iris"), {"1": 1.0, "also 1": 1.0})
    assert set(close.right) == {"1", "also 1"}
