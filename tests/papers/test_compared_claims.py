"""Claims that compare accuracies, on stand-ins whose accuracy is known."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from support_claims import Toward, planted, toward

from dpviz.mechanisms import Mechanism, Training
from dpviz.mechanisms.base import Fit, NoiseRecord
from dpviz.papers.claims import Outcome, accuracy
from dpviz.papers.claims.context import Context, Measured


def only_started(knobs: dict[str, Any]) -> Mechanism:
    """Good from the published start only."""
    return toward(1.0 if knobs.get("start") == "non-private" else -1.0)(knobs)


@pytest.fixture
def untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting for each method: stand-ins have no hyperparameters."""
    monkeypatch.setattr(accuracy, "STEP_COUNTS", (50,))
    monkeypatch.setattr(accuracy, "STEP_SIZES", (1.0,))


@pytest.mark.usefixtures("untuned")
def test_beating_depends_on_who_is_better_and_on_the_start() -> None:
    bad, good = toward(-1.0), toward(1.0)
    assert planted("pidp-beats-dp-sgd", pidp_sgd=good, dp_sgd=bad).outcome is Outcome.HOLDS
    assert planted("pidp-beats-dp-sgd", pidp_sgd=bad, dp_sgd=good).outcome is Outcome.FAILS
    assert planted("pidp-beats-dp-sgd", pidp_sgd=good, dp_sgd=good).outcome is Outcome.FAILS
    under = planted("pidp-beats-dp-sgd", pidp_sgd=only_started, dp_sgd=bad)
    assert under.outcome is Outcome.ONLY_IF
    assert "starts at the non-private model" in under.condition


@pytest.mark.usefixtures("untuned")
def test_the_gap_is_judged_from_both_starts() -> None:
    assert planted("pidp-gap-zero", pidp_sgd=toward(1.0)).outcome is Outcome.HOLDS
    assert planted("pidp-gap-zero", pidp_sgd=toward(-1.0)).outcome is Outcome.FAILS
    assert planted("pidp-gap-zero", pidp_sgd=only_started).outcome is Outcome.ONLY_IF


def test_averaging_by_less_than_half_a_point_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same models with other numbers: leads of 0.2 and 2 points, and all within a point of majority."""

    def measured(lead: float, best: float) -> Callable[..., Any]:
        def best_of(self: Context, mechanism: str, grid: Any, name: str, budgets: Any, seeds: int, **more: Any) -> Any:
            level = 0.70 + lead * (mechanism == "rsgd-ar" and "averaging" not in grid[0])
            accuracy = np.full((len(budgets), seeds), level)
            gap = np.zeros_like(accuracy)
            made = Measured(accuracy, gap, 0.5, name, "logistic", np.array(budgets), non_private=best, majority=0.70)
            return made, [grid[0]] * len(budgets)

        return best_of

    for lead, best, outcome in (
        (0.02, 0.8, Outcome.HOLDS),
        (0.002, 0.8, Outcome.FAILS),
        (0.002, 0.705, Outcome.CANNOT_TELL),
        (0.02, 0.705, Outcome.HOLDS),
    ):
        monkeypatch.setattr(Context, "best", measured(lead, best))
        assert planted("averaging-raises-accuracy").outcome is outcome


@pytest.mark.usefixtures("untuned")
@pytest.mark.long
def test_comparisons_that_the_draws_cannot_decide_are_not_lost() -> None:
    """Models that are right or wrong by a coin: the means agree, and no interval is narrower than a point."""

    @dataclass(frozen=True)
    class Coin(Toward):
        def fit(self, training: Training) -> Fit:
            theta = super().fit(training).theta.copy()
            theta *= np.random.default_rng(1).choice([-1.0, 1.0], theta.shape[1])[:, None]
            return Fit(theta, NoiseRecord("x"))

    coins: dict[str, Any] = dict.fromkeys(("input_perturbation", "kst_objective"), lambda knobs: Coin())
    assert planted("ip-beats-objective", **coins).outcome is Outcome.CANNOT_TELL
    tossed: dict[str, Any] = dict.fromkeys(("pidp_sgd", "dp_sgd"), lambda knobs: Coin())
    assert planted("pidp-beats-dp-sgd", **tossed).outcome is Outcome.CANNOT_TELL
    assert planted("ip-beats-objective", input_perturbation=toward(-1.0), kst_objective=toward(1.0)).outcome is Outcome.FAILS


@pytest.mark.long
def test_rsgd_ar_is_compared_as_published_and_as_well_as_can_be() -> None:
    """Better only with the published calibrations: neither holds nor fails."""

    def other(knobs: dict[str, Any]) -> Mechanism:
        return toward(-1.0 if "published" in knobs.values() or knobs.get("relation") == "add-remove" else 1.0)(knobs)

    def mine(knobs: dict[str, Any]) -> Mechanism:
        return toward(1.0 if "published" in knobs.values() else -1.0)(knobs)

    others = dict.fromkeys(("outpert_gd", "dp_sgd", "nsgd", "dp_agd"), other)
    verdict = planted("rsgd-ar-best", rsgd_ar=mine, kst_objective=toward(1.0), **others)
    assert verdict.outcome is Outcome.ONLY_IF
    assert verdict.condition == "all methods are calibrated as published"
    assert "With the best known calibrations: Fails in 60 of 60" in verdict.because


def test_hyperparameters_are_chosen_on_training_rows_alone() -> None:
    """A setting that is good on trials only is taken, and its test accuracy is bad; noise of trials is not the final noise."""
    context = Context()
    setup, _ = context.setup("teaching")
    parts = (setup.held_out.split.train, setup.held_out.split.test)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), setup.split.train)
    assert len(parts[1]) == setup.problem.n // 4
    streams: dict[bool, set[tuple[Any, ...]]] = {True: set(), False: set()}

    @dataclass(frozen=True)
    class Turncoat(Toward):
        def fit(self, training: Training) -> Fit:
            trial = training.problem.n < setup.problem.n
            streams[trial] |= {(s.entropy, *s.spawn_key) for s in training.streams}
            object.__setattr__(self, "sign", 1.0 if trial else -1.0)
            return super().fit(training)

    swap = replace(context, swaps={"dp-gd": lambda knobs: Turncoat() if knobs["steps"] == 2 else toward(0.0)(knobs)})
    found, chosen = swap.best("dp-gd", [{"steps": 1}, {"steps": 2}], "teaching", (0.5, 5.0), 3)
    assert chosen == [{"steps": 2}] * 2
    assert found.accuracy.max() < 0.5
    assert found.epsilons == (0.5, 5.0)
    assert not streams[True] & streams[False]
    _, steady = swap.best("dp-gd", [{"steps": 1}], "teaching", (0.5,), 3)
    assert steady == [{"steps": 1}]
