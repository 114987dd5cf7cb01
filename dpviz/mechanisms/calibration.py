"""`Calibration`: the noise that a mechanism adds for a privacy budget, and how far its guarantee is proved.

The label that goes with every epsilon is set by how it is made: `Calibration.proved(...)`,
`Calibration.proved(...).conditional(...)` (proved under stated conditions), `Calibration.claimed(...)` (the publication's
claim only) or `Calibration.unprotected(...)`.

Conditions of privacy guarantees as short texts: bounded rows, convexity, exact minimum, public n, floating-point noise.

A mechanism lists those that its proof needs in `Mechanism.supposes`; its `guarantee` then ends with them.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Literal, Required, Self, TypeAlias, TypedDict, TypeVar, Unpack

from dpviz.common.digits import three
from dpviz.privacy.budget import Budget, Neighbouring, Status, status_sentence
from dpviz.privacy.noise import GAUSSIAN, Noise

BOUNDED_ROWS: str = "rows in the unit ball"
CLIPPED_OR_BOUNDED: str = "gradients clipped, or bounded by rows in the unit ball"
BOUNDED_LABELS: str = "labels of -1 and +1"
CONVEX: str = "convex objective"
STRONGLY_CONVEX: str = "strongly convex objective"
EXACT_MINIMUM: str = "exact minimum"
ACCURATE_MINIMUM: str = "minimum of stated accuracy"
PUBLIC_CLASSES: str = "public class labels"
PUBLIC_N: str = "public number of rows"
PUBLIC_DIVISOR: str = "public: the number n that noise, steps and regularisation are divided by, the same for both neighbours"
PUBLIC_N_IF_SHUFFLED: str = "public number of rows if reports are shuffled"
PUBLIC_RANGES: str = "public ranges and categories"
REAL_NOISE: str = "real-valued noise (training draws floating-point numbers)"
SECRET_RANDOMNESS: str = "unpredictable randomness (noise of training comes from PCG64, seeded by the operating system)"
SECRET_SEED: str = "a secret seed: an attacker who knows random_state can subtract the noise"
SINGLE_PRECISION: str = "exact arithmetic (parts run in single precision)"
SMOOTH: str = "smooth loss"


def with_conditions(guarantee: str, supposes: tuple[str, ...]) -> str:
    """The guarantee followed by its conditions; those of every noisy method come last. As it is where `supposes` is empty."""
    if not supposes:
        return guarantee
    return f"{guarantee} Conditions: {'; '.join((*supposes, PUBLIC_RANGES, REAL_NOISE))}."


#: what a publication states: the budget asked for, or nothing
Claim: TypeAlias = Literal["as asked", "nothing"]


@dataclass(frozen=True)
class TrainingValues:
    """Base of what training reads of a calibration beside its noise scale. Each method declares its own fields, all numbers.

    They follow from public facts only, as the noise scale does.
    """


Values = TypeVar("Values", bound=TrainingValues)


@dataclass(frozen=True)
class StepSize(TrainingValues):
    """For methods whose step size follows from the noise.

    Attributes:
        step_size: in units of `Setting.unit_step`, 1/L for linear models.
    """

    step_size: float


class Facts(TypedDict, total=False):
    """The attributes of a `Calibration` that a method states; the others follow from the budget and the kind of guarantee."""

    query: Required[str]
    sensitivity_source: Required[str]
    noise_scale: Required[float]
    accountant: Required[str]
    sensitivity: float
    noise_family: Noise
    neighbouring: Neighbouring
    conversion: str
    notes: tuple[str, ...]
    for_training: TrainingValues | None
    mu: float | None
    details: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """From a budget to a noise scale, and what that is worth.

    Attributes:
        budget: the budget asked for.
        sensitivity: L2 sensitivity of `query`; NaN where the method has none.
        query: what the noise is added to, in words.
        sensitivity_source: where the sensitivity comes from, with equation or theorem number.
        noise_scale: per-coordinate standard deviation (gaussian) or 1/beta (gamma-sphere), >= 0.
        accountant: how the budget was turned into noise.
        status: the label that goes with every epsilon of this run.
        proved_budget: the budget that a proof with all constants supports, None where none does.
        claimed_budget: the budget that the publication states, None where it states none.
        noise_family: the distribution of the noise.
        neighbouring: the relation that both budgets are about.
        conversion: how a composed guarantee becomes (epsilon, delta), "" where nothing is converted.
        conditions: what must hold for `proved_budget`.
        notes: remarks for people: flaws, deviations from the paper and why.
        for_training: what training reads beside the noise scale; `values` gives it with its type.
        mu: the noise is declared to be mu-Gaussian DP with this mu; None where nothing of the kind is declared.
        person_rows: rows of one person at most, where budgets, sensitivity and mu are for a person; 0 where they are for a row.
        row_calibration: the method's own calibration for one row that it was made of (`dpviz.mechanisms.protection`); None where
            it is that one. `for_row` gives either.
        preparation_mu: Gaussian DP of what preparations released of the rows before training; 0 without any.
        preparation_epsilon: their epsilon with delta = 0; 0 where one of them has no such guarantee.
        method_budget: the part of `budget` that preparations leave to the method; None without any.
        looked_at: ranges and categories that were read from the rows, which no budget covers.
        details: further numbers by name, to be shown and tested, never to be computed with; `mu` and those of
            `for_training` are among them.

    Raises:
        ValueError: the label does not fit the budgets and the conditions.
    """

    budget: Budget
    sensitivity: float = math.nan
    query: str
    sensitivity_source: str
    noise_scale: float
    accountant: str
    status: Status
    proved_budget: Budget | None
    claimed_budget: Budget | None
    noise_family: Noise = GAUSSIAN
    neighbouring: Neighbouring = Neighbouring.REPLACE_ONE
    conversion: str = ""
    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    for_training: TrainingValues | None = None
    mu: float | None = None
    person_rows: int = 0
    row_calibration: Calibration | None = None
    preparation_mu: float = 0.0
    preparation_epsilon: float = 0.0
    method_budget: Budget | None = None
    looked_at: int = 0
    details: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        declared = {} if self.mu is None else {"mu": self.mu}
        read = {} if self.for_training is None else vars(self.for_training)
        object.__setattr__(self, "details", self.details | declared | read)
        proof = self.status in (Status.PROVED, Status.PROVED_IF)
        if proof and self.neighbouring is Neighbouring.ADD_REMOVE:  # all methods here divide by n, which it makes private
            conditions = tuple(dict.fromkeys((*self.conditions, PUBLIC_DIVISOR)))
            object.__setattr__(self, "conditions", conditions)
            object.__setattr__(self, "status", Status.PROVED_IF)
        if proof != (self.proved_budget is not None):
            raise ValueError(f"{self.status.value!r} does not fit the proved budget {self.proved_budget}")
        if (self.status is Status.PROVED_IF) != bool(self.conditions):
            raise ValueError(f"{self.status.value!r} does not fit {len(self.conditions)} conditions")
        if not proof and (self.status is Status.CLAIM) != (self.claimed_budget is not None):
            raise ValueError(f"{self.status.value!r} does not fit the claimed budget {self.claimed_budget}")

    @classmethod
    def proved(
        cls, budget: Budget, *, proves: Budget | None = None, claims: Budget | Claim = "as asked", **facts: Unpack[Facts]
    ) -> Self:
        """Noise with a proof; the other arguments are attributes of `Calibration`.

        Args:
            proves: what the proof supports, where that is not the budget asked for.
            claims: what the publication states, where that is not the budget asked for.
        """
        claimed = claims if isinstance(claims, Budget) else budget if claims == "as asked" else None
        return cls(budget=budget, status=Status.PROVED, proved_budget=proves or budget, claimed_budget=claimed, **facts)

    @classmethod
    def claimed(cls, budget: Budget, **facts: Unpack[Facts]) -> Self:
        """Noise that a publication claims to be enough for `budget`, without a proof that holds; see `Calibration`."""
        return cls(budget=budget, status=Status.CLAIM, proved_budget=None, claimed_budget=budget, **facts)

    @classmethod
    def unprotected(cls, budget: Budget, **facts: Unpack[Facts]) -> Self:
        """Noise, if any, for which no protection is claimed; the arguments are attributes of `Calibration`."""
        return cls(budget=budget, status=Status.NONE, proved_budget=None, claimed_budget=None, **facts)

    def for_row(self) -> Calibration:
        """The method's own calibration for one row, with the noise of this one, which may have been switched off or changed."""
        row = self.row_calibration
        return self if row is None else dataclasses.replace(row, noise_scale=self.noise_scale, for_training=self.for_training)

    def values(self, kind: type[Values]) -> Values:
        """The values that training reads beside the noise scale.

        Raises:
            TypeError: the calibration is another method's, whose values are of another kind.
        """
        if not isinstance(self.for_training, kind):
            raise TypeError(f"a calibration with {kind.__name__} is needed, got {self.for_training!r}")
        return self.for_training

    @property
    def sentence(self) -> str:
        """The status with what no epsilon covers."""
        return status_sentence(self.status, self.looked_at)

    @property
    def noise_text(self) -> str:
        """Distribution, scale and query; a distribution that few know by its name with its density."""
        density = f" ({self.noise_family.density})" if self.noise_family.density else ""
        return f"{self.noise_family.name}{density}, scale {three(self.noise_scale)}, on {self.query}"

    @property
    def sensitivity_text(self) -> str:
        """The sensitivity; "no bound" where the method has none."""
        return three(self.sensitivity) if math.isfinite(self.sensitivity) else "no bound"

    def rms_noise(self, m: int) -> float:
        """Root of the mean squared norm of noise on m parameters."""
        return self.noise_scale * math.sqrt(self.noise_family.mean_square(m))

    def conditional(self, *conditions: str) -> Calibration:
        """The same, proved only where all of `conditions` hold."""
        return dataclasses.replace(self, status=Status.PROVED_IF, conditions=conditions)

    def noiseless(self) -> Calibration:
        """The same run with its noise switched off, which protects no row."""
        return dataclasses.replace(
            self,
            noise_scale=0.0,
            claimed_budget=None,
            proved_budget=None,
            status=Status.NONE,
            conditions=(),
            notes=("Noise switched off.",),
        )
