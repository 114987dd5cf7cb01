"""Translates events to and from those of dp_accounting, Google's library, where it is installed."""

import math
from typing import Any

from dpviz.common.validate import InvalidInput
from dpviz.privacy.accounting.events import CannotAccount, Composed, Event, Gaussian, PureEpsilon, Repeated, Sampled
from dpviz.privacy.budget import Budget, Neighbouring


def to_dp_event(release: Event | Budget, relation: Neighbouring = Neighbouring.REPLACE_ONE) -> Any:
    """The same release as a `dp_accounting.DpEvent`.

    Pure releases become randomised response, the worst of them; (epsilon, delta)-DP with delta > 0 has no event there. A
    Gaussian's noise multiplier is its standard deviation over its sensitivity under `relation`. Poisson batches are
    translated under add/remove only, because dp_accounting's accountants differ in what they mean under replace-one.

    Raises:
        CannotAccount: dp_accounting has no event for it.
        InvalidInput: dp_accounting is not installed.
    """
    dp = _library()
    if isinstance(release, PureEpsilon) or (isinstance(release, Budget) and release.delta == 0):
        # the worst pure release: an answer that is random with probability p = 2 / (1 + e^epsilon)
        return dp.RandomizedResponseDpEvent(2 / (1 + math.exp(release.epsilon)), 2)
    if isinstance(release, Gaussian):
        replaced = relation is Neighbouring.REPLACE_ONE
        return dp.GaussianDpEvent(release.sigma / release.sensitivity if replaced else release.noise_multiplier)
    if isinstance(release, Repeated):
        return dp.SelfComposedDpEvent(to_dp_event(release.event, relation), release.count)
    if isinstance(release, Composed):
        return dp.ComposedDpEvent([to_dp_event(part, relation) for part in release.events])
    if isinstance(release, Sampled) and release.sampling == "poisson" and relation is Neighbouring.ADD_REMOVE:
        return dp.PoissonSampledDpEvent(release.rate, to_dp_event(release.event, relation))
    raise CannotAccount(
        "event", f"dp_accounting has no event for {type(release).__name__} under {relation.value}", "Keep it in the ledger."
    )


def from_dp_event(event: Any, relation: Neighbouring = Neighbouring.REPLACE_ONE) -> Event:
    """A `dp_accounting.DpEvent` as an event, the inverse of `to_dp_event`.

    Raises:
        CannotAccount: there is no such event here.
        InvalidInput: dp_accounting is not installed, or a number is out of its range.
    """
    dp = _library()
    if isinstance(event, dp.RandomizedResponseDpEvent):
        p, k = event.noise_parameter, event.num_buckets
        return PureEpsilon(math.log((1 - p + p / k) / (p / k)))
    if isinstance(event, dp.GaussianDpEvent):
        if relation is Neighbouring.ADD_REMOVE:
            return Gaussian.of_rows(1.0, event.noise_multiplier)
        return Gaussian(1.0, event.noise_multiplier)
    if isinstance(event, dp.PoissonSampledDpEvent) and relation is Neighbouring.ADD_REMOVE:
        inner = from_dp_event(event.event, relation)
        if isinstance(inner, Gaussian):
            return Sampled(inner, event.sampling_probability)
    if isinstance(event, dp.SelfComposedDpEvent):
        return Repeated(from_dp_event(event.event, relation), event.count)
    if isinstance(event, dp.ComposedDpEvent):
        return Composed(tuple(from_dp_event(part, relation) for part in event.events))
    raise CannotAccount("event", f"{type(event).__name__} cannot be read under {relation.value}", "Enter its budget instead.")


def _library() -> Any:
    try:
        import dp_accounting
    except ImportError as error:
        raise InvalidInput("event", "dp_accounting is not installed", "Install it: pip install dp-accounting.") from error
    return dp_accounting
