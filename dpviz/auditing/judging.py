"""The attacker's errors on runs that were not used for choosing its score, and the bounds that follow."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.auditing.result import AuditResult
from dpviz.auditing.scores import Distributions, Score, choose, fitters
from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Calibration, Mechanism
from dpviz.models.problem import Problem
from dpviz.privacy.audit_bounds import Counts, best_threshold, count_errors, gaussian_claim, roc
from dpviz.privacy.noise import GAUSSIAN

LEARNED_SHARE = 0.1  # of the error probability, for the learning attacker beside an exact one
_CLOUD = 1000


@dataclass(frozen=True, eq=False)
class Game:
    """Everything about a game that is fixed before the first run.

    Attributes:
        mechanism, calibration: what is attacked.
        sides: the neighbouring problems; networks start from one point that the attacker knows.
        rows: positions of the rows in which they differ.
        versions: the mechanism stopped early for every iterate that is seen, and the whole run last.
        runs: models trained on each dataset.
        seed: of the game.
        score: what the attacker computes, a key of `SCORES`.
        confidence: of the bounds.
        allowed: largest share of correct guesses that the guarantee allows, None where nothing is claimed.
        line: direction and mid-point between both models without noise, where the guarantee is a Gaussian one; or None.
    """

    mechanism: Mechanism
    calibration: Calibration
    sides: tuple[Problem, Problem]
    rows: NDArray[np.intp]
    versions: tuple[Mechanism, ...]
    runs: int
    seed: int
    score: str
    confidence: float
    allowed: float | None
    line: tuple[Floats, float] | None


@dataclass(frozen=True, eq=False)
class _Attack:
    """One attacker's errors: at its own threshold, at `level`, and at the mid-point between both sides."""

    name: str
    score: Score
    counts: Counts
    level: float
    middle: Counts
    first: Floats
    second: Floats


def judge(game: Game, first: Floats, second: Floats, distributions: Distributions | None) -> AuditResult:
    """The audit's result from (N, k) outputs of each side.

    Args:
        distributions: the declared distributions of the outputs, where there are any.

    Raises:
        InvalidInput: the score that is wanted needs what is not there.
    """
    exact = distributions if distributions is not None and distributions.usable else None
    warning = "" if exact is None else exact.contradiction(first, second)
    exact = None if warning else exact
    noise = None if distributions is None else distributions.residuals(first, second)
    assumption = _assumption(game.calibration, exact)
    # a verdict of two tests may err as seldom as one: each has half of the error probability
    shared = replace(game, confidence=1 - (1 - game.confidence) / 2) if noise is not None or assumption else game
    if game.score == "likelihood" and exact is None:
        raise InvalidInput("score", f"{game.mechanism.id} declares no distribution that its outputs follow", 'Use score="auto".')
    attacks = []
    if exact is not None and game.score in ("auto", "likelihood"):
        attacks.append(_exact(shared, exact, first, second))
    if game.score != "likelihood":
        attacks.append(_learned(shared, first, second, LEARNED_SHARE if attacks else 1.0))
    delta = game.calibration.budget.delta
    best = max(attacks, key=lambda attack: attack.counts.epsilon_lower_bound(delta, attack.level))
    middle = best.middle
    if attacks[0].name == "likelihood":
        middle = attacks[0].middle  # the Gaussian test is fixed beforehand: it belongs to the exact attacker
    elif game.line is not None:
        direction, cut = game.line
        m = len(direction)
        middle = count_errors(first[:, -m:] @ direction, second[:, -m:] @ direction, cut)
    return AuditResult(
        mechanism=game.mechanism.id,
        calibration=game.calibration,
        runs=len(first),
        requested=game.runs,
        seed=game.seed,
        confidence=game.confidence,
        score=best.name,
        counts=best.counts,
        counts_confidence=best.level,
        middle=middle,
        assumption=assumption,
        allowed=game.allowed,
        curve=roc(best.first, best.second, game.confidence),
        cloud=_cloud(first, second, best.score, exact),
        noise=noise,
        warnings=(warning,) if warning else (),
    )


