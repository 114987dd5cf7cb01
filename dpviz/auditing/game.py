"""Plays the game on a mechanism: trains on both sides, lets an attacker learn, counts its errors, compares with the claim.

The attacker's errors on runs that were not used for choosing its score, and the bounds that follow.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.auditing.pairs import differing_rows, needs_zero_rows
from dpviz.auditing.result import AuditResult
from dpviz.auditing.scores import SCORES, Distributions, Score, choose, fitters
from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore, part, track
from dpviz.common.validate import InvalidInput, check_choice, check_instance, check_integer
from dpviz.mechanisms import Calibration, Fit, Mechanism, OutputNoise, PublicSteps, Training, protection
from dpviz.mechanisms.attack import allowed_accuracy
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.audit_bounds import Counts, best_threshold, count_errors, gaussian_claim, roc
from dpviz.privacy.budget import Budget, Neighbouring, check_delta
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


LEAST_RUNS, MAX_RUNS = 40, 1_000_000
_BLOCK_ELEMENTS = 1 << 23  # rows x parameters x replicas trained at once


def audit(
    mechanism: Mechanism,
    problem: Problem,
    neighbour: Problem,
    budget: Budget,
    runs: int = 1000,
    seed: int = 0,
    *,
    score: str = "auto",
    confidence: float = 0.95,
    iterates: Sequence[int] = (),
    monitor: Monitor = ignore,
) -> AuditResult:
    """Audits a mechanism on two neighbouring datasets: an attacker guesses which of them each model was trained on.

    Args:
        mechanism: with its hyperparameters set.
        problem, neighbour: two problems that differ in one row, or in rows of one person where epsilon is for a person.
        budget: what the mechanism is calibrated to.
        runs: models trained on each dataset, 40 to 1,000,000.
        seed: of the game, 0 to 2^32 - 1.
        score: what the attacker computes, a key of `SCORES`.
        confidence: of the bounds, in (0, 1).
        iterates: step counts whose iterates the attacker sees too, where the guarantee covers them (`PublicSteps`).
        monitor: receives progress, a share in [0, 1]; raises to cancel.

    Returns:
        The share of right guesses, and the lower bound on epsilon that it shows.

    Raises:
        InvalidInput: not neighbours, a bad argument, or a budget that cannot be met.
        FloatingPointError: nothing protects the outputs.
    """
    game = prepare(mechanism, problem, neighbour, budget, runs, seed, score, confidence, iterates)
    *_, result = watch(game, monitor, looks=1)
    return result


def prepare(
    mechanism: Mechanism,
    problem: Problem,
    neighbour: Problem,
    budget: Budget,
    runs: int = 1000,
    seed: int = 0,
    score: str = "auto",
    confidence: float = 0.95,
    iterates: Sequence[int] = (),
) -> Game:
    """The game on two neighbouring datasets, if it may be played; see `watch` for how it is played.

    Args:
        mechanism: with its knobs set.
        problem, neighbour: two problems that differ in one row, or in rows of one person where epsilon is for a person.
        budget: what the mechanism is calibrated to.
        runs: models trained on each dataset, 40 to 1,000,000; the two sides never share randomness.
        seed: of the game, 0 to 2^32 - 1.
        score: a key of `SCORES`.
        confidence: of the bounds, in (0, 1).
        iterates: step counts whose iterates the attacker sees beside the released model, where the guarantee covers
            them (`PublicSteps`).

    Raises:
        InvalidInput: not neighbours, a bad argument, or a budget that cannot be met.
        FloatingPointError: nothing protects the outputs.
    """
    check_instance("mechanism", mechanism, Mechanism)
    for name, value, kind in (("problem", problem, Problem), ("neighbour", neighbour, Problem), ("budget", budget, Budget)):
        check_instance(name, value, kind)
    runs, seed = check_integer("runs", runs, LEAST_RUNS, MAX_RUNS), check_integer("seed", seed, 0, 2**32 - 1)
    check_choice("score", score, SCORES)
    rows = differing_rows(problem, neighbour)
    mechanism.require(problem.setting)
    calibration = protection.calibrate(mechanism, problem.setting, budget)
    if not np.isfinite(calibration.noise_scale):
        raise FloatingPointError(
            f"{mechanism.id} declares a noise scale of {calibration.noise_scale}: nothing protects its outputs."
        )
    _check_relation(mechanism, calibration, problem, neighbour, rows)
    versions = (*_prefixes(mechanism, problem.setting, iterates), mechanism)
    sides = (_known_start(problem, seed), _known_start(neighbour, seed))
    line = _line(mechanism, calibration, sides, seed) if declares_gaussian(calibration) else None
    allowed = allowed_accuracy(mechanism, problem.setting, calibration)
    return Game(mechanism, calibration, sides, rows, versions, runs, seed, score, confidence, allowed, line)


def watch(game: Game, monitor: Monitor = ignore, looks: int = 20) -> Iterator[AuditResult]:
    """The game as it goes on: trains in blocks and yields what the attacker has so far; the last result is the audit.

    Networks start from one point that the attacker knows: it does not depend on data, so guarantees hold at every start.
    The exact likelihood ratio, its threshold and the mid-point come from the declared distributions, so all runs are counted.
    A learning attacker is fitted on a quarter of the runs, its threshold chosen on another, and the other half counted.
    Under score="auto" both play where the distribution is known, the second with a tenth of the error probability, and the
    larger bound is taken. The Gaussian test is fixed before the game: it counts the errors of all runs at the mid-point
    between the models without noise, and where the distribution has two fixed centres it measures the noise around them.

    Args:
        monitor: receives progress; raises to cancel.
        looks: about how many partial results to yield.

    Raises:
        InvalidInput: delta is not below 1/n.
        FloatingPointError: outputs are not finite.
    """
    check_delta(game.calibration.budget.delta, game.sides[0].n)
    outputs: list[list[Floats]] = [[], []]
    distributions: Distributions | None = None
    block = _block(game.sides[0], game.runs, looks)
    starts = range(0, game.runs, block)
    every = max(1, len(starts) // max(1, looks))
    for k, start in enumerate(starts):
        size = min(block, game.runs - start)
        made, declared = _both_sides(game, range(start, start + size), part(monitor, k / len(starts), 1 / len(starts)))
        for side in range(2):
            outputs[side].append(made[side])
        distributions = declared if distributions is None else distributions
        last = k == len(starts) - 1
        if last or ((k + 1) % every == 0 and start + size >= 40):
            monitor((k + 1) / len(starts))
            yield judge(game, np.concatenate(outputs[0]), np.concatenate(outputs[1]), distributions)


def _block(problem: Problem, runs: int, looks: int) -> int:
    """Runs of one side that are trained at once: what fits into memory, and few enough that there is something to look at."""
    fitting = int(np.clip(_BLOCK_ELEMENTS // (problem.n * problem.m), 16, 1000))
    return min(fitting, max(40, -(-runs // max(1, looks))))


def _check_relation(
    mechanism: Mechanism, calibration: Calibration, problem: Problem, neighbour: Problem, rows: NDArray[np.intp]
) -> None:
    """Refuses a pair that the mechanism's neighbouring relation does not speak about."""
    if calibration.neighbouring is not Neighbouring.ADD_REMOVE:
        return
    if problem.rows.X[rows].any() and neighbour.rows.X[rows].any():
        raise InvalidInput(
            "pair",
            f"{mechanism.id} speaks about adding or removing a row, and this pair replaces one",
            "Use a pair in which the differing row is zero on one side.",
        )
    needs_zero_rows(mechanism, problem, "pair")


