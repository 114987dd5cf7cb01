"""Plays the game on a mechanism: trains on both sides, lets an attacker learn, counts its errors, compares with the claim."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpviz.auditing.judging import Game, declares_gaussian, judge
from dpviz.auditing.pairs import differing_rows, needs_zero_rows
from dpviz.auditing.result import AuditResult
from dpviz.auditing.scores import SCORES, Distributions
from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore, part, track
from dpviz.common.validate import InvalidInput, check_choice, check_instance, check_integer
from dpviz.mechanisms import Calibration, Fit, Mechanism, OutputNoise, PublicSteps, Training, protection
from dpviz.mechanisms.attack import allowed_accuracy
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, Neighbouring, check_delta

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
    """Plays the game to the end; arguments are those of `prepare`, and `monitor` receives progress and raises to cancel."""
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
            declared.append(fits[-1].distribution.at(0))
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
    return np.ascontiguousarray(out, dtype=np.float64)


def _line(
    mechanism: Mechanism, calibration: Calibration, sides: tuple[Problem, Problem], seed: int
) -> tuple[Floats, float] | None:
    """Direction and mid-point between what both sides give without noise: an attacker who needs no runs to learn from."""
    streams, quiet = [np.random.SeedSequence(seed, spawn_key=(3, 0))], [calibration.noiseless()]
    ends = [_output(mechanism.fit(Training(problem, quiet, streams, record=False)))[0] for problem in sides]
    direction = ends[1] - ends[0]
    return (direction, float(0.5 * (ends[0] + ends[1]) @ direction)) if direction.any() else None
