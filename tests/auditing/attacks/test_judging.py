"""The judge of membership attacks: curves, limits over target models, and controls that must be found."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.metrics import roc_auc_score, roc_curve

from dpviz.auditing.attacks.attacked import CHANCE, AttackedRun
from dpviz.auditing.attacks.base import Shadows, Targets, get_attack, list_attacks
from dpviz.auditing.attacks.judging import Judged
from dpviz.auditing.result import EXCEEDED


def members(rng: np.random.Generator, t: int, n: int) -> np.ndarray:
    found = np.zeros((t, n), bool)
    for row in found:
        row[rng.permutation(n)[: n // 2]] = True
    return found


def test_detections_are_on_the_roc_curve_at_the_rate_of_false_alarms() -> None:
    rng = np.random.default_rng(0)
    member = members(rng, 20, 50)
    scores = np.round(rng.normal(member, 1), 1)  # with many ties
    judged, out = Judged(scores, member), scores[~member]
    for rate in (0.02, 0.05, 0.3):
        alarms, found, _ = roc_curve(member.ravel(), scores.ravel(), drop_intermediate=False)
        assert judged.detections_at(rate).value == pytest.approx(np.interp(rate, alarms, found))
        assert np.mean(out > judged.threshold_at(rate)) <= rate
    assert judged.auc == pytest.approx(roc_auc_score(member.ravel(), scores.ravel()))
    assert judged.curve["detections"].is_monotonic_increasing


def test_limits_have_their_confidence_and_noise_is_no_advantage() -> None:
    """300 judgements of scores without signal in which rows of a model share its noise: what is declared happens.

    The share of limits that miss is 5 %, and the advantage is 0 on average in more than a third of them: the largest
    difference on the rows it was chosen on, or its absolute value, never would be.
    """
    rng, missed, advantages = np.random.default_rng(5), 0, []
    for seed in range(300):
        member = members(rng, 40, 60)
        scores = rng.normal(size=(40, 60)) + rng.normal(size=(40, 1))
        judged = Judged(scores, member, seed)
        found = judged.detections_at(0.1)
        missed += not found.low <= 0.1 <= found.high
        advantages.append(judged.advantage)
    assert binom.ppf(0.001, 300, 0.03) <= missed <= binom.ppf(0.999, 300, 0.07)
    assert np.mean(np.array(advantages) == 0) > 0.35
    assert np.mean(advantages) < 0.02


class NothingAllowed(AttackedRun):
    """A run of which nothing may be seen: as many detections as false alarms."""

    def allowed(self, false_alarms: np.ndarray) -> np.ndarray:
        return np.asarray(false_alarms)


@pytest.mark.long
def test_runs_without_signal_name_rows_and_speak_against_a_guarantee_as_often_as_declared() -> None:
    """Scores of a model share its noise; the control: one row that is found out is named in most runs."""

    def rates(runs: int, gain: float) -> tuple[int, int, int]:
        rng, named, first, against = np.random.default_rng(7), 0, 0, 0
        for seed in range(runs):
            member = members(rng, 300, 10)
            scores = rng.normal(size=(300, 10)) + rng.normal(size=(300, 1))
            scores[:, 3] += gain * member[:, 3]
            judged = {"lira-online": Judged(scores, member, seed)}
            run = NothingAllowed(None, None, None, None, 64, 300, np.arange(10), judged, np.zeros(10))  # type: ignore[arg-type]
            found = run.rows["attacks_that_find"] > 0
            named, first, against = named + found.any(), first + found[3], against + (run.verdict == EXCEEDED)
        return named, first, against

    named, _, against = rates(250, 0.0)
    assert named <= binom.ppf(0.999, 250, CHANCE)
    assert against <= binom.ppf(0.999, 250, 0.05)
    assert rates(20, 6.0)[1] > 18


@pytest.mark.parametrize("name", sorted(list_attacks()))
def test_signals_without_membership_show_nothing_and_targets_among_the_shadows_show(name: str) -> None:
    """The control: shadow models that are the targets themselves tell LiRA who the members are."""
    rng = np.random.default_rng(2)
    signals, population = rng.normal(size=(300, 60)), rng.normal(size=(300, 200))
    member = members(rng, 300, 60)
    features, others = rng.normal(size=(60, 2)), rng.normal(size=(200, 2))
    targets = Targets(signals[:40], population[:40], features, others)
    apart = Judged(get_attack(name).score(targets, Shadows(signals[40:], member[40:], population[40:])), member[:40])
    found = apart.detections_at(0.1)
    assert found.low <= 0.1 <= found.high
    assert apart.auc == pytest.approx(0.5, abs=4 * 0.29 * 2 / np.sqrt(2400))
    if name == "lira-online":
        few = slice(0, 40)  # as many shadows as targets, all the same models
        leaked = get_attack(name).score(targets, Shadows(signals[few], member[few], population[few]))
        assert Judged(leaked, member[few]).auc > 0.54
