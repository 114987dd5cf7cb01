"""Answers to questions of a lesson: a number with the range in which it is right, or a name, and what it is read off.

Each function takes a run and returns what the pages show for it, so that a lesson's answer is never written from memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.run import Result, run
from dpviz.experiments.run.setup import calibration_of, setting_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import inspected, scaling
from dpviz.experiments.studies.cost import split_cost
from dpviz.experiments.sweeps import curves
from dpviz.experiments.sweeps.sweep import SweepSpec, run_sweep
from dpviz.mechanisms import get_mechanism
from dpviz.mechanisms.attack import Attacker, epsilon_by_budget, strongest_attack
from dpviz.mechanisms.attack import epsilon_for as tolerated_epsilon
from dpviz.privacy.budget import Status

#: pages show one decimal of a percentage; an answer read off one is right
_ROUNDING = 0.05


@dataclass(frozen=True, eq=False)
class Answer:
    """The right answer, and the numbers that it is read off.

    Attributes:
        value: a number, or one of the names in `right`.
        low, high: range in which a number is right, ends included; NaN for a name.
        right: the names that are right; none for a number.
        evidence: columns name, value and chosen, one row for each bar of the picture.
        quantity: what `value` of the evidence measures.
    """

    value: float | str
    low: float
    high: float
    right: tuple[str, ...]
    evidence: pd.DataFrame
    quantity: str

    def accepts(self, answer: float | str) -> bool:
        """True where an answer is right."""
        return answer in self.right if isinstance(answer, str) else bool(self.low <= answer <= self.high)


def cost_of_noise(spec: RunSpec) -> Answer:
    """Percentage points of test accuracy lost to noise, right within two standard errors."""
    made = run(spec)
    cost = split_cost(made)
    points = 100 * cost.noise
    error = max(_ROUNDING, 200 * float(np.nan_to_num(cost.noise_error)))
    rows = [
        ("private", 100 * cost.mean, True),
        ("same training without noise", 100 * float(cost.noiseless.mean()), True),
        ("non-private optimum", 100 * cost.non_private, False),
    ]
    return _number(points, error, rows, "test accuracy in percent")


def best_method(spec: RunSpec, methods: Sequence[str]) -> Answer:
    """The mechanism of the highest mean accuracy at the run's ε; also those within two standard errors of it.

    Args:
        spec: its mechanism and knobs are not used; every method stands at its defaults.
        methods: mechanism ids.
    """
    accuracies = {name: _mean_and_error(run(replace(spec, mechanism=name, params={}))) for name in methods}
    best = max(accuracies, key=lambda name: accuracies[name][0])
    mean, error = accuracies[best]
    right = tuple(n for n, (m, e) in accuracies.items() if mean - m <= 2 * float(np.hypot(e, error)))
    rows = [(get_mechanism(name).label, 100 * m, name == best) for name, (m, _) in accuracies.items()]
    return _name(best, right, rows, "test accuracy in percent")


def _mean_and_error(made: Result) -> tuple[float, float]:
    """Mean test accuracy and its standard error: the closed form has none."""
    if made.expected_accuracy is not None:
        return made.expected_accuracy, 0.0
    values = made.accuracy
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0


def epsilon_for(spec: RunSpec, target: float, low: float = 0.01, high: float = 10.0) -> Answer:
    """ε that a mechanism needs for a mean test accuracy, right within the 95 % interval of the curve.

    Args:
        target: share in [0, 1].
        low, high: ends of the grid of 7 ε that the curve goes through.

    Raises:
        InvalidInput: the accuracy is not reached on the grid.
    """
    grid = curves.grid(low, high, 7)
    table = run_sweep(SweepSpec.from_run(spec, {spec.mechanism: dict(spec.params)}, grid))
    band = curves.summarise(table, band="mean")

    def needed(column: str) -> float | None:
        return curves.needed_budgets(band.assign(mean=band[column]), target)[0].epsilon

    value, least, most = needed("mean"), needed("high"), needed("low")
    if value is None:
        raise InvalidInput("target", f"{target:g} is not reached up to ε = {high:g}", "Give a lower accuracy.")
    rows = [(f"ε = {row.epsilon:g}", 100 * float(row.mean), bool(row.mean >= target)) for row in band.itertuples()]
    ends = 0.99 * (least or low), 1.01 * (most or np.inf)
    return Answer(value, *ends, (), _evidence(rows), "test accuracy in percent")


def most_influential(spec: RunSpec, shown: int = 6) -> Answer:
    """Id of the training row whose removal changes the non-private model most. Not private.

    Args:
        shown: rows in the evidence.
    """
    order, ids = inspected.row_influence(spec).order[:shown], setup_for(spec).split.train
    changes = inspected.retrain_without(spec, order).norm
    rows = [(f"row {ids[k]}", float(change), i == 0) for i, (k, change) in enumerate(zip(order, changes, strict=True))]
    return _number(float(ids[order[0]]), 0.0, rows, "change of the parameters, retrained without the row")


def rows_with_noise(spec: RunSpec) -> Answer:
    """Number of training rows with noise in the first noise draw; the others trained without it, or were never drawn.

    Raises:
        InvalidInput: the mechanism puts no noise on rows.
    """
    run_with_rows = inspected.inspect(replace(spec, seeds=1))
    if run_with_rows.ever is None:
        raise InvalidInput("mechanism", f"{spec.mechanism} puts no noise on rows", "Choose one that does.")
    with_noise, visited = run_with_rows.ever, run_with_rows.instances["visits"].to_numpy() > 0
    count = int(with_noise.sum())
    rows = [
        ("received noise", float(count), True),
        ("trained without noise", float((visited & ~with_noise).sum()), False),
        ("never used", float((~visited & ~with_noise).sum()), False),
    ]
    return _number(float(count), 0.0, rows, "training rows")


def sensitivity_ratio(spec: RunSpec) -> Answer:
    """The factor by which the sensitivity in use is smaller with 10 times as many rows."""
    n = setting_of(spec).n
    sizes = (n, 10 * n)
    bounds = [next(iter(scaling.bounds_at(spec, "n", size).values())) for size in sizes]
    ratio = bounds[0] / bounds[1]
    rows = [(f"n = {size:,}", value, False) for size, value in zip(sizes, bounds, strict=True)]
    return _number(ratio, 0.01 * ratio, rows, "sensitivity (L2)")


def attack_bound(spec: RunSpec) -> Answer:
    """Largest share of correct guesses about one person, in percent, by the tightest bound that is known.

    Raises:
        InvalidInput: nothing is proved for this mechanism.
    """
    attack = strongest_attack(spec.build(), setting_of(spec), calibration_of(spec))
    if attack is None:
        raise InvalidInput("mechanism", f"{spec.mechanism} has no proved budget", "Choose one that is proved.")
    rows = [
        ("coin toss", 50.0, False),
        ("tightest bound", 100 * attack.accuracy, True),
        ("by (ε, δ) alone", 100 * attack.accuracy_by_budget, False),
    ]
    return _number(100 * attack.accuracy, _ROUNDING, rows, "correct guesses in percent")


def largest_tolerated_epsilon(spec: RunSpec, attacker: str) -> Answer:
    """The largest epsilon, at the run's delta, with which no attacker does better than is tolerated.

    Args:
        attacker: as `dpviz calibrate --attacker` takes it.

    Raises:
        InvalidInput: nothing is proved for this mechanism.
    """
    asked, delta = Attacker.parse(attacker), resolve(spec).budget.delta
    value, alone = tolerated_epsilon(asked, spec.build(), setting_of(spec), delta), epsilon_by_budget(asked, delta)
    rows = [("through the trade-off curve", value, True), ("by (ε, δ) alone", alone, False)]
    return _number(value, 0.03 * value, rows, "ε that keeps the attacker out")


def claimed_mechanism(spec: RunSpec, methods: Sequence[str]) -> Answer:
    """The mechanism whose guarantee is only a paper's claim, among some.

    Raises:
        InvalidInput: there is none, or more than one.
    """
    calibrations = {name: calibration_of(replace(spec, mechanism=name, params={})) for name in methods}
    claims = [name for name, calibration in calibrations.items() if calibration.status is Status.CLAIM]
    if len(claims) != 1:
        raise InvalidInput("methods", f"{len(claims)} of them are only claimed", "Name exactly one such method.")
    rows = [
        (f"{get_mechanism(name).label}: {c.status.value}", c.proved_budget.epsilon if c.proved_budget else 0.0, name in claims)
        for name, c in calibrations.items()
    ]
    return _name(claims[0], (claims[0],), rows, "ε that is proved (0: none)")


def _number(value: float, error: float, rows: Sequence[tuple[str, float, bool]], quantity: str) -> Answer:
    return Answer(value, value - error - 1e-9, value + error + 1e-9, (), _evidence(rows), quantity)


def _name(value: str, right: tuple[str, ...], rows: Sequence[tuple[str, float, bool]], quantity: str) -> Answer:
    return Answer(value, float("nan"), float("nan"), right, _evidence(rows), quantity)


def _evidence(rows: Sequence[tuple[str, float, bool]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["name", "value", "chosen"])
