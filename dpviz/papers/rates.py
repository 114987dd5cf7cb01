"""Published rates as functions: the rows of three comparison tables, with what their O(·) hides and when they hold.

Every number here is a rate with the factor in front of O(·) set to 1. It is not a bound: only ratios along one row,
that is slopes, mean anything. Bounds with all constants are in `dpviz.privacy.utility_bounds`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpviz.common.validate import InvalidInput, check_choice, check_integer, check_range, positive


@dataclass(frozen=True)
class Facts:
    """The arguments of the rates.

    Attributes:
        n: training rows.
        d: parameters, called m or p in the papers; also the number of features, as for a linear model.
        epsilon, delta: the budget.
        G: Lipschitz constant of the loss.
        L: smoothness.
        mu: strong convexity or PL constant, called Delta or lambda in the papers.
        steps: T.
        inner: steps between two full gradients, called m in DP-SVRG's row; 0 stands for ceil(L/mu).
        influential: k, rows that affect the model significantly; 0 stands for a tenth of n, but at least 1.
        radius: D, bound on the norm of the parameters; 0 stands for G/mu, beyond which no regularised minimiser lies.
        failure: chance with which a utility bound may fail (delta in the rows of Chaudhuri et al., not the budget's).

    Raises:
        InvalidInput: a value is out of range.
    """

    n: int
    d: int
    epsilon: float
    delta: float
    G: float = 1.0
    L: float = 0.251
    mu: float = 1e-3
    steps: int = 50
    inner: int = 0
    influential: int = 0
    radius: float = 0.0
    failure: float = 0.05

    def __post_init__(self) -> None:
        for name in ("epsilon", "G", "L", "mu"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        for name, low in (("n", 2), ("d", 1), ("steps", 1), ("inner", 0), ("influential", 0)):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), low, 10**12))
        for name in ("delta", "failure"):
            object.__setattr__(self, name, check_range(name, getattr(self, name), 1e-300, 1 - 1e-12))
        if self.mu > self.L:
            raise InvalidInput("mu", f"{self.mu:g} is above L = {self.L:g}", "A loss cannot be more convex than it is smooth.")
        # every later use sees a number
        object.__setattr__(self, "inner", self.inner or math.ceil(self.L / self.mu))
        object.__setattr__(self, "influential", self.influential or max(1, self.n // 10))
        object.__setattr__(self, "radius", self.radius or self.G / self.mu)


@dataclass(frozen=True)
class Formula:
    """A published rate.

    Attributes:
        latex: as printed, with the symbols of the table.
        value: the same as a function, the factor in front of O(·) being 1; None where the print cannot be read.
        unit: what the number is.
        hides: what O(·) leaves out.
    """

    latex: str
    value: Callable[[Facts], float] | None
    unit: str
    hides: str = "an unspecified constant"


@dataclass(frozen=True)
class Condition:
    """A condition on a row. `check` gives None where it holds, and otherwise the reason with numbers."""

    words: str
    check: Callable[[Facts], str | None]


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes:
        method: for people, with year.
        perturbs: what gets the noise.
        noise: the noise rate.
        excess: expected excess empirical risk.
        population: expected excess population risk.
        conditions: what has to hold.
        assumes: assumptions on the loss that no number decides.
        mechanism: id of the mechanism here that this is about, "" where there is none.
        remarks: on this row as printed.
    """

    method: str
    perturbs: str
    noise: Formula | None = None
    excess: Formula | None = None
    population: Formula | None = None
    conditions: tuple[Condition, ...] = ()
    assumes: tuple[str, ...] = ()
    mechanism: str = ""
    remarks: tuple[str, ...] = ()

    def broken(self, facts: Facts) -> list[str]:
        """Reasons for which the row does not apply, with numbers; empty where all conditions hold."""
        return [reason for c in self.conditions if (reason := c.check(facts)) is not None]


#: id: title, and key of `PAPERS`
TABLES = {
    "dbdp": ("DBDP, Table 1", "kang-dbdp"),
    "input": ("Input perturbation, Table 1", "kang-ip"),
    "pidp": ("PIDP, Table 1", "kang-pidp"),
}

#: what can be asked of a row
QUANTITIES = {"noise": "noise", "excess": "excess empirical risk", "population": "excess population risk"}


def value(formula: Formula | None, facts: Facts) -> float:
    """The rate with the factor 1 in front; NaN where there is none or where the print cannot be read."""
    if formula is None or formula.value is None:
        return math.nan
    try:
        return float(formula.value(facts))
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Evaluated:
    """A row at given facts: numbers (NaN where there are none) and the reasons for which it does not apply."""

    row: Row
    noise: float
    excess: float
    population: float
    broken: tuple[str, ...]


def evaluate(rows: tuple[Row, ...], facts: Facts, sort_by: str = "excess") -> list[Evaluated]:
    """Every row as numbers; rows that apply come first, smallest first, and rows without a number last."""
    check_choice("sort_by", sort_by, tuple(QUANTITIES))
    results = [
        Evaluated(r, value(r.noise, facts), value(r.excess, facts), value(r.population, facts), tuple(r.broken(facts)))
        for r in rows
    ]

    def key(e: Evaluated) -> tuple[bool, bool, float]:
        number = getattr(e, sort_by)
        return math.isnan(number), bool(e.broken), math.inf if math.isnan(number) else number

    return sorted(results, key=key)
