"""Guarantees for persons with several rows, from a mechanism's guarantee for one row.

`Setting.person_rows` = k says that epsilon is for a person with at most k rows: neighbouring tables have the same number of rows
and differ in up to k of them, all of one person. They are joined by k replacements of one row (or removals of one), so that

- (e, d) for a row is (k e, d (1 + exp(e) + ... + exp((k-1) e))) for the person: the definition, applied k times;
- mu-Gaussian DP for a row is k mu-Gaussian DP for the person (Dong, Roth, Su 2022, Theorem 2.14), which is what the sensitivity
  of k clipped gradients gives too: their sum moves by at most k times what one moves;
- two outputs at total variation d for a row are at most at k d for the person: the triangle inequality;
- a mechanism that `draws_persons` treats a person as one row, so what it proves for a row it proves for the person.

`mechanisms.protection` applies this to every mechanism, which is calibrated for a row.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from dpviz.common.validate import InvalidInput
from dpviz.mechanisms.calibration import Calibration
from dpviz.privacy.accounting.events import Event, Gaussian, PureEpsilon, scale_noise, steps_of
from dpviz.privacy.accounting.gaussian import gaussian_budget, gaussian_epsilon, gaussian_mu
from dpviz.privacy.budget import Budget

#: bounds of a row's slope and curvature hold for weights of at most 1 (`Rows.weights`), so that no constant changes
WEIGHTS: str = (
    "Rows have public weights, divided by the largest that is declared: the noise is for a row of that weight, so the "
    "sensitivity beside a row of weight 1 grows with it."
)


def budget_of_group(row: Budget, rows: int) -> Budget:
    """The budget of `rows` rows together, from that of one.

    >>> print(budget_of_group(Budget(0.5, 1e-6), 2))
    (ε = 1, δ = 2.65 · 10⁻⁶)
    """
    # d_k = d sum_{i<k} exp(i e)
    log_delta = math.log(row.delta) + _log_sum(row.epsilon, rows) if row.delta else -math.inf
    return Budget(rows * row.epsilon, min(math.exp(min(log_delta, 0.0)), 1 - 1e-16))


def budget_of_row(person: Budget, rows: int) -> Budget:
    """The largest budget of one row at epsilon/rows with which all of a person's rows are within `person`.

    Args:
        rows: of the person at most; 0 where the budget is for a row already.

    >>> print(budget_of_row(Budget(1.0, 1e-5), 2))
    (ε = 0.5, δ = 3.78 · 10⁻⁶)
    """
    each = person.epsilon / (rows or 1)
    return Budget(each, person.delta * math.exp(-_log_sum(each, rows or 1)))


def _log_sum(epsilon: float, rows: int) -> float:
    """ln(1 + exp(epsilon) + ... + exp((rows - 1) epsilon)), by its largest term."""
    return (rows - 1) * epsilon + math.log(sum(math.exp(-i * epsilon) for i in range(rows)))


def privacy_unit(person_rows: int) -> str:
    """The unit that epsilon protects."""
    if person_rows <= 1:
        return "one person, of whom at most one row is kept" if person_rows else "one row"
    return f"one person, of whom at most {person_rows:,} rows are kept"


def calibrate_person(method: Callable[[Budget], Calibration], budget: Budget, rows: int) -> Calibration:
    """The calibration for a person with at most so many rows, from `method`, which calibrates for one row.

    Raises:
        InvalidInput: the budget leaves nothing for one row.
    """
    if rows == 1:
        row = method(budget)
        return replace(row, person_rows=1, row_calibration=row)
    each = budget_of_row(budget, rows)
    by_delta = budget.delta == 0 or each.delta > 0  # otherwise exp(epsilon) is beyond double precision
    gaussian = gaussian_budget(gaussian_mu(budget) / rows, budget) if budget.delta else each
    row = method(each if by_delta else gaussian)
    if by_delta and row.mu is not None:
        row = method(gaussian)
    if not by_delta and row.mu is None:
        cause = f"{budget.epsilon:g} is so large that group privacy leaves no δ for one of {rows:,} rows"
        raise InvalidInput("epsilon", cause, "Choose a smaller epsilon, or keep fewer rows of a person.")
    return _lifted(row, budget, rows)


def _lifted(cal: Calibration, budget: Budget, rows: int) -> Calibration:
    """A calibration for a row as one for a person with so many rows; `budget` was asked for."""

    def lifted(row: Budget | None) -> Budget | None:
        """The person's budget; that of the row was chosen so that it is the one that was asked for."""
        return row if row is None else budget if row == cal.budget else budget_of_group(row, rows)

    proved, mu = lifted(cal.proved_budget), None if cal.mu is None else rows * cal.mu
    if mu is not None and proved is not None:
        reached = float(gaussian_epsilon(budget.delta, mu)) if mu > gaussian_mu(budget) else 0.0
        proved = Budget(reached, budget.delta) if reached > budget.epsilon else budget
    theorem = "k μ (Dong, Roth, Su 2022, Theorem 2.14)" if mu is not None else "k ε, δ Σ exp(i ε)"
    note = (
        f"ε is for a person with at most {rows:,} rows: {theorem}. One row alone has {cal.proved_budget or cal.claimed_budget}."
    )
    return replace(
        cal,
        budget=budget,
        sensitivity=rows * cal.sensitivity,
        sensitivity_source=f"{rows:,} rows of one person, each in turn: {cal.sensitivity_source}",
        accountant=f"{cal.accountant}; {rows:,} rows of one person by group privacy",
        proved_budget=proved,
        claimed_budget=lifted(cal.claimed_budget),
        mu=mu,
        notes=(*cal.notes, *([note] if cal.proved_budget or cal.claimed_budget else [])),
        person_rows=rows,
        row_calibration=cal,
    )


def convert_to_person(cal: Calibration, rows: int) -> Calibration:
    """A calibration for a row as one for a person of several rows who counts as one row."""
    return replace(
        cal,
        sensitivity_source=f"the mean of one person's clipped gradients in the place of a row's: {cal.sensitivity_source}",
        notes=(*cal.notes, f"Persons are drawn, each with all of at most {rows:,} rows, which together count as one row."),
        person_rows=rows,
        row_calibration=cal,
    )


def group_event(event: Event | None, rows: int) -> Event | None:
    """The event of all rows of one person; None where that is not known, as for random batches, which hold some of them."""
    if event is None or rows <= 1:
        return event
    whole = all(step.sampling == "full" and isinstance(step.event, Gaussian | PureEpsilon) for step in steps_of(event))
    return scale_noise(event, 1 / rows) if whole else None
