"""How often the auditor accuses mechanisms that are right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpviz.auditing import EXCEEDED, NO_VIOLATION, audit
from dpviz.auditing.game import _prepare
from dpviz.auditing.judging import judge
from dpviz.auditing.pairs import make
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms.gradient.dp_gd import DPGD
from dpviz.mechanisms.output.cms_output import CMSOutput
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.models import get_model
from dpviz.privacy.budget import Budget


@pytest.mark.long
def test_correct_mechanisms_raise_few_alarms() -> None:
    """200 audits at alpha = 0.01 on the pair that uses up the whole sensitivity: at most 7 alarms."""
    alarms, pair = 0, make("quiet", get_model("svm"), 20, 2, 0.2)
    for k in range(200):
        mechanism: Mechanism = (OutputGaussian(), DPGD(steps=2, step_size=0.1), CMSOutput(), OutputGaussian())[k % 4]
        budget = Budget((0.5, 1.0, 2.0, 4.0)[(k // 4) % 4], 1e-5)
        result = audit(mechanism, pair.first, pair.second, budget, runs=400, seed=k, confidence=0.99)
        assert result.verdict in (EXCEEDED, NO_VIOLATION)
        alarms += result.verdict == EXCEEDED
    assert alarms <= 7


def alarms(score: str, audits: int, twice: bool = False, confidence: float = 0.5) -> int:
    """How many of so many audits of an exactly Gaussian mechanism find it above what it claims.

    A large delta and a low confidence, so that alarms are frequent enough to be counted.

    Args:
        twice: each output is seen two times, so that the runs that choose the threshold are those that are counted.
    """
    pair, budget = make("quiet", get_model("svm"), 20, 2, 0.2), Budget(1.0, 0.05)
    game = _prepare(OutputGaussian(), pair.first, pair.second, budget, 200, 0, score, confidence, ())
    centres = [side.optimum for side in game.sides]
    sigma, found = game.calibration.noise_scale, 0
    for k in range(audits):
        rng = np.random.default_rng([k, 7])
        first, second = (c + sigma * rng.standard_normal((100 if twice else 200, 2)) for c in centres)
        if twice:
            first, second = np.repeat(first, 2, axis=0), np.repeat(second, 2, axis=0)
        result = judge(game, first, second, None)
        found += result.counts.epsilon_lower_bound(budget.delta, result.counts_confidence) > budget.epsilon
    return found


@pytest.mark.long
@pytest.mark.parametrize("score", ["auto", "gradient", "lda", "qda", "repeat"])
def test_a_thousand_audits_of_an_exact_gaussian_keep_the_declared_share_of_alarms(score: str) -> None:
    """Attacker and threshold are chosen on one half and counted on the other: at most 50 % alarms at 50 % confidence."""
    assert 0 < alarms(score, 1000) <= binom.ppf(1 - 1e-6, 1000, 0.5)


@pytest.mark.long
def test_a_threshold_chosen_on_the_counted_half_is_seen() -> None:
    for score in ("auto", "qda", "repeat"):
        assert alarms(score, 1000, twice=True) > 2.5 * alarms(score, 1000)


@pytest.mark.parametrize("score", ["auto", "gradient", "lda", "qda", "repeat"])
def test_the_counted_half_chooses_nothing(score: str) -> None:
    """Attacker and threshold come from the other half, so every counted output is judged as it would be on its own."""
    pair, budget, n = make("quiet", get_model("svm"), 20, 2, 0.2), Budget(1.0, 0.05), 40
    game = _prepare(OutputGaussian(), pair.first, pair.second, budget, n, 0, score, 0.5, ())
    rng = np.random.default_rng(5)
    sides = [c.optimum + game.calibration.noise_scale * rng.standard_normal((n, 2)) for c in game.sides]

    def errors(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
        counts = judge(game, first, second, None).counts
        return counts.false_positives / counts.trials, counts.false_negatives / counts.trials

    def alone(side: np.ndarray, k: int) -> np.ndarray:
        return np.where(np.arange(n)[:, None] % 2 == 1, side[k], side)

    together = errors(*sides)
    apart = np.mean([errors(alone(sides[0], k), alone(sides[1], k)) for k in range(1, n, 2)], axis=0)
    np.testing.assert_allclose(together, apart, atol=1e-12)
    assert 0 < sum(together) < 1
