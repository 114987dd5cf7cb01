"""Neighbouring pairs to attack: synthetic ones that are as bad as a method's analysis fears, and ones from real data.

All rows lie in the unit ball, and exactly one row differs, or rows of one person where epsilon is for a person. A row x = 0 has
no gradient in a linear model, so replacing a row by it is also what removing it means when n is public. In a network it still
moves the offsets.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput, check_integer
from dpviz.influence import influence_of
from dpviz.mechanisms import HasWorstPair, Mechanism, Training, protection
from dpviz.models import Model, Rows
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, Neighbouring


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring problems.

    Attributes:
        name: short id.
        first, second: the problems; they differ in one row, or in rows of one person.
        why: one sentence for people.
        asks: what an attacker guesses, in words.
    """

    name: str
    first: Problem
    second: Problem
    why: str
    asks: str = "which of two synthetic datasets was used"

    def __post_init__(self) -> None:
        differing_rows(self.first, self.second)


def differing_rows(first: Problem, second: Problem) -> NDArray[np.intp]:
    """Positions of the rows in which the problems differ: one, or up to as many as one person has where epsilon is for a person.

    Raises:
        InvalidInput: they are not replace-one neighbours.
    """
    fix = "Give two problems with the same model, regularisation and rows but for one."
    most = first.rows.person_rows
    alike = first.model == second.model and first.lam == second.lam and second.rows.person_rows == most
    if first.rows.X.shape != second.rows.X.shape or not alike:
        raise InvalidInput("pair", "the two problems differ in shape, model or regularisation", fix)
    differs = (first.rows.X != second.rows.X).any(axis=1) | (first.rows.y != second.rows.y)
    who = None if first.rows.persons is None else first.rows.persons[differs]
    if who is not None and most > 1 and len(set(who.tolist())) > 1:
        raise InvalidInput("pair", "the two datasets differ in rows of several persons", fix)
    if not 1 <= differs.sum() <= max(1, most):
        raise InvalidInput("pair", f"the two datasets differ in {int(differs.sum())} rows", fix)
    return np.flatnonzero(differs)


def needs_zero_rows(mechanism: Mechanism, problem: Problem, field: str) -> None:
    """Checks that a row of zeros is the same as no row, as where neighbours add or remove one.

    Raises:
        InvalidInput: the model is not linear in the row.
    """
    if problem.setting.quadratic is None:
        cause = f"{mechanism.id} speaks about adding or removing a row, and in {problem.model.id!r} a row of zeros is not the "
        raise InvalidInput(field, f"{cause}same as no row", "Audit it under replace-one, or on a linear model.")


def _labels(n: int) -> Floats:
    return np.where(np.arange(n) % 2 == 0, 1.0, -1.0)


def _axis(d: int, k: int) -> Floats:
    return np.eye(d)[min(k, d - 1)]


def _quiet(n: int, d: int) -> tuple[Rows, Floats, float, Floats, float]:
    # nothing else changes the model, and every coordinate carries the difference
    x = np.full(d, d**-0.5)
    return Rows(np.zeros((n, d)), _labels(n)), x, 1.0, x, -1.0


def _presence(n: int, d: int) -> tuple[Rows, Floats, float, Floats, float]:
    return Rows(np.zeros((n, d)), _labels(n)), np.zeros(d), 1.0, np.full(d, d**-0.5), 1.0


def _pushed(n: int, d: int, back: float = 0.25) -> tuple[Rows, Floats, float, Floats, float]:
    # the others push the model along e1, so that both canaries are misclassified and both gradients are long
    side = np.zeros(d)
    side[1:] = ((1 - back**2) / max(d - 1, 1)) ** 0.5
    there = -back * _axis(d, 0)
    return Rows(np.tile(_axis(d, 0), (n, 1)), np.ones(n)), there + side, 1.0, there - side, 1.0


def _opposed(n: int, d: int) -> tuple[Rows, Floats, float, Floats, float]:
    # rows e1 and -e1 are learnt well, so that noise on them hardly reaches the direction of the canary
    y = _labels(n)
    return Rows(y[:, None] * _axis(d, 0), y), _axis(d, 1), 1.0, _axis(d, 1), -1.0


def _outlier(n: int, d: int) -> tuple[Rows, Floats, float, Floats, float]:
    x = np.full(d, d**-0.5)
    return Rows(np.tile(0.02 * x, (n, 1)), np.ones(n)), 0.02 * x, 1.0, x, 1.0


Build = Callable[[int, int], tuple[Rows, Floats, float, Floats, float]]

#: id -> (rows, what the first and the second dataset hold in the last row, or in all rows of the last person; why)
PAIRS: dict[str, tuple[Build, str]] = {
    "quiet": (_quiet, "All other rows are zero; one row on the sphere has its label flipped."),
    "pushed": (_pushed, "The others push the model one way; one misclassified row is mirrored, so both gradients are long."),
    "presence": (_presence, "All other rows are zero; one row on the sphere stands in for a row of zeros."),
    "opposed": (_opposed, "The others are learnt with large margins along one axis; one row on another axis is flipped."),
    "outlier": (_outlier, "The others are short; one of them becomes fifty times as long, which no fitted scale survives."),
}


def make(name: str, model: Model, n: int, d: int, lam: float, person_rows: int = 0) -> Pair:
    """A synthetic pair by id, for n >= 4 rows and d >= 2 features.

    Args:
        person_rows: rows of the person who differs, all of which are the differing row; 0 where epsilon is for a row.
    """
    n, d = check_integer("n", n, 4, 10**7), check_integer("d", d, 2, 10**5)
    build, why = PAIRS[name]
    rows, x, y, other_x, other_y = build(n, d)
    rows.person_rows = check_integer("person_rows", person_rows, 0, n)
    base, last = Problem(rows, model, lam), np.arange(n - max(1, person_rows), n)
    rows.persons = np.minimum(np.arange(n), last[0])
    if person_rows > 1:
        why += f" The row stands there {person_rows:,} times: all rows of one person."
    return Pair(name, base.replace_row(last, x, y), base.replace_row(last, other_x, other_y), why)


