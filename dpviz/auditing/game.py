"""Plays the game on a mechanism: trains on both sides, lets an attacker learn, counts its errors, compares with the claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.auditing.pairs import Pair, differing_row
from dpviz.auditing.result import AuditResult
from dpviz.auditing.scores import SCORES, Laws, Score, choose, fitters
from dpviz.common.progress import Monitor, silent
from dpviz.common.validate import InvalidInput, one_of, whole
from dpviz.mechanisms import Calibration, Fit, Mechanism, OutputNoise, PublicSteps, Training
from dpviz.models import Setting
from dpviz.models.problem import Problem
from dpviz.privacy.audit_bounds import Counts, best_threshold, count_errors, gaussian_claim, roc
from dpviz.privacy.budget import Budget, Neighbouring

Floats = NDArray[np.float64]

MAX_RUNS = 1_000_000
_BLOCK_ELEMENTS = 1 << 23  # rows x parameters x replicas trained at once
_LEARNED_SHARE = 0.1  # of the error probability, for the learning attacker beside an exact one
_CLOUD = 1000


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
    monitor: Monitor = silent,
) -> AuditResult:
    """Plays the game to the end; see `watch`."""
    *_, result = watch(
        mechanism,
        problem,
        neighbour,
        budget,
        runs,
        seed,
        score=score,
        confidence=confidence,
        iterates=iterates,
        monitor=monitor,
        looks=1,
    )
    return result


def watch(
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
    monitor: Monitor = silent,
    looks: int = 20,
) -> Iterator[AuditResult]:
    """The game as it goes on: trains in blocks and yields what the attacker has so far; the last result is the audit.

    Networks start from one point that the attacker knows: it does not depend on data, so guarantees hold at every start.
    The exact likelihood ratio, its threshold and the mid-point come from the declared laws, so all runs are counted.
    A learning attacker is fitted on a quarter of the runs, its threshold chosen on another, and the other half counted.
    Under score="auto" both play where the law is known, the second with a tenth of the error probability, and the
    larger bound is taken. The Gaussian test is fixed before the game: it counts the errors of all runs at the mid-point
    between the models without noise, and where the law has two fixed centres it measures the noise around them.

    Args:
        mechanism: with its knobs set.
        problem, neighbour: two problems that differ in one row.
        budget: what the mechanism is calibrated to.
        runs: trainings on each side, 40 to 1,000,000; the two sides never share randomness.
        seed: of the game, 0 to 2^32 - 1.
        score: a key of `SCORES`.
        confidence: of the bounds, in (0, 1).
        iterates: step counts whose iterates the attacker sees beside the released model, where the guarantee covers
            them (`PublicSteps`).
        monitor: told of progress; raises to cancel.
        looks: about how many partial results to yield.

    Raises:
        InvalidInput: not neighbours, a bad argument, or a budget that cannot be met.
        FloatingPointError: outputs are not finite.
    """
    runs, seed = whole("runs", runs, 40, MAX_RUNS), whole("seed", seed, 0, 2**32 - 1)
    one_of("score", score, SCORES)
    row = differing_row(problem, neighbour)
    refusal = mechanism.refusal(problem.setting)
    if refusal:
        raise InvalidInput("mechanism", refusal, "Choose another mechanism or another model.")
    calibration = mechanism.calibrate(problem.setting, budget)
    if not np.isfinite(calibration.noise_scale):
        raise FloatingPointError(
            f"{mechanism.id} declares a noise scale of {calibration.noise_scale}: nothing protects its outputs."
        )
    if calibration.neighbouring is Neighbouring.ADD_REMOVE and problem.rows.X[row].any() and neighbour.rows.X[row].any():
        raise InvalidInput(
            "pair",
            f"{mechanism.id} speaks about adding or removing a row, and this pair replaces one",
            "Use a pair in which the differing row is zero on one side.",
        )
    if calibration.neighbouring is Neighbouring.ADD_REMOVE and problem.setting.quadratic is None:
        raise InvalidInput(
            "pair",
            f"{mechanism.id} speaks about adding or removing a row, and in {problem.model.id!r} a row of zeros is not "
            "the same as no row",
            "Audit it under replace-one, or on a linear model.",
        )
    versions = [*_prefixes(mechanism, problem.setting, iterates), mechanism]
    sides = (_known_start(problem, seed), _known_start(neighbour, seed))
    outputs: list[list[Floats]] = [[], []]
    laws: Laws | None = None
    line = _line(mechanism, calibration, sides, seed) if _declares_gaussian(calibration) else None
    block = int(np.clip(_BLOCK_ELEMENTS // (problem.n * problem.m), 16, 1000))
    block = min(block, max(40, -(-runs // max(1, looks))))  # so that there is something to look at
    starts = range(0, runs, block)
    every = max(1, len(starts) // max(1, looks))
    for k, start in enumerate(starts):
        size = min(block, runs - start)
        seen: list[OutputNoise | None] = []
        for side, here in enumerate(sides):
            streams = [np.random.SeedSequence(seed, spawn_key=(side, start + i)) for i in range(size)]
            fits = []
            for v, version in enumerate(versions):
                done = (k + (side + v / len(versions)) / 2) / len(starts)
                fits.append(version.fit(Training(here, [calibration], streams, record=False, monitor=_inside(monitor, done))))
            outputs[side].append(np.hstack([_output(f) for f in fits]))
            seen.append(fits[-1].distribution)
        if laws is None and len(versions) == 1 and seen[0] is not None and seen[1] is not None:
            laws = Laws(seen[0], seen[1])
        last = k == len(starts) - 1
        if last or ((k + 1) % every == 0 and start + size >= 40):
            monitor((k + 1) / len(starts))
            first, second = (np.concatenate(side) for side in outputs)
            yield _judge(
                mechanism, calibration, sides, row, first, second, laws, line, runs, seed, score, confidence, len(versions)
            )


def audit_pairs(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    budget: Budget,
    runs: int = 1000,
    seed: int = 0,
    *,
    confidence: float = 0.95,
    iterates: Sequence[int] = (),
    monitor: Monitor = silent,
) -> dict[str, AuditResult]:
    """Audits several pairs; each at 1 - (1 - confidence)/k, so that all k hold together at `confidence`."""
    if not pairs:
        raise InvalidInput("pairs", "none was given", "Give at least one pair.")
    out = {}
    for k, pair in enumerate(pairs):

        def part(done: float, k: int = k) -> None:
            monitor((k + done) / len(pairs))

        out[pair.name] = audit(
            mechanism,
            pair.first,
            pair.second,
            budget,
            runs,
            seed + k,
            confidence=1 - (1 - confidence) / len(pairs),
            iterates=iterates,
            monitor=part,
        )
    return out


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
    steps = sorted({whole("iterates", k, 1, total) for k in iterates} - {total})
    return [mechanism.stopped_after(k) for k in steps]


def _inside(monitor: Monitor, done: float) -> Monitor:
    """Passes cancellation on; progress within one fit is too small to show."""
    return lambda share: monitor(done)


def _output(fit: Fit) -> Floats:
    """(S, k) what one training releases."""
    out = fit.theta[0] if fit.constant_label is None else fit.constant_label[0][:, None]
    if not np.isfinite(out).all():
        raise FloatingPointError("Outputs are not finite, so nothing can be said about them; a smaller step size may help.")
    return np.ascontiguousarray(out, dtype=np.float64)


def _judge(
    mechanism: Mechanism,
    calibration: Calibration,
    sides: tuple[Problem, Problem],
    row: int,
    first: Floats,
    second: Floats,
    laws: Laws | None,
    line: tuple[Floats, float] | None,
    requested: int,
    seed: int,
    wanted: str,
    confidence: float,
    iterates: int,
) -> AuditResult:
    delta, n = calibration.budget.delta, len(first)
    warnings: list[str] = []
    exact = laws if laws is not None and laws.usable else None
    if exact is not None:
        contradiction = exact.contradiction(first, second)
        if contradiction:
            warnings.append(contradiction)
            exact = None
    if wanted == "likelihood" and exact is None:
        raise InvalidInput("score", f"{mechanism.id} declares no law that its outputs follow", 'Use score="auto".')
    attacks: list[tuple[str, Score, Counts, float, Counts, Floats, Floats]] = []
    if exact is not None and wanted in ("auto", "likelihood"):
        share = 1.0 if wanted == "likelihood" else 1 - _LEARNED_SHARE
        level = 1 - (1 - confidence) * share
        cut = exact.threshold(trials=n, delta=delta, confidence=level, seed=seed)
        a, b = exact.log_ratio(first), exact.log_ratio(second)
        attacks.append(("likelihood", exact.log_ratio, count_errors(a, b, cut), level, count_errors(a, b, 0.0), a, b))
    if wanted != "likelihood":
        # every other run is kept for choosing, so both parts grow together
        kept, counted = (first[::2], second[::2]), (first[1::2][: n // 2], second[1::2][: n // 2])
        found = fitters(*sides, row, iterates if first.shape[1] == iterates * sides[0].m else 1)
        chosen = {k: f for k, f in found.items() if wanted in ("auto", k.split("(")[0])}
        if not chosen:
            raise InvalidInput("score", f"{wanted!r} needs iterates", "Give iterates, or use another score.")
        name, score, sa, sb = choose(chosen, *kept)
        level = 1 - (1 - confidence) * (_LEARNED_SHARE if attacks else 1.0)
        # judged at the size of the sample that it is seen on: cuts far in the tail only look good there
        cut, _ = best_threshold(sa, sb, trials=min(len(sa), len(counted[0])), delta=delta, confidence=level)
        middle = 0.5 * float(np.median(sa) + np.median(sb))
        a, b = score(counted[0]), score(counted[1])
        attacks.append((name, score, count_errors(a, b, cut), level, count_errors(a, b, middle), a, b))
    best = max(attacks, key=lambda attack: attack[2].epsilon_lower_bound(delta, attack[3]))
    name, score, counts, level, middle_counts, a, b = best
    if attacks[0][0] == "likelihood":
        middle_counts = attacks[0][4]  # the Gaussian test is fixed beforehand: it belongs to the exact attacker
    elif line is not None:
        direction, middle = line
        m = len(direction)
        middle_counts = count_errors(first[:, -m:] @ direction, second[:, -m:] @ direction, middle)
    return AuditResult(
        mechanism=mechanism.id,
        calibration=calibration,
        runs=n,
        requested=requested,
        seed=seed,
        confidence=confidence,
        score=name,
        counts=counts,
        counts_confidence=level,
        middle=middle_counts,
        assumption=_assumption(calibration, exact),
        curve=roc(a, b, confidence),
        cloud=_cloud(first, second, score, exact),
        noise=None if laws is None else laws.residuals(first, second),
        warnings=tuple(warnings),
    )


def _declares_gaussian(calibration: Calibration) -> bool:
    """Whether the calibration declares mu-GDP with the mu that its budget allows."""
    mu = calibration.details.get("mu")
    claims = [gaussian_claim(budget) for budget in (calibration.claimed_budget, calibration.proved_budget)]
    return mu is not None and calibration.noise_family == "gaussian" and any(c and abs(mu / c - 1) < 1e-6 for c in claims)


def _line(
    mechanism: Mechanism, calibration: Calibration, sides: tuple[Problem, Problem], seed: int
) -> tuple[Floats, float] | None:
    """Direction and mid-point between what both sides give without noise: an attacker who needs no runs to learn from."""
    streams, quiet = [np.random.SeedSequence(seed, spawn_key=(3, 0))], [calibration.noiseless()]
    ends = [_output(mechanism.fit(Training(problem, quiet, streams, record=False)))[0] for problem in sides]
    direction = ends[1] - ends[0]
    return (direction, float(0.5 * (ends[0] + ends[1]) @ direction)) if direction.any() else None


def _assumption(calibration: Calibration, laws: Laws | None) -> str:
    """Why the trade-off may be taken for a Gaussian one."""
    if laws is not None and laws.first.family == "gaussian" and laws.first.scale[0] == laws.second.scale[0]:
        return "Both sides are Gaussian with one covariance around fixed centres: the law is declared and the outputs follow it."
    if _declares_gaussian(calibration):
        mu = calibration.details["mu"]
        return f"The guarantee itself is a Gaussian one: the calibration declares μ-GDP with μ = {mu:.4g}."
    return ""


def _cloud(first: Floats, second: Floats, score: Score, laws: Laws | None) -> pd.DataFrame:
    shown = np.concatenate([first[:_CLOUD], second[:_CLOUD]])
    side = np.repeat([0, 1], [min(len(first), _CLOUD), min(len(second), _CLOUD)])
    centre = first.mean(axis=0)
    axis = second.mean(axis=0) - centre if laws is None else laws.second.centre - laws.first.centre
    length = float(np.linalg.norm(axis))
    axis = axis / length if length > 0 else np.eye(len(axis))[0]
    moved = shown - centre
    u = moved @ axis
    rest = moved - u[:, None] * axis
    v = rest @ np.linalg.svd(rest[:: max(1, len(rest) // 400)], full_matrices=False)[2][0]
    return pd.DataFrame({"side": side, "u": u, "v": v, "score": score(shown)})
