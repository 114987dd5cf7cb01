"""Events: a run's release as one value that every accountant reads: noise on a query, sampled, repeated, one after the other.

Composed like the events of dp_accounting. A mechanism says what it releases; what that costs is for the accountants, and
what an accountant cannot do raises `CannotAccount`.

    Gaussian.of_rows(clip_norm, sigma)                    one noisy sum of clipped gradients
    Repeated(Sampled(Gaussian.of_rows(C, sigma), q), T)   DP-SGD with Poisson batches
    Mixture(distances, weights, sigma)                    mini-batch SGD in a secret order, then one noisy output
    PureEpsilon(0.5)                                      gamma-sphere or Laplace noise, randomised response
    Shuffled(PureEpsilon(2.0), n)                         local reports that a shuffler mixes
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_choice, check_instance, check_integer, check_range, positive

#: how batches are drawn. "poisson": every row is in with chance `rate`, independently; "without-replacement": a fresh uniform
#: batch of exactly rate x n rows at every step; "fixed": batches of a shuffled order, the same in every pass
SAMPLINGS = ("poisson", "without-replacement", "fixed")


class CannotAccount(InvalidInput):
    """The accountant has no proof for this event, neighbouring relation or conversion."""


@dataclass(frozen=True)
class Gaussian:
    """A query plus N(0, sigma^2 I).

    Attributes:
        sensitivity: L2 distance by which replacing one row moves the query at most, > 0.
        sigma: standard deviation per coordinate, > 0.
        contribution: L2 distance by which removing or adding one row moves it at most; None where that is not known.
    """

    sensitivity: float
    sigma: float = 1.0
    contribution: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", positive("sensitivity", self.sensitivity))
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
        if self.contribution is not None:
            object.__setattr__(self, "contribution", positive("contribution", self.contribution))

    @classmethod
    def of_rows(cls, contribution: float, sigma: float = 1.0) -> Gaussian:
        """A sum to which one row contributes at most `contribution`: replacing the row moves it by at most twice that."""
        row = positive("contribution", contribution)
        return cls(2 * row, sigma, row)

    @property
    def noise_multiplier(self) -> float:
        """z = sigma over what one row contributes.

        Raises:
            CannotAccount: what one row contributes is not known.
        """
        if self.contribution is None:
            raise CannotAccount(
                "contribution", "how far removing a row moves the query is not known", "Use replace-one, or state it."
            )
        return self.sigma / self.contribution


@dataclass(frozen=True)
class Mixture:
    """A query plus N(0, sigma^2 I), whose sensitivity is Delta_j with probability q_j: a secret draw without regard to data.

    Attributes:
        sensitivities: (J,) L2 distances under replace-one, > 0.
        weights: (J,) probabilities that sum to 1.
        sigma: standard deviation per coordinate, > 0.
    """

    sensitivities: tuple[float, ...]
    weights: tuple[float, ...]
    sigma: float = 1.0

    def __post_init__(self) -> None:
        sensitivities, weights = (check_instance(name, getattr(self, name), tuple) for name in ("sensitivities", "weights"))
        object.__setattr__(self, "sensitivities", tuple(positive("sensitivities", s) for s in sensitivities))
        object.__setattr__(self, "weights", tuple(check_range("weights", q, 0.0, 1.0 + 1e-9) for q in weights))
        if len(sensitivities) != len(weights) or not weights or abs(sum(self.weights) - 1) > 1e-9:
            raise InvalidInput("weights", "must be probabilities, one per sensitivity, that sum to 1", "Give |B_j|/n.")
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))

    @classmethod
    def combine(cls, sensitivities: Floats, weights: Floats) -> Gaussian | Mixture:
        """The mixture, or the plain Gaussian where there is one sensitivity only."""
        if len(sensitivities) == 1:
            return Gaussian(float(sensitivities[0]))
        return cls(tuple(map(float, sensitivities)), tuple(map(float, weights)))

    @property
    def parts(self) -> tuple[Floats, Floats]:
        """(J,) sensitivities and (J,) probabilities as arrays."""
        return np.array(self.sensitivities), np.array(self.weights)

    @property
    def sensitivity(self) -> float:
        """The largest of the sensitivities."""
        return max(self.sensitivities)


@dataclass(frozen=True)
class PureEpsilon:
    """A release that is epsilon-DP with delta = 0: gamma-sphere or Laplace noise, randomised response.

    Epsilon is under the relation that the release is accounted for; those of one relation compose, whatever it is.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))