def battery(
    mechanism: Mechanism,
    model: Model,
    n: int = 100,
    d: int = 3,
    lam: float = 0.01,
    budget: Budget | None = None,
    person_rows: int = 0,
) -> list[Pair]:
    """Pairs that together leave few kinds of mistakes unseen; under add-remove, those in which one row is zeros.

    Args:
        budget: whose calibration says what the relation is; without one it is the mechanism's usual one.
        person_rows: as of `make`.
    """
    setting = replace(model.setting(n, d, lam), person_rows=person_rows)
    relation = mechanism.neighbouring if budget is None else protection.calibrate(mechanism, setting, budget).neighbouring
    # one row differs in what a mechanism declares
    own = mechanism.worst_pair(model, setting) if isinstance(mechanism, HasWorstPair) and person_rows <= 1 else None
    pairs = [Pair("own", *own, f"The pair that {mechanism.label} declares as its worst.")] if own else []
    names = ["presence"] if relation is Neighbouring.ADD_REMOVE else list(PAIRS)
    return pairs + [make(name, model, n, d, lam, person_rows) for name in names]


def worst_case(
    mechanism: Mechanism, model: Model, budget: Budget, n: int = 100, d: int = 3, lam: float = 0.01, person_rows: int = 0
) -> Pair:
    """The pair that is expected to be worst for a mechanism.

    What the mechanism declares itself; for input perturbation the opposed pair, because there the noise that reaches
    the model depends on the other rows; otherwise the pair whose models lie furthest apart when noise is off. All
    `person_rows` rows of one person differ where epsilon is for a person.
    """
    setting = replace(model.setting(n, d, lam), person_rows=person_rows)
    mechanism.require(setting)
    pairs = battery(mechanism, model, n, d, lam, budget, person_rows)
    if pairs[0].name == "own":
        return pairs[0]
    opposed = [pair for pair in pairs if pair.name == "opposed"]
    if mechanism.family == "input" and opposed:
        return opposed[0]
    quiet = [protection.calibrate(mechanism, setting, budget).noiseless()]
    streams = spawn(0, 1)

    def distance(pair: Pair) -> float:
        fits = [mechanism.fit(Training(p, quiet, streams, record=False)) for p in (pair.first, pair.second)]
        return float(np.linalg.norm(fits[0].theta - fits[1].theta))

    return max((p for p in pairs if p.name in ("quiet", "pushed", "presence")), key=distance)


#: position of a training row, or (j,) positions of rows of one person, who has at most `Rows.person_rows`
At = int | NDArray[np.intp]


def _at(problem: Problem, index: At) -> NDArray[np.intp]:
    return np.array([check_integer("index", one, 0, problem.n - 1) for one in np.atleast_1d(index).tolist()], dtype=np.intp)


def name_rows(ids: NDArray[np.intp]) -> str:
    """Rows by their ids, without the first letter: one, or all of one person."""
    listed = ", ".join(map(str, ids[:5].tolist())) + (", ..." if len(ids) > 5 else "")
    return f"ow {listed}" if len(ids) == 1 else f"ows {listed} (all {len(ids):,} of one person)"


def label_flip(problem: Problem, index: At) -> Pair:
    """Training row `index` against the same row with the other label; all rows of one person where several are given."""
    at = _at(problem, index)
    flipped = problem.replace_row(at, problem.rows.X[at], -problem.rows.y[at])
    return Pair("label-flip", problem, flipped, f"R{name_rows(at)}, label flipped.")


def pair_without(problem: Problem, index: At) -> Pair:
    """Training row `index` against a row of zeros, which has no gradient in a linear model: with and without that person."""
    at = _at(problem, index)
    gone = problem.replace_row(at, np.zeros(problem.rows.X.shape[1]), problem.rows.y[at])
    return Pair("without", problem, gone, f"With r{name_rows(at)}, and with zeros in the place.")


def replace_by(problem: Problem, index: At, x: Floats, y: float) -> Pair:
    """Training row `index` against any other row (x, y) with |x| <= 1 and y in {-1, +1}."""
    at = _at(problem, index)
    x = np.asarray(x, float)
    if x.shape != problem.rows.X.shape[1:] or not np.isfinite(x).all() or np.linalg.norm(x) > 1 + 1e-9 or y not in (-1, 1):
        raise InvalidInput(
            "row", "a row needs as many finite features as the data, norm at most 1 and label -1 or +1", "Scale the row."
        )
    return Pair("replace", problem, problem.replace_row(at, x, float(y)), f"R{name_rows(at)} replaced by another row.")


def most_influential(problem: Problem, persons: NDArray[np.intp] | None = None) -> Pair:
    """The most influential row (`Influence.order`), with its label flipped.

    Args:
        persons: (n,) the person of each row, where epsilon is for a person: all rows of the one whose rows, left out one by one,
            change most in sum, by Newton steps.
    """
    influence = influence_of(problem)
    at = influence.order[:1]
    if persons is not None:
        at = np.flatnonzero(persons == np.argmax(np.bincount(persons, influence.newton_norm)))
    pair = label_flip(problem, at)
    return Pair("most-influential", pair.first, pair.second, f"R{name_rows(at)}, the most influential, label flipped.")
