"""How an event is accounted for: accountant, neighbouring relation and conversion, and what no proof covers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpviz.common.validate import one_of
from dpviz.common.words import Words
from dpviz.privacy.accounting import rdp
from dpviz.privacy.accounting.events import CannotAccount, Event, Mixture, PureEpsilon, Shuffled, Step, steps_of
from dpviz.privacy.budget import Neighbouring

ACCOUNTANTS = ("pld", "rdp", "zcdp", "gaussian", "hockey-stick")
ROUTES = ("none", "two-hop", "opposite")


@dataclass(frozen=True)
class Method:
    """How an event is accounted for.

    Attributes:
        accountant: "pld" privacy loss distribution; "rdp"; "zcdp" and "gaussian" (exact) for full batches only;
            "hockey-stick" the divergence that defines (epsilon, delta): exact for Gaussians of full batches and pure releases,
            by joint convexity for mixtures, by the published theorem for shuffled reports.
        relation: neighbouring relation of the result.
        route: how replace-one follows for Poisson batches. "two-hop": remove one row, add another; an (eps, delta(eps))
            curve under add/remove gives (eps, (1 + e^(eps/2)) delta(eps/2)), proved. "opposite": the pair
            (1-q)N(0) + qN(1) against (1-q)N(0) + qN(-1), as dp_accounting's PLD does; that it dominates every
            replacement is not proved here. "none": refuse.
        conversion: of RDP and zCDP, see `rdp.epsilon`.
    """

    accountant: str = "pld"
    relation: Neighbouring = Neighbouring.ADD_REMOVE
    route: str = "none"
    conversion: str = "cks"

    def __post_init__(self) -> None:
        one_of("accountant", self.accountant, ACCOUNTANTS)
        one_of("route", self.route, ROUTES)
        one_of("conversion", self.conversion, rdp.CONVERSIONS)

    @property
    def words(self) -> Words:
        """The accountant for people."""
        name = {
            "pld": "privacy loss distribution (tilted FFT, pessimistic grid)",
            "rdp": "Rényi DP of the subsampled Gaussian (Mironov, Talwar, Zhang 2019)",
            "zcdp": "zCDP (Bun, Steinke 2016)",
            "gaussian": "exact composition of Gaussian mechanisms",
            "hockey-stick": "hockey-stick divergence",
        }[self.accountant]
        return f"{name}, {'two hops of add/remove' if self.route == 'two-hop' else self.relation.value}"


#: proved under replace-one for Poisson batches
TWO_HOP = Method("pld", Neighbouring.REPLACE_ONE, "two-hop")
#: proved under replace-one for everything else
HOCKEY_STICK = Method("hockey-stick", Neighbouring.REPLACE_ONE)


def tightest(event: Event) -> Method:
    """The accountant with the smallest proved epsilon under replace-one."""
    samplings = {step.sampling for step in steps_of(event)}
    if len(steps_of(event)) > 1:
        return replace(TWO_HOP, accountant="rdp")
    if "without-replacement" in samplings:
        return Method("pld", Neighbouring.REPLACE_ONE)
    return TWO_HOP if "poisson" in samplings else HOCKEY_STICK


def refuse(step: Step, method: Method) -> None:
    """Raises where the method has no proof for this kind of release."""
    name, replace_one = method.accountant, method.relation is Neighbouring.REPLACE_ONE

    def stop(cause: Words, fix: Words) -> None:
        raise CannotAccount("accountant", cause, fix)

    if isinstance(step.event, PureEpsilon | Shuffled | Mixture):
        allowed = ("hockey-stick", "rdp") if isinstance(step.event, Mixture) else ("hockey-stick",)
        if name not in allowed:
            stop(f"{name} has no proof for {type(step.event).__name__} releases", f"Use {' or '.join(allowed)}.")
        if not replace_one:
            stop("what removing a row changes is not known for these releases", "Use replace-one.")
        if step.count > 1 and not isinstance(step.event, PureEpsilon):
            stop("these releases are accounted for once and not repeated", "Account for one of them.")
    elif step.sampling == "fixed":
        stop(
            f"{name.upper()} has no bound for shuffled fixed batches; the bound for Poisson batches is not one",
            "Sample Poisson batches, or account for the pass as full batches.",
        )
    elif step.sampling != "full" and name in ("zcdp", "gaussian", "hockey-stick"):
        stop(f"{name} cannot use that batches are sampled", "Use pld or rdp, or full batches.")
    elif step.sampling == "without-replacement":
        if not replace_one or name != "pld":
            stop("batches of fixed size are covered for replace-one by PLD only", "Use pld with replace-one.")
    elif step.sampling == "poisson" and replace_one and method.route == "none":
        stop(
            "sampled batches under replace-one need a convention, because accountants differ in theirs",
            'Choose route "two-hop" (proved) or "opposite" (PLD only, not proved).',
        )
    elif step.sampling == "poisson" and replace_one and method.route == "opposite" and name != "pld":
        stop('the route "opposite" exists for PLD only', 'Use pld, or route "two-hop".')
