"""A privacy budget, the relation it speaks about, and what it means for an attacker."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dpviz.common.digits import three
from dpviz.common.validate import InvalidInput, number, positive


class Neighbouring(StrEnum):
    """The neighbouring relation: pairs of datasets that are compared. Under replace-one the number of rows is public."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


class Status(StrEnum):
    """The status of a guarantee: proved, conditional, or only claimed."""

    PROVED = "proved"
    PROVED_IF = "proved under stated conditions"
    CLAIM = "paper's claim only"
    NONE = "no privacy guarantee"


def status_sentence(status: Status, read: int, word: str = "") -> str:
    """The status of a guarantee with what no epsilon covers, as every page, command, card and file says it.

    Args:
        read: number of ranges and categories that were read from the rows.
        word: instead of the status, where there is less room.

    >>> status_sentence(Status.PROVED, 19)
    'proved, given 19 ranges and categories that were read from the rows'
    """
    if not read or status in (Status.CLAIM, Status.NONE):
        return word or status.value
    what = "1 range or category that was" if read == 1 else f"{read:,} ranges and categories that were"
    return f"{word or status.value}, given {what} read from the rows"


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta) of differential privacy; delta = 0 is pure epsilon-DP.

    Raises:
        InvalidInput: epsilon is not a finite number above 0, or delta is not in [0, 1).

    >>> print(Budget(1.0, 1e-5))
    (ε = 1, δ = 10⁻⁵)
    >>> Budget(-1.0)
    Traceback (most recent call last):
    ...
    dpviz.common.validate.InvalidInput: epsilon: must be above 0, got -1. Give a privacy budget above 0, for example 1.0.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        eps = positive("epsilon", self.epsilon, fix="Give a privacy budget above 0, for example 1.0.")
        delta = number("delta", self.delta, fix="Give a probability below 1/n, for example 1e-6.")
        if not 0.0 <= delta < 1.0:
            raise InvalidInput("delta", f"must lie in [0, 1), got {delta:g}", "Give a probability below 1/n.")
        object.__setattr__(self, "epsilon", eps)
        object.__setattr__(self, "delta", delta)

    def need_delta(
        self, cause: str = "Gaussian noise cannot give delta = 0", fix: str = "Choose delta > 0 or a pure-epsilon method."
    ) -> None:
        """Refuses delta = 0.

        Args:
            cause: why it does not do here, in words that go on from "delta".
            fix: what to do about it, a sentence.

        Raises:
            InvalidInput: delta is 0.
        """
        if self.delta <= 0:
            raise InvalidInput("delta", cause, fix)

    def __str__(self) -> str:
        return f"ε = {three(self.epsilon)}" if self.delta == 0 else f"(ε = {three(self.epsilon)}, δ = {three(self.delta)})"


def default_delta(n: int) -> float:
    """The delta that is used where none is given: 1e-5, or the largest power of ten at most 1/(10 n).

    A mechanism that publishes one random row in clear is (0, 1/n)-DP, so delta must stay well below 1/n.

    >>> default_delta(1000), default_delta(45_222)
    (1e-05, 1e-06)
    """
    return min(1e-5, 10.0 ** math.floor(-math.log10(10 * n) + 1e-9))


def row_budget(epsilon: float, delta: float | None, n: int) -> Budget:
    """The budget of n training rows: an automatic delta filled in.

    Raises:
        InvalidInput: delta >= 1/n.

    >>> row_budget(1.0, None, 500)
    Budget(epsilon=1.0, delta=1e-05)
    """
    check_delta(delta, n)
    return Budget(epsilon, default_delta(n) if delta is None else delta)


def check_delta(delta: float | None, n: int) -> None:
    """Checks that delta means something for n training rows.

    A mechanism that publishes one random row in clear is (0, 1/n)-DP, so that delta must lie below 1/n.

    Raises:
        InvalidInput: delta >= 1/n.
    """
    if delta is not None and (delta := number("delta", delta)) >= 1 / n:
        raise InvalidInput(
            "delta",
            f"{delta:g} is not below 1/n = {1 / n:.3g}: a mechanism that publishes one random row in clear would meet it",
            f"Give a probability above 0 and below 1/n = {1 / n:.3g}, for example {default_delta(n):g}.",
        )


def check_public_n(relation: Neighbouring, public_n: int | None) -> None:
    """Checks that what is published divides by no private number: see `dpviz.models.problem`.

    Raises:
        InvalidInput: the number of rows is private (add-remove) and no public one is given, or the other way round.
    """
    if relation is Neighbouring.ADD_REMOVE and public_n is None:
        cause = "is not given, and under add-remove the number of rows is private: noise and steps cannot be divided by it"
        raise InvalidInput(
            "public_n", cause, "Give a number of about that size that is known without the rows, or use replace-one."
        )
    if relation is Neighbouring.REPLACE_ONE and public_n is not None:
        raise InvalidInput("public_n", "belongs to add-remove: under replace-one the number of rows is public", "Leave it out.")


def attack_accuracy(budget: Budget) -> float:
    """The largest probability with which any attacker guesses which of two neighbouring datasets was used.

    Prior 1/2 each. From the hypothesis-testing view (Kairouz, Oh, Viswanath 2015): total variation is at most
    (e^eps - 1 + 2 delta)/(e^eps + 1), and accuracy is (1 + TV)/2.

    >>> round(attack_accuracy(Budget(1.0)), 4)
    0.7311
    """
    tv = math.tanh(budget.epsilon / 2.0) + 2.0 * budget.delta / (1.0 + math.exp(min(budget.epsilon, 700.0)))
    return 0.5 * (1.0 + min(tv, 1.0))


def corner(budget: Budget) -> float:
    """The false-positive rate at which `trade_off` bends, where an attacker is right as often as `attack_accuracy` says.

    Where its two lines meet: 1 - delta - e^eps a = e^-eps (1 - delta - a).
    """
    return (1 - budget.delta) / (1 + math.exp(min(budget.epsilon, 700.0)))


def trade_off(budget: Budget, false_positive: np.ndarray) -> np.ndarray:
    """Smallest false-negative rate that (epsilon, delta)-DP leaves to an attacker at each false-positive rate.

    f(a) = max(0, 1 - delta - e^eps a, e^-eps (1 - delta - a))  (Dong, Roth, Su 2022, eq. (3)).

    >>> trade_off(Budget(1.0), np.array([0.0, 0.1, 0.5])).round(3).tolist()
    [1.0, 0.728, 0.184]
    """
    a = np.asarray(false_positive, dtype=float)
    e = math.exp(min(budget.epsilon, 700.0))
    return np.maximum.reduce([np.zeros_like(a), 1 - budget.delta - e * a, (1 - budget.delta - a) / e])
