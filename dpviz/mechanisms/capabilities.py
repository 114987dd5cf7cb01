"""Capabilities of mechanisms besides calibrating and training: one abstract class each.

A mechanism that has an ability derives from its class (each is a `Mechanism`); callers ask with `isinstance`, or
`issubclass` before it is built, and never call a method to see whether it works. Where a method returns None, the ability
is there and this form of the mechanism, under these settings, has nothing to show.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpviz.mechanisms.base import Mechanism, Streams
from dpviz.mechanisms.calibration import Calibration
from dpviz.mechanisms.results import Floats, NoiseRecord, RuleView
from dpviz.models import Model, Setting
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, scale_noise
from dpviz.privacy.individual import IndividualEpsilon
from dpviz.privacy.noise import GAUSSIAN, Noise
from dpviz.privacy.sensitivity.algorithm2 import Trace
from dpviz.privacy.sensitivity.bounds import Bound


class ProtectsQuery(Mechanism):
    """The noise protects a query whose sensitivity is bounded."""

    @abstractmethod
    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        """(R, k) the query without noise: `Calibration.sensitivity` bounds how far a replaced row moves it.

        Args:
            theta: (R, m) points at which a gradient-type query is asked; output-type queries ignore it.
            streams: R streams of random numbers, which two neighbouring runs share.
        """


class BoundsSensitivity(Mechanism):
    """There are closed forms for the sensitivity of the query, to be compared."""

    @abstractmethod
    def sensitivity_bounds(self, setting: Setting) -> tuple[Bound, ...]:
        """Worst-case sensitivities from every source known, the one in use among them."""


@dataclass(frozen=True)
class NoisySteps:
    """Training with noise in every step, at standard deviation 1.

    Attributes:
        last: the event where only the last iterate is released.
        every: the event where all iterates may be.
        spread: standard deviation of the last iterate's noise, along a direction that contracts least.
    """

    last: Event
    every: Event
    spread: float


class HasTrace(BoundsSensitivity):
    """The query is the end of a recursion whose sensitivity can be followed."""

    @abstractmethod
    def sensitivity_trace(self, setting: Setting) -> Trace:
        """The bound on the distance of two runs, update by update."""

    def noise_in_steps(self, setting: Setting) -> NoisySteps | None:
        """The same training with noise N(0, I) on every mean gradient; None where nothing is proved of its last iterate."""
        return None


class DeclaresEvent(Mechanism):
    """The release is stated as an event, with the noise of a calibration, for all accountants."""

    @abstractmethod
    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        """The released event; None where this form has no such statement. Without noise it is not asked for."""


class ReleasesGaussians(DeclaresEvent):
    """The mechanism is a composition of Gaussian releases, so that accountants can be compared on it."""

    @abstractmethod
    def releases(self, setting: Setting) -> Event | None:
        """The release with noise of standard deviation 1; None where this form adds other noise or has another proof."""

    def released_event(self, setting: Setting, calibration: Calibration) -> Event | None:
        event = self.settle(setting, calibration.budget).releases(setting)
        return None if event is None else scale_noise(event, calibration.noise_scale)


class BoundsDistance(Mechanism):
    """The total variation between the outputs on two neighbours has a direct proof, not by (epsilon, delta) alone."""

    @abstractmethod
    def distance(self, setting: Setting, calibration: Calibration) -> float:
        """Total variation between what is released on two neighbours, at most, by the proof of the calibration; in [0, 1]."""


class HasExcessTheory(Mechanism):
    """Expected excess empirical risk is known with all constants.

    Attributes:
        forgets_start: knobs with which the noise decides and not the start; empty where there is no start to forget.
    """

    forgets_start: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def excess_theory(self, setting: Setting, noise_scale: float, start: float, eigenvalues: Floats) -> dict[str, float]:
        """Formulas by name, such as "bound" and "near the minimum"; empty where they do not hold.

        Args:
            start: objective at 0 above its minimum.
            eigenvalues: (m,) of the Hessian at the minimum; some formulas depend on data through them.
        """


class IndividualBudget(Mechanism):
    """Individual epsilon of every training row can be computed from a release.

    Attributes:
        individual_noise: the distributions that `individual` is derived for; others have none (`protection.individual`).
    """

    individual_noise: ClassVar[tuple[Noise, ...]] = (GAUSSIAN,)

    @abstractmethod
    def individual(
        self, problem: Problem, calibration: Calibration, theta: Floats, record: NoiseRecord
    ) -> IndividualEpsilon | None:
        """Individual epsilon of every training row; None where this form has none or nothing was recorded.

        Args:
            theta: (S, m) what was released.
            record: what happened to the rows under this calibration (`NoiseRecord.at`).
        """


class NoisesRows(Mechanism):
    """Noise is put on rows, or on reports about them, so that a row can be shown before and after."""

    @abstractmethod
    def noisy_rows(self, problem: Problem, calibration: Calibration, stream: np.random.SeedSequence) -> Floats | None:
        """(n, d) training rows as one replica sees them after its noise; None where this form reports something else."""

    def rows_in_words(self, setting: Setting) -> str:
        """The name of what `noisy_rows` shows, or of the release where it shows nothing; "" where it is the row itself."""
        return ""


class HasRule(Mechanism):
    """A rule decides which rows receive noise."""

    @abstractmethod
    def rule_views(self, problem: Problem, calibration: Calibration) -> tuple[RuleView, ...]:
        """The readings of the rule before the first step, the one in use first."""


class NoisesShare(Mechanism):
    """Noise can be restricted to a share of the rows, the most influential ones."""

    @classmethod
    @abstractmethod
    def noising(cls, share: float) -> dict[str, Any]:
        """Knobs with which this share of the rows receives noise."""


class CountsSteps(Mechanism):
    """Training takes a number of gradient steps that follows from public facts, the T of published rates."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared = isinstance(vars(cls).get("steps"), Field) or "steps" in getattr(cls, "__dataclass_fields__", ())
        if "id" in vars(cls) and cls.step_count is CountsSteps.step_count and not declared:
            raise TypeError(f"{cls.__name__} counts steps: declare a knob `steps`, or a `step_count` of its own")

    def step_count(self, setting: Setting) -> int:
        """T, at least 1; by default the knob `steps`."""
        return int(self.value("steps", setting))


class PublicSteps(CountsSteps):
    """The guarantee covers every iterate, and a run of k steps is the beginning of a longer one."""

    @abstractmethod
    def stopped_after(self, steps: int) -> Self:
        """The same mechanism that stops after so many steps."""


class ChoosesStart(Mechanism):
    """Training starts at the non-private model, as published, or at a point that does not depend on rows (`knobs.start_knob`)."""

    start: str

    @property
    def public_start(self) -> bool:
        """True where the start does not depend on rows."""
        return self.start != "non-private"

    @classmethod
    def starting(cls, public: bool) -> dict[str, Any]:
        """Knobs for a start that does not depend on rows, or for the published one."""
        return {"start": "zero" if public else "non-private"}


class HasWorstPair(Mechanism):
    """The method's privacy is expected to be worst on a pair of problems of its own."""

    @staticmethod
    @abstractmethod
    def worst_pair(model: Model, setting: Setting) -> tuple[Problem, Problem] | None:
        """Two neighbouring problems of this size; None where the size is too small for them."""
