"""Audits of runs: the neighbouring pair that belongs to a run's data, and the game on it."""

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.auditing.game import prepare, watch
from dpviz.auditing.one_run import MOST_CANARIES, Canaries, OneRunResult, audit_one_run, axis_canaries
from dpviz.auditing.pairs import (
    Pair,
    differing_rows,
    label_flip,
    most_influential,
    name_rows,
    pair_without,
    replace_by,
    worst_case,
)
from dpviz.auditing.result import AuditResult
from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import InvalidInput, check_choice, check_integer
from dpviz.experiments.run.resolve import dataset_of, resolve
from dpviz.experiments.run.setup import mechanism_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.models import get_model
from dpviz.models.problem import Problem

#: kinds of pairs, in words; the worst case needs public facts of the data alone
KINDS: dict[str, str] = {
    "most-influential": "The most influential row, label flipped",
    "worst-case": "The worst case for this method, on synthetic rows",
    "without": "A row of your choice, there or not",
    "label-flip": "A row of your choice, label flipped",
    "two-rows": "A row of your choice, replaced by another",
}
#: the same where epsilon is for a person: all of a person's rows differ
KINDS_OF_PERSONS: dict[str, str] = {
    "most-influential": "The most influential person, labels flipped",
    "worst-case": KINDS["worst-case"],
    "without": "A person of your choice, there or not",
    "label-flip": "A person of your choice, labels flipped",
    "two-rows": "A person of your choice, all rows replaced by one other",
}
#: kinds of pairs that use the row of a person's choice, and the other row
CHOSEN = {"row": ("without", "label-flip", "two-rows"), "other": ("two-rows",)}
WORST = "worst-case"
ROWS, FEATURES = 1000, 2  # of the synthetic pairs


def pair_of(spec: RunSpec, kind: str = WORST, row: int | None = None, other: int | None = None) -> Pair:
    """Two neighbouring problems for a run. Private ranges are held fixed: what is audited is the method, with its part of ε.

    Of synthetic rows there are fewer than of the run's. Automatic hyperparameters are those of the run nevertheless.

    Args:
        kind: a key of `KINDS`.
        row, other: ids of training rows; the first and the second where they are left out. Of a table of persons, all training
            rows of the person of `row` differ.

    Raises:
        InvalidInput: an unknown kind, or an id that no training row has.
    """
    made = _pair_of(spec, check_choice("pair", kind, KINDS), row, other)
    if not dataset_of(resolve(spec).spec).preparations:
        return made
    return replace(made, why=f"{made.why} Preparations are not attacked: the method alone is, with {resolve(spec).of_method}.")


def _pair_of(spec: RunSpec, kind: str, row: int | None, other: int | None) -> Pair:
    if kind == WORST:
        run = resolve(spec)
        rows = min(ROWS, math.ceil(1 / run.budget.delta) - 1)  # few enough that delta is below 1/n
        persons = dataset_of(run.spec).person_rows
        built = mechanism_of(spec, rows)
        return worst_case(built, get_model(spec.model), run.of_method, n=rows, d=FEATURES, lam=run.lam, person_rows=persons)
    shared = setup_for(spec)
    problem, ids = _without_preparation(shared.problem), shared.split.train
    who = None if shared.dataset.persons is None else shared.dataset.persons[ids]
    if kind == "most-influential":
        made = most_influential(problem, who)
        at = differing_rows(made.first, made.second)
        name = name_rows(ids[at])
        why = f"R{name}, the most influential: label flipped."
        return replace(made, why=why, asks=f"the label of r{name}")
    first = _position("row", ids, row, 0)
    at = np.array([first]) if who is None else np.flatnonzero(who == who[first])
    name = name_rows(ids[at])
    if kind == "without":
        zeros = "a row of zeros takes its place" if len(at) == 1 else "rows of zeros take their place"
        return replace(pair_without(problem, at), why=f"With and without r{name}; {zeros}.", asks=f"whether r{name} was there")
    if kind == "label-flip":
        return replace(label_flip(problem, at), why=f"R{name}, label flipped.", asks=f"the label of r{name}")
    by = _position("other", ids, other, 1)
    made = replace_by(problem, at, problem.rows.X[by], float(problem.rows.y[by]))
    return replace(made, why=f"R{name} replaced by a copy of row {ids[by]}.", asks=f"whether r{name} was there")


def _without_preparation(problem: Problem) -> Problem:
    """The problem that is audited for the method's part of the budget, its preparation held fixed."""
    if not problem.rows.preparations:
        return problem
    rows = copy(problem.rows)
    rows.preparations = ()
    return Problem(rows, problem.model, problem.lam)


def _position(field: str, ids: NDArray[np.intp], row: int | None, default: int) -> int:
    if row is None:
        return default
    places = np.flatnonzero(ids == row)
    if not len(places):
        raise InvalidInput(field, f"row {row} is not a training row", f"Choose another id, for example {ids[0]}.")
    return int(places[0])


def watch_run(
    spec: RunSpec,
    kind: str = WORST,
    row: int | None = None,
    other: int | None = None,
    runs: int = 1000,
    *,
    score: str = "auto",
    confidence: float = 0.95,
    monitor: Monitor = ignore,
    looks: int = 20,
) -> Iterator[tuple[Pair, AuditResult]]:
    """The game on a run as it goes on; its seed is that of the game. See `pair_of`, and `dpviz.auditing.watch` for the rest."""
    fixed = replace(resolve(spec).spec, seeds=1)
    pair = pair_of(fixed, kind, row, other)
    mechanism, budget = mechanism_of(fixed, pair.first.n), resolve(fixed).of_method
    game = prepare(mechanism, pair.first, pair.second, budget, runs, fixed.seed, score, confidence)
    return ((pair, result) for result in watch(game, monitor, looks))


def audit_run(spec: RunSpec, kind: str = WORST, **options: Any) -> AuditResult:
    """Audits a run: an attacker guesses which of two neighbouring datasets a model was trained on.

    Args:
        spec: its mechanism, budget and seed are attacked.
        kind: of the pair: "worst-case" on synthetic rows; "most-influential", "without", "label-flip" or "two-rows" on its own.
        options: row and other (ids of training rows, for the last three), runs (models trained on each dataset, 40 to 1,000,000;
            1000), score ("auto"), confidence (of the bounds, in (0, 1); 0.95) and monitor.

    Returns:
        The share of right guesses, and the lower bound on epsilon that it shows.

    Raises:
        InvalidInput: a bad argument, an id that no training row has, or a budget that cannot be met.
        FloatingPointError: nothing protects the outputs.
    """
    *_, (_, result) = watch_run(spec, kind, **options, looks=1)
    return result


def one_run_of(spec: RunSpec, canaries: int = 1000, *, monitor: Monitor = ignore) -> tuple[Canaries, OneRunResult]:
    """One training of a run's mechanism at its budget on synthetic canaries, and what that shows; see `audit_one_run`.

    Args:
        canaries: how many; they are the rows of a dataset of their own, so of the run's rows only public facts are used.
    """
    mechanism, run = mechanism_of(spec, check_integer("canaries", canaries, 10, MOST_CANARIES)), resolve(spec)
    budget = run.of_method
    made = axis_canaries(mechanism, get_model(spec.model), budget, canaries, run.lam)
    return made, audit_one_run(mechanism, made, budget, spec.seed, monitor=monitor)
