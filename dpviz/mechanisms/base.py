"""The base class of mechanisms: a frozen dataclass whose fields are its knobs, that calibrates and that fits replicas.

A new mechanism is one new file in this folder with one subclass of `Mechanism`. Widgets, URL keys, the command
line, the table in the docs and the contract test are derived from what it declares.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms.calibration import Calibration, StepSize, with_conditions
from dpviz.mechanisms.knobs import Knob, Number, knob
from dpviz.mechanisms.results import Fit, Floats, NoiseRecord, OutputNoise, RuleView
from dpviz.models import Ability, Setting
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, Neighbouring

__all__ = [
    "FAMILIES",
    "Calibration",
    "Fit",
    "Floats",
    "Knob",
    "Mechanism",
    "Monitor",
    "NoiseRecord",
    "OutputNoise",
    "RuleView",
    "Streams",
    "Training",
    "ignore",
    "knob",
]

Streams = Sequence[np.random.SeedSequence]


@dataclass(frozen=True)
class Training:
    """The input of a training of len(calibrations) x len(streams) replicas together.

    Replica (e, s) uses the standard draws of stream s, scaled by the noise of calibration e.

    Attributes:
        problem: training rows, model and regularisation.
        calibrations: E of them, all of the same mechanism; each is kept as the method's own, for one row.
        streams: S independent streams of random numbers.
        record: whether to keep what happened to each row, where their number is the public one; sweeps leave it out.
        monitor: receives progress; raises to cancel.
        problems: E problems that differ in their regularisation, for methods that train these together
            (`Mechanism.joins_lams`); empty where all budgets have that of `problem`.
        members: (n, S) rows that the replicas of each stream are trained on, `problem.public_n` of them, for methods that train
            these together (`Mechanism.joins_members`); None for all rows.
    """

    problem: Problem
    calibrations: Sequence[Calibration]
    streams: Streams
    record: bool = True
    monitor: Monitor = ignore
    problems: Sequence[Problem] = ()
    members: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if self.record and self.problem.n != len(self.problem.rows):
            cause = f"cannot be kept of {len(self.problem.rows):,} rows where {self.problem.n:,} is their public number"
            raise InvalidInput("record", cause, "Pass record=False.")
        object.__setattr__(self, "calibrations", [calibration.for_row() for calibration in self.calibrations])

    @property
    def scales(self) -> Floats:
        """(E,) noise scales."""
        return np.array([c.noise_scale for c in self.calibrations])

    @property
    def step_sizes(self) -> Floats:
        """(E,) step sizes, of methods whose calibrations set a `StepSize`."""
        units = [problem.setting.unit_step for problem in self.of_budgets]
        return np.array([c.values(StepSize).step_size for c in self.calibrations]) * units

    @property
    def of_budgets(self) -> Sequence[Problem]:
        """The problem of each budget."""
        return self.problems or [self.problem] * len(self.calibrations)

    @property
    def lams(self) -> Floats:
        """(E,) regularisation."""
        return np.array([problem.lam for problem in self.of_budgets])


#: families in the order in which they are shown; one hue each
FAMILIES = ("reference", "output", "objective", "gradient", "input", "local")


@dataclass(frozen=True)
class Mechanism(ABC):
    """Base of all mechanisms. Subclasses are frozen dataclasses whose fields are knobs.

    Class attributes:
        id: kebab-case, used in URLs, files and tables.
        label: short name for people.
        family: one of `FAMILIES`.
        citation: author, venue, year, and the algorithm and theorem followed.
        noise_enters: one sentence: what the noise is added to.
        neighbouring: relation of the guarantee.
        guarantee: one sentence: what is guaranteed and how far it is proved; `supposes` is added to what a class declares.
        supposes: conditions of the guarantee (`dpviz.mechanisms.calibration`); empty where nothing is protected.
        rate: LaTeX of the published utility rate, or "" where the publication has none.
        order: place in lists; families come in the order of `FAMILIES`.
        needs_strong_convexity, needs_linear: what models it can run on.
        needs: what it asks of a model beside training.
        row_rule: what tells rows apart where it is not noise on single rows: a rule that decides who takes part.
        published_form: knobs that choose the publication's own calibration, where that is not the default.
        open_constant: the knob that stands for a constant which the publication leaves open; "" where there is none.
        joins_lams: whether it trains budgets of different regularisation together (`Training.problems`).
        joins_members: whether it trains replicas on different rows together (`Training.members`), without a record.
        weighted: whether it is derived for losses with weights in [0, 1] (`Rows.weights`).
        automatic_from: the least n epsilon/sqrt(d) from which "automatic" means this method (`registry.automatic_mechanism`).
        releases_label: whether one label for all rows is released in the place of a model.
    """

    id: ClassVar[str]
    label: ClassVar[str]
    family: ClassVar[str]
    citation: ClassVar[str]
    noise_enters: ClassVar[str]
    neighbouring: ClassVar[Neighbouring] = Neighbouring.REPLACE_ONE
    guarantee: ClassVar[str]
    supposes: ClassVar[tuple[str, ...]] = ()
    rate: ClassVar[str] = ""
    pure: ClassVar[bool] = False
    needs_strong_convexity: ClassVar[bool] = False
    needs_linear: ClassVar[bool] = False
    needs: ClassVar[frozenset[Ability]] = frozenset()
    row_rule: ClassVar[str] = ""
    published_form: ClassVar[Mapping[str, Any]] = {}
    open_constant: ClassVar[str] = ""
    joins_lams: ClassVar[bool] = False
    joins_members: ClassVar[bool] = False
    weighted: ClassVar[bool] = False
    automatic_from: ClassVar[float] = math.inf
    releases_label: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "family" in vars(cls) and cls.family not in FAMILIES:
            raise TypeError(f"{cls.__name__}.family must be one of {FAMILIES}")
        if "guarantee" in vars(cls):
            cls.guarantee = with_conditions(cls.guarantee, cls.supposes)
        cls.order = FAMILIES.index(cls.family) if hasattr(cls, "family") else 0

    order: ClassVar[int] = 0

    @property
    def draws_persons(self) -> bool:
        """True where all rows of one person count as one row, so that a guarantee for a row is one for the person."""
        return False

    def __post_init__(self) -> None:
        for name, declared in self.knobs().items():
            object.__setattr__(self, name, declared.check(name, getattr(self, name)))

    @classmethod
    def knobs(cls) -> dict[str, Knob]:
        """The declared knobs by field name."""
        return {f.name: f.metadata["knob"] for f in dataclasses.fields(cls)}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Default value of every knob."""
        return {f.name: f.default for f in dataclasses.fields(cls)}

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> Mechanism:
        """The mechanism with these knobs set and the others at their defaults.

        Raises:
            InvalidInput: unknown knob or bad value, naming it.
        """
        knobs = cls.knobs()
        for name in params:
            if name not in knobs:
                fix = f"{cls.id} has: {', '.join(knobs)}." if knobs else f"{cls.id} has no parameters."
                raise InvalidInput(f"params[{name!r}]", f"{cls.id} has no such parameter", fix)
        return cls(**params)

    @classmethod
    def refusal(cls, setting: Setting) -> str | None:
        """The reason for which this mechanism cannot run on this model, or None."""
        if setting.weighted and not (cls.weighted and setting.linear):
            what = cls.label if setting.linear else f"{setting.model!r}"
            return f"what rows with weights cost is not derived here for {what}"
        if cls.needs_strong_convexity and setting.mu <= 0:
            return (
                f"{cls.label} bounds how far the minimiser moves, which needs a strongly convex objective; "
                f"{setting.model!r} is not convex"
            )
        if cls.needs_linear and not setting.linear:
            return f"{cls.label} is defined for linear models only"
        if cls.needs_strong_convexity and not math.isfinite(setting.G):
            return f"{cls.label} bounds how far the minimiser moves, and the gradients of {setting.model!r} have no bound"
        missing = [ability for ability in Ability if ability in cls.needs - setting.abilities]
        if missing:
            return f"{cls.label} needs {' and '.join(missing)}, which {setting.model!r} does not give"
        return None

    @classmethod
    def require(cls, setting: Setting) -> None:
        """Checks that this mechanism can run on this model.

        Raises:
            InvalidInput: it refuses.
        """
        if refusal := cls.refusal(setting):
            raise InvalidInput("mechanism", refusal, "Choose another mechanism or another model.")

    @abstractmethod
    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        """Noise scale and guarantee for one row and a budget, from public facts only; `protection.calibrate` is for a run.

        Raises:
            InvalidInput: the budget cannot be met, with the reason.
        """

    @abstractmethod
    def fit(self, training: Training) -> Fit:
        """Trains all replicas of `training` together."""

    def automatic(self, knob: str, setting: Setting, budget: Budget | None = None) -> float:
        """The value that the mechanism's own rule gives a knob which stands at automatic, from public facts only.

        Args:
            knob: one that declares a rule.
            budget: None where the rule does not depend on it, or where it is asked before a budget is known.
        """
        raise NotImplementedError(f"{self.id} has no rule of its own for {knob}")

    def limit(self, setting: Setting) -> str:
        """A sentence on what the method learns at no epsilon and no number of rows; empty where there is no such limit."""
        return ""

    def automatic_lam(self, setting: Setting, budget: Budget) -> float:
        """The regularisation of a run that leaves it automatic, from public facts only.

        Args:
            setting: its `lam` is that of the model without noise, `rules.regularisation`; less is not given.
            budget: what the noise is for.
        """
        return setting.lam

    def value(self, knob: str, setting: Setting, budget: Budget | None = None) -> Any:
        """A knob's value: as set, or what the mechanism's own rule gives where it stands at automatic."""
        declared, chosen = self.knobs()[knob], getattr(self, knob)
        if not declared.automatic or chosen:
            return chosen
        return declared.check(knob, self.automatic(knob, setting, budget))

    def settle(self, setting: Setting, budget: Budget, rows: int = 0) -> Self:
        """The same mechanism with every automatic knob set to its value for this budget.

        Args:
            rows: of other data that it is then used on, in which batches keep their share of the rows; 0 for the same number.
                With the passes fixed too, every published sensitivity of mini-batch descent is exactly proportional to 1/n.
        """
        values = {name: self.value(name, setting, budget) for name, knob in self.knobs().items() if knob.automatic}
        for name, declared in self.knobs().items() if rows else ():
            if isinstance(declared, Number) and declared.share_of_rows:
                size = values.get(name, getattr(self, name)) * rows / setting.n
                values[name] = int(min(max(round(size), 1), declared.high))
        return dataclasses.replace(self, **values)
