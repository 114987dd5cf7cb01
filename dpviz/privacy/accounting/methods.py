"""Accounting methods: accountant, neighbouring relation and conversion."""

from dataclasses import dataclass

from dpviz.common.validate import one_of
from dpviz.privacy.accounting.accountants.base import ROUTES
from dpviz.privacy.accounting.accountants.registry import get_accountant, list_accountants
from dpviz.privacy.accounting.events import CannotAccount, Event, steps_of
from dpviz.privacy.accounting.rdp import CONVERSIONS
from dpviz.privacy.budget import Neighbouring


@dataclass(frozen=True)
class Method:
    """An accounting method for an event.

    Attributes:
        accountant: name of an accountant, see `accountants.registry.list_accountants`.
        relation: neighbouring relation of the result.
        route: how replace-one follows for Poisson batches. "two-hop": remove one row, add another; an (eps, delta(eps))
            curve under add/remove gives (eps, (1 + e^(eps/2)) delta(eps/2)), proved. Where the accountant has a smaller proof
            for the replacement itself, as for nearly full batches, that one counts. "opposite": the pair
            (1-q)N(0) + qN(1) against (1-q)N(0) + qN(-1), as dp_accounting's PLD does; that it dominates every
            replacement is not proved here. "none": refuse.
        conversion: of Rényi curves, see `rdp.epsilon`.
    """

    accountant: str = "pld"
    relation: Neighbouring = Neighbouring.ADD_REMOVE
    route: str = "none"
    conversion: str = "cks"

    def __post_init__(self) -> None:
        get_accountant(self.accountant)
        one_of("route", self.route, ROUTES)
        one_of("conversion", self.conversion, CONVERSIONS)

    @property
    def words(self) -> str:
        """The method for people."""
        relation = "two hops of add/remove" if self.route == "two-hop" else self.relation.value
        return f"{get_accountant(self.accountant).words}, {relation}"


#: proved under replace-one for Poisson batches
TWO_HOP = Method("pld", Neighbouring.REPLACE_ONE, "two-hop")
#: proved under replace-one for everything else
HOCKEY_STICK = Method("hockey-stick", Neighbouring.REPLACE_ONE)


def tightest(event: Event) -> Method:
    """The accountant with the smallest proved epsilon under replace-one.

    Raises:
        CannotAccount: no accountant says that it is the tightest for this event.
    """
    steps = steps_of(event)
    for accountant in reversed(list_accountants().values()):
        route = accountant.route(steps)
        if route is not None:
            return Method(accountant.name, Neighbouring.REPLACE_ONE, route)
    raise CannotAccount("event", "no accountant has a proof for these releases", "Account for one kind of release at a time.")