def _both_sides(game: Game, runs: range, monitor: Monitor) -> tuple[list[Floats], Distributions | None]:
    """(len(runs), k) outputs of each side, iterates first; their distributions, where declared and no iterates are seen."""
    outputs: list[Floats] = []
    declared: list[OutputNoise] = []
    for (side, problem), inside in track(monitor, enumerate(game.sides)):
        streams = [np.random.SeedSequence(game.seed, spawn_key=(side, run)) for run in runs]
        training = Training(problem, [game.calibration], streams, record=False)
        fits = [version.fit(dataclasses.replace(training, monitor=tick)) for version, tick in track(inside, game.versions)]
        outputs.append(np.hstack([_output(fit) for fit in fits]))
        if fits[-1].distribution is not None:
            declared.append(fits[-1].distribution.select(0))
    return outputs, Distributions(*declared) if len(game.versions) == 1 and len(declared) == 2 else None


def _known_start(problem: Problem, seed: int) -> Problem:
    model = problem.model.from_one_start(seed)
    return problem if model is problem.model else dataclasses.replace(problem, model=model)


def _prefixes(mechanism: Mechanism, setting: Setting, iterates: Sequence[int]) -> list[Mechanism]:
    """The mechanism stopped early, for every iterate that is seen; its noise stays that of the whole run."""
    if not iterates:
        return []
    if not isinstance(mechanism, PublicSteps):
        raise InvalidInput("iterates", f"{mechanism.id} releases only its last model", "Leave iterates out.")
    total = mechanism.step_count(setting)
    steps = sorted({check_integer("iterates", k, 1, total) for k in iterates} - {total})
    return [mechanism.stopped_after(k) for k in steps]


def _output(fit: Fit) -> Floats:
    """(S, k) what one training releases."""
    out = fit.theta[0] if fit.constant_label is None else fit.constant_label[0][:, None]
    if not np.isfinite(out).all():
        raise FloatingPointError("Outputs are not finite, so nothing can be said about them; a smaller step size may help.")
    return out


def _line(
    mechanism: Mechanism, calibration: Calibration, sides: tuple[Problem, Problem], seed: int
) -> tuple[Floats, float] | None:
    """Direction and mid-point between what both sides give without noise: an attacker who needs no runs to learn from."""
    streams, quiet = [np.random.SeedSequence(seed, spawn_key=(3, 0))], [calibration.noiseless()]
    ends = [_output(mechanism.fit(Training(problem, quiet, streams, record=False)))[0] for problem in sides]
    direction = ends[1] - ends[0]
    return (direction, float(0.5 * (ends[0] + ends[1]) @ direction)) if direction.any() else None