def _exact(game: Game, distributions: Distributions, first: Floats, second: Floats) -> _Attack:
    """The likelihood ratio of the declared distributions; its threshold needs no run, so all are counted."""
    share = 1.0 if game.score == "likelihood" else 1 - LEARNED_SHARE
    level = 1 - (1 - game.confidence) * share
    cut = distributions.threshold(trials=len(first), delta=game.calibration.budget.delta, confidence=level, seed=game.seed)
    a, b = distributions.log_ratio(first), distributions.log_ratio(second)
    return _Attack("likelihood", distributions.log_ratio, count_errors(a, b, cut), level, count_errors(a, b, 0.0), a, b)


def _learned(game: Game, first: Floats, second: Floats, share: float) -> _Attack:
    """A score that is fitted and a threshold that is chosen on every other run, and counted on the others.

    Args:
        share: of the error probability that this attacker may use.
    """
    n, iterates = len(first), len(game.versions)
    # every other run is kept for choosing, so both parts grow together
    kept, counted = (first[::2], second[::2]), (first[1::2][: n // 2], second[1::2][: n // 2])
    attackers = fitters(*game.sides, game.rows, iterates if first.shape[1] == iterates * game.sides[0].m else 1)
    chosen = {k: f for k, f in attackers.items() if game.score in ("auto", k.split("(")[0])}
    if not chosen:
        raise InvalidInput("score", f"{game.score!r} needs iterates", "Give iterates, or use another score.")
    name, score, sa, sb = choose(chosen, *kept)
    level = 1 - (1 - game.confidence) * share
    # judged at the size of the sample that it is seen on: cuts far in the tail only look good there
    trials = min(len(sa), len(counted[0]))
    cut, _ = best_threshold(sa, sb, trials=trials, delta=game.calibration.budget.delta, confidence=level)
    middle = 0.5 * float(np.median(sa) + np.median(sb))
    a, b = score(counted[0]), score(counted[1])
    return _Attack(name, score, count_errors(a, b, cut), level, count_errors(a, b, middle), a, b)


def declares_gaussian(calibration: Calibration) -> bool:
    """True where the calibration declares mu-GDP with a mu that its budget allows."""
    mu = calibration.mu
    claims = [gaussian_claim(budget) for budget in (calibration.claimed_budget, calibration.proved_budget)]
    return mu is not None and calibration.noise_family == GAUSSIAN and any(c and mu <= c * (1 + 1e-6) for c in claims)


def _assumption(calibration: Calibration, distributions: Distributions | None) -> str:
    """The reason for which the trade-off may be taken for a Gaussian one."""
    sides = None if distributions is None else (distributions.first, distributions.second)
    if sides is not None and sides[0].family == GAUSSIAN and sides[0].scale[0] == sides[1].scale[0]:
        return (
            "Both sides are Gaussian with one covariance around fixed centres: the distribution is declared and the outputs "
            "follow it."
        )
    if declares_gaussian(calibration):
        return f"The guarantee itself is a Gaussian one: the calibration declares μ-GDP with μ = {calibration.mu:.4g}."
    return ""


def _cloud(first: Floats, second: Floats, score: Score, distributions: Distributions | None) -> pd.DataFrame:
    shown = np.concatenate([first[:_CLOUD], second[:_CLOUD]])
    side = np.repeat([0, 1], [min(len(first), _CLOUD), min(len(second), _CLOUD)])
    centre = first.mean(axis=0)
    axis = second.mean(axis=0) - centre if distributions is None else distributions.second.centre - distributions.first.centre
    norm = float(np.linalg.norm(axis))
    axis = axis / norm if norm > 0 else np.eye(len(axis))[0]
    centred = shown - centre
    u = centred @ axis
    rest = centred - u[:, None] * axis
    v = rest @ np.linalg.svd(rest[:: max(1, len(rest) // 400)], full_matrices=False)[2][0]
    return pd.DataFrame({"side": side, "u": u, "v": v, "score": score(shown)})
