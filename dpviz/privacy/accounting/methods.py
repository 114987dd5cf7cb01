"""The accounting methods that are proved, and the tightest one for an event."""

from dpviz.privacy.accounting.accountants.base import Method
from dpviz.privacy.accounting.accountants.registry import get_accountant, list_accountants
from dpviz.privacy.accounting.events import CannotAccount, Event, steps_of
from dpviz.privacy.budget import Neighbouring

__all__ = ["HOCKEY_STICK", "TWO_HOP", "Method", "describe", "tightest"]

#: proved under replace-one for Poisson batches
TWO_HOP = Method("pld", Neighbouring.REPLACE_ONE, "two-hop")
#: proved under replace-one for everything else
HOCKEY_STICK = Method("hockey-stick", Neighbouring.REPLACE_ONE)


def tightest(event: Event, relation: Neighbouring = Neighbouring.REPLACE_ONE) -> Method:
    """The accountant with the smallest proved epsilon under a neighbouring relation.

    Raises:
        CannotAccount: no accountant says that it is the tightest for this event.
    """
    steps = steps_of(event)
    if relation is Neighbouring.ADD_REMOVE:
        return Method("pld" if len(steps) == 1 else "rdp", relation)
    for accountant in reversed(list_accountants().values()):
        route = accountant.route(steps)
        if route is not None:
            return Method(accountant.name, Neighbouring.REPLACE_ONE, route)
    raise CannotAccount("event", "no accountant has a proof for these releases", "Account for one kind of release at a time.")


def describe(method: Method) -> str:
    """The method for people."""
    relation = "two hops of add/remove" if method.route == "two-hop" else method.relation.value
    return f"{get_accountant(method.accountant).words}, {relation}"
