"""The base class of accountants: the releases that it has a proof for, delta over epsilon, and its lines in comparisons.

Finds the accountants in the modules beside this one.
"""

import importlib
import math
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from dpviz.common.validate import check_choice
from dpviz.privacy.accounting import accountants
from dpviz.privacy.accounting.events import CannotAccount, Gaussian, Step
from dpviz.privacy.accounting.gaussian import log_gaussian_delta
from dpviz.privacy.accounting.rdp import CONVERSIONS
from dpviz.privacy.budget import Budget, Neighbouring

_UNCOVERED: dict[str, tuple[str, str]] = {
    "fixed": (
        "has no bound for shuffled fixed batches; the bound for Poisson batches is not one",
        "Sample Poisson batches, or account for the pass as full batches.",
    ),
    "poisson": ("cannot use that batches are sampled", "Use pld or rdp, or full batches."),
    "without-replacement": ("has no bound for fresh batches of fixed size", "Use pld with replace-one."),
}


@dataclass(frozen=True)
class Method:
    """An accounting method for an event.

    Attributes:
        accountant: name of an accountant, see `accountants.registry.list_accountants`.
        relation: neighbouring relation of the result.
        conversion: of Rényi curves, see `rdp.epsilon`.
    """

    accountant: str = "pld"
    relation: Neighbouring = Neighbouring.ADD_REMOVE
    conversion: str = "improved"

    def __post_init__(self) -> None:
        check_choice("conversion", self.conversion, CONVERSIONS)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line in the comparison of the noise that accountants need for the same releases under replace-one.

    Attributes:
        name: for people.
        formula: LaTeX.
        source: author, year, number.
        conversion: one of `rdp.CONVERSIONS`.
        note: what it equals; "" for none.
        sigma: the standard deviation per coordinate that a budget needs, in closed form or by a search of its own; None: the
            smallest at which `Accountant.log_delta` meets the budget.
    """

    name: str
    formula: str
    source: str
    conversion: str = "improved"
    note: str = ""
    sigma: Callable[[Budget], float] | None = None


class Accountant(ABC):
    """Gives delta over epsilon for what is released, by one kind of proof.

    Attributes:
        name: in code, in addresses and on the command line.
        words: for people, with its source.
        label: for people, short.
        formula: LaTeX, what delta or epsilon is by this proof; "" for none.
        conversion_words: what turns its account into (epsilon, delta), with its source.
        place: from the loosest proof to the tightest.
        kinds: classes of releases that it has a proof for.
        samplings: "full", and those of `events.SAMPLINGS` that it has a proof for.
        columns: its curves of epsilon over the number of steps: (name for people, conversion).
    """

    name: ClassVar[str]
    words: ClassVar[str]
    label: ClassVar[str]
    formula: ClassVar[str] = ""
    conversion_words: ClassVar[str]
    place: ClassVar[int]
    kinds: ClassVar[tuple[type, ...]] = (Gaussian,)
    samplings: ClassVar[tuple[str, ...]] = ("full",)
    columns: ClassVar[tuple[tuple[str, str], ...]] = ()

    def refuse(self, step: Step, method: Method) -> None:
        """Raises `CannotAccount`, with cause and fix, where there is no proof for this sampling under this relation."""
        if step.sampling not in self.samplings:
            cause, fix = _UNCOVERED.get(step.sampling, ("has no proof for full batches", "Use another accountant."))
            raise CannotAccount("accountant", f"{self.label} {cause}", fix)

    @abstractmethod
    def log_delta(self, step: Step, method: Method, epsilon: float, floor: float, directions: tuple[str, ...]) -> float:
        """ln delta of releases of one kind that `refuse` let through; see `account.log_delta` for the arguments."""

    def log_delta_of_kinds(self, steps: tuple[Step, ...], method: Method, epsilon: float) -> float:
        """ln delta of releases of several kinds."""
        cause = "different kinds of releases are added up for Gaussians by RDP only"
        raise CannotAccount("event", cause, "Use rdp.")

    def epsilon(self, step: Step, method: Method, delta: float) -> float | None:
        """The smallest epsilon at delta by an inverse of its own; None: `log_delta` is inverted."""
        return None

    def lines(self, step: Step) -> Sequence[Line]:
        """Its lines in the comparison of the noise that accountants need under replace-one, for an event of its `kinds`."""
        return (Line(name=self.label, formula=self.formula, source=self.words),)


def log_delta_of_full(step: Step, method: Method, epsilon: float, floor: float) -> float:
    """ln delta of Gaussians on full batches, whose composition is a Gaussian: exact."""
    assert isinstance(step.event, Gaussian)
    return max(float(log_gaussian_delta(epsilon, full_release_mu(step.event, method) * math.sqrt(step.count))), floor - 1)


def full_release_mu(event: Gaussian, method: Method) -> float:
    """Distance over sigma of one full release under the method's relation."""
    return event.sensitivity / event.sigma if method.relation is Neighbouring.REPLACE_ONE else 1 / event.noise_multiplier


@cache
def find_accountants() -> dict[str, Accountant]:
    """The `ACCOUNTANT` of every module of this folder that has one, by name, from the loosest proof to the tightest."""
    names = [module.name for module in pkgutil.iter_modules(accountants.__path__)]
    modules = [importlib.import_module(f"{accountants.__name__}.{name}") for name in names]
    every: list[Accountant] = [module.ACCOUNTANT for module in modules if hasattr(module, "ACCOUNTANT")]
    return {accountant.name: accountant for accountant in sorted(every, key=lambda accountant: accountant.place)}


def list_accountants() -> dict[str, Accountant]:
    """All accountants by name, from the loosest proof to the tightest."""
    return dict(find_accountants())


def get_accountant(name: str) -> Accountant:
    """An accountant by name.

    Raises:
        InvalidInput: no such accountant.
    """
    return find_accountants()[check_choice("accountant", name, tuple(find_accountants()))]
