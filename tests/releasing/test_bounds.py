"""Accuracy by the ranges of number columns: the lesson's sentences, and what is clipped, paid and read for each kind of range."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components.lessons import BY_ID
from dpviz.experiments.run.resolve import dataset_of
from dpviz.mechanisms.persons import budget_of_row
from dpviz.preparing.ranges import ranges_matter
from dpviz.privacy.budget import Budget
from dpviz.releasing import bounds
from dpviz.releasing.bounds import best_width, compare

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
    original = bounds._Trial.measured
    monkeypatch.setattr(bounds._Trial, "measured", lambda self, e, b, s: (budgets.append(b), original(self, e, b, s))[1])
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
    with pytest.raises(InvalidInput, match="no column of"):
        compare(dpviz.RunSpec("teaching"))
    made = compare(dpviz.RunSpec("iris", seeds=1), widths=(1.0, 2.0))
    assert "too few rows to see" in made.refusal
    assert made.kinds["kind"].tolist() == ["read"]
    assert made.kinds["spread"].isna().all(), "one draw has no spread"
    close = best_width(dpviz.RunSpec("iris"), {"1": 1.0, "also 1": 1.0})
    assert set(close.right) == {"1", "also 1"}