@dataclass(frozen=True)
class Sampled:
    """A sum over a random batch of rows instead of over all of them.

    Attributes:
        event: what is released of a batch.
        rate: share of the rows in a batch, in (0, 1].
        sampling: one of `SAMPLINGS`.
    """

    event: Gaussian
    rate: float
    sampling: str = "poisson"

    def __post_init__(self) -> None:
        check_instance("event", self.event, Gaussian)
        object.__setattr__(self, "rate", check_range("rate", self.rate, 1e-9, 1.0))
        check_choice("sampling", self.sampling, SAMPLINGS)


@dataclass(frozen=True)
class Repeated:
    """The same event `count` times; later ones may depend on the outcomes of earlier ones."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        check_instance("event", self.event, *EVENTS)
        object.__setattr__(self, "count", check_integer("count", self.count, 1, 10**9))


@dataclass(frozen=True)
class Composed:
    """Different events one after the other; later ones may depend on the outcomes of earlier ones."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        for event in check_instance("events", self.events, tuple):
            check_instance("events", event, *EVENTS)
        if not self.events:
            raise InvalidInput("events", "must hold at least one event", "Give what is released.")


@dataclass(frozen=True)
class Shuffled:
    """One report of every one of n people, in a secret random order.

    Attributes:
        event: what one person reports; replace-one is about that person's own data.
        n: number of people.
    """

    event: Gaussian | PureEpsilon
    n: int

    def __post_init__(self) -> None:
        check_instance("event", self.event, Gaussian, PureEpsilon)
        object.__setattr__(self, "n", check_integer("n", self.n, 1, 2**62))


Event: TypeAlias = Gaussian | Mixture | PureEpsilon | Sampled | Repeated | Composed | Shuffled
EVENTS = (Gaussian, Mixture, PureEpsilon, Sampled, Repeated, Composed, Shuffled)


@dataclass(frozen=True)
class Step:
    """One kind of release and how often it happens: the normal form that accountants work on.

    Attributes:
        event: without sampling and repetition.
        rate: share of the rows in it, 1 where every row is.
        sampling: one of `SAMPLINGS`, or "full".
        count: repetitions, >= 1.
    """

    event: Gaussian | Mixture | PureEpsilon | Shuffled
    rate: float = 1.0
    sampling: str = "full"
    count: int = 1

    @property
    def sensitivity(self) -> float:
        """The largest L2 distance by which replacing one row moves one release.

        Raises:
            CannotAccount: the noise is not Gaussian.
        """
        if not isinstance(self.event, Gaussian | Mixture):
            raise CannotAccount("sensitivity", "only Gaussian noise has an L2 sensitivity here", "Use the epsilon of the event.")
        return self.event.sensitivity

    @property
    def total(self) -> float:
        """Sensitivity of all repetitions together where every row is in each: sqrt(count) times the largest, exactly."""
        return self.sensitivity * math.sqrt(self.count)

    @property
    def formula(self) -> str:
        """`total` in LaTeX."""
        return r"\sqrt T\,\Delta" if self.count > 1 else r"\Delta"

    @property
    def mu(self) -> float:
        """`total` over sigma."""
        return self.total / self.event.sigma if isinstance(self.event, Gaussian | Mixture) else math.nan


def steps_of(event: Event) -> tuple[Step, ...]:
    """The kinds of releases in an event, in order; equal ones that follow each other are counted together."""
    if isinstance(event, Repeated):
        return tuple(replace(step, count=step.count * event.count) for step in steps_of(event.event))
    if isinstance(event, Composed):
        steps: list[Step] = []
        for step in (step for part in event.events for step in steps_of(part)):
            if steps and replace(steps[-1], count=step.count) == step:
                steps[-1] = replace(step, count=steps[-1].count + step.count)
            else:
                steps.append(step)
        return tuple(steps)
    if isinstance(event, Sampled):
        if event.rate == 1 and event.sampling != "fixed":
            return (Step(event.event),)
        return (Step(event.event, event.rate, event.sampling),)
    return (Step(event),)


def single_step(event: Event) -> Step:
    """The one kind of release of an event.

    Raises:
        CannotAccount: it holds several kinds.
    """
    steps = steps_of(event)
    if len(steps) > 1:
        raise CannotAccount("event", "different kinds of releases are added up by RDP only", "Use the accountant rdp.")
    return steps[0]


def scale_noise(event: Event, factor: float) -> Event:
    """The same releases with all noise `factor` times as large; epsilon of pure releases falls by that factor."""
    if isinstance(event, Gaussian | Mixture):
        return replace(event, sigma=factor * event.sigma)
    if isinstance(event, PureEpsilon):
        return PureEpsilon(event.epsilon / positive("factor", factor))
    if isinstance(event, Composed):
        return Composed(tuple(scale_noise(part, factor) for part in event.events))
    return replace(event, event=scale_noise(event.event, factor))  # type: ignore[arg-type]
