"""What a mechanism is: a frozen dataclass whose fields are its knobs, that calibrates and that fits replicas.

A new mechanism is one new file in this folder with one subclass of `Mechanism`. Widgets, URL keys, the command
line, the table in the docs and the contract test are derived from what it declares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpviz.models import Model, Setting
from dpviz.privacy.algorithm2 import Trace
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.privacy.individual import IndividualEpsilon
from dpviz.privacy.releases import Bound, Releases
from dpviz.problem import Problem
from dpviz.validate import InvalidInput, in_range, number, one_of, truth, whole

Floats = NDArray[np.float64]
Streams = Sequence[np.random.SeedSequence]

#: families in the order in which they are shown; one hue each
FAMILIES = ("reference", "output", "objective", "gradient", "input", "local")


@dataclass(frozen=True)
class Knob:
    """How a mechanism's parameter may be set, free of any user interface.

    Attributes:
        label: short name for people.
        help: one sentence.
        kind: "number", "whole", "choice" or "switch".
        low, high: inclusive bounds of numbers.
        log: whether a slider should be logarithmic.
        unit: unit or "".
        options: allowed values of a choice.
    """

    label: str
    help: str
    kind: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    unit: str = ""
    options: tuple[str, ...] = ()

    def check(self, name: str, value: object) -> Any:
        """`value` in its canonical type, or `InvalidInput` naming the knob."""
        if self.kind == "number":
            return in_range(name, value, self.low, self.high)
        if self.kind == "whole":
            return whole(name, value, int(self.low), int(self.high))
        if self.kind == "choice":
            return one_of(name, value, self.options)
        return truth(name, value)

    def parse(self, name: str, text: str) -> Any:
        """A value written as text, as in a URL or on the command line."""
        if self.kind == "switch":
            return one_of(name, text.lower(), ("true", "false")) == "true"
        if self.kind == "choice":
            return one_of(name, text, self.options)
        try:
            value: float = float(text)
        except ValueError:
            value = number(name, text)  # raises
        return self.check(name, value)


def knob(
    default: Any,
    label: str,
    help: str,
    *,
    low: float = 0.0,
    high: float = 0.0,
    log: bool = False,
    unit: str = "",
    options: Sequence[str] = (),
) -> Any:
    """A dataclass field that is a knob; its kind follows from the default's type."""
    if isinstance(default, bool):
        kind = "switch"
    elif isinstance(default, int):
        kind = "whole"
    elif isinstance(default, float):
        kind = "number"
    else:
        kind = "choice"
    return field(default=default, metadata={"knob": Knob(label, help, kind, low, high, log, unit, tuple(options))})


@dataclass(frozen=True)
class Calibration:
    """From a budget to a noise scale, and what that is worth.

    Attributes:
        budget: the budget asked for.
        sensitivity: L2 sensitivity of `query`; NaN where the method has none.
        query: what the noise is added to, in words.
        sensitivity_source: where the sensitivity comes from, with equation or theorem number.
        noise_scale: per-coordinate standard deviation (gaussian) or 1/beta (gamma-sphere), >= 0.
        noise_family: "gaussian", "gamma-sphere", "laplace", "none" or another named law.
        neighbouring: the relation of `proved` and `claimed`.
        claimed: the budget that the publication states, None where it states none.
        proved: the budget that a proof with all constants supports, None where none does.
        status: the label that goes with every epsilon of this run.
        conditions: what must hold for `proved`.
        accountant: how the budget was turned into noise.
        conversion: how a composed guarantee becomes (epsilon, delta), "" where nothing is converted.
        notes: remarks for people: flaws, deviations from the paper and why.
        details: further numbers by name, for pages and tests.
    """

    budget: Budget
    sensitivity: float
    query: str
    sensitivity_source: str
    noise_scale: float
    noise_family: str
    neighbouring: Neighbouring
    claimed: Budget | None
    proved: Budget | None
    status: Status
    accountant: str
    conversion: str = ""
    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    details: dict[str, float] = field(default_factory=dict)

    def noiseless(self) -> Calibration:
        """The same run with its noise switched off, which protects nobody."""
        return dataclasses.replace(
            self, noise_scale=0.0, claimed=None, proved=None, status=Status.NONE, notes=("Noise switched off.",)
        )


@dataclass(frozen=True)
class OutputNoise:
    """Where the law of the released parameters is known: centre + scale x a standard draw.

    Attributes:
        centre: (m,) shared, or (S, m) per seed: the parameters before noise.
        scale: (E,) noise scales.
        family: a key of `dpviz.noise.STANDARD`.
    """

    centre: Floats
    scale: Floats
    family: str


@dataclass(frozen=True)
class NoiseRecord:
    """What happened to each training row. Arrays broadcast to (E, S, n) unless stated; None where it has no meaning.

    Attributes:
        visits: how often the row was used in an update.
        times_noised: how often noise was put on this very row or on its own gradient step.
        noise_norm: total length of the noise that was put on this row.
        passed: how often a rule let the row pass without noise.
        rule_margin: signed distance to the rule's threshold; above 0 the row needed noise.
        timeline: (E, S, rounds) number of rows that met noise, or that `timeline_counts`, per round.
        gradient_energy: sum over the steps of the squared length of the row's clipped gradient.
        path: (E, S', T, m) released iterates at which the T gradients were taken, of the first S' seeds.
        where: where the noise went, in words.
        timeline_counts: what the timeline counts, in words.
    """

    where: str
    timeline_counts: str = "rows that met noise"
    visits: NDArray[Any] | None = None
    times_noised: NDArray[Any] | None = None
    noise_norm: NDArray[Any] | None = None
    passed: NDArray[Any] | None = None
    rule_margin: NDArray[Any] | None = None
    timeline: NDArray[Any] | None = None
    gradient_energy: NDArray[Any] | None = None
    path: NDArray[Any] | None = None

    def at(self, e: int) -> NoiseRecord:
        """The record of budget e alone: every array has length 1 on the first axis."""
        arrays = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if "NDArray" in str(f.type)}
        cut = {k: v if v is None or v.shape[0] == 1 else v[e : e + 1] for k, v in arrays.items()}
        return dataclasses.replace(self, **cut)


@dataclass(frozen=True)
class RuleView:
    """A rule that decides which rows meet noise, looked at for every training row before the first step.

    A row passes without noise where low <= statistic <= high. Not private: it is computed from the rows.

    Attributes:
        name: "as written" or "as intended".
        words: the rule in one sentence.
        formula: the same in LaTeX.
        statistic_label: what the statistic is, in words.
        statistic: (n,) by position in the training rows, may be infinite.
        low, high: the thresholds, -inf or inf where a side is open.
        passes: (n,) whether each row passes; where the rule draws noise itself, without that noise.
        used: whether the run follows this rule.
        log10_pass: (n,) log10 of the probability that the row passes, over the rule's own noise; None where it has none.
        notes: remarks for people.
    """

    name: str
    words: str
    formula: str
    statistic_label: str
    statistic: Floats
    low: float
    high: float
    passes: NDArray[np.bool_]
    used: bool
    log10_pass: Floats | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fit:
    """Trained replicas.

    Attributes:
        theta: (E, S, m) released parameters, E budgets and S seeds.
        record: what happened to the rows.
        law: the law of theta given the data, where it is known in closed form.
        constant_label: (E, S) labels in {-1, +1} where the release is a label and not a model.
    """

    theta: Floats
    record: NoiseRecord
    law: OutputNoise | None = None
    constant_label: Floats | None = None


class Monitor(Protocol):
    """Told the share of the work done, in [0, 1]; raises to cancel. Call it at least every half second."""

    def __call__(self, done: float) -> None: ...


def silent(done: float) -> None:
    """A monitor that does nothing."""


@dataclass(frozen=True)
class Mechanism:
    """Base of all mechanisms. Subclasses are frozen dataclasses whose fields are knobs.

    Class attributes:
        id: kebab-case, used in URLs, files and tables.
        label: short name for people.
        family: one of `FAMILIES`.
        citation: author, venue, year, and the algorithm and theorem followed.
        noise_enters: one sentence: what the noise is added to.
        neighbouring: relation of the guarantee.
        guarantee: one sentence: what is guaranteed and how far it is proved.
        rate: LaTeX of the published utility rate, or "" where the publication has none.
        order: place in lists; families come in the order of `FAMILIES`.
        needs_strong_convexity, needs_linear: what models it can run on.
        row_rule: what tells rows apart where it is not noise on single rows: a rule that decides who takes part.
        public_steps: name of the knob that counts steps, where the guarantee covers every iterate and a run of k
            steps is the beginning of a longer one; "" where only the end is released. An auditor then looks at
            iterates too.
    """

    id: ClassVar[str]
    label: ClassVar[str]
    family: ClassVar[str]
    citation: ClassVar[str]
    noise_enters: ClassVar[str]
    neighbouring: ClassVar[Neighbouring] = Neighbouring.REPLACE_ONE
    guarantee: ClassVar[str]
    rate: ClassVar[str] = ""
    pure: ClassVar[bool] = False
    needs_strong_convexity: ClassVar[bool] = False
    needs_linear: ClassVar[bool] = False
    row_rule: ClassVar[str] = ""
    public_steps: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "family" in vars(cls) and cls.family not in FAMILIES:
            raise TypeError(f"{cls.__name__}.family must be one of {FAMILIES}")
        cls.order = FAMILIES.index(cls.family) if hasattr(cls, "family") else 0

    order: ClassVar[int] = 0

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
        known = cls.knobs()
        for name in params:
            if name not in known:
                fix = f"{cls.id} has: {', '.join(known)}." if known else f"{cls.id} has no parameters."
                raise InvalidInput(f"params[{name!r}]", f"{cls.id} has no such parameter", fix)
        return cls(**params)

    @classmethod
    def refusal(cls, setting: Setting) -> str | None:
        """Why this mechanism cannot run on this model, or None."""
        if cls.needs_strong_convexity and setting.mu <= 0:
            return (
                f"{cls.label} bounds how far the minimiser moves, which needs a strongly convex objective; "
                f"{setting.model!r} is not convex"
            )
        if cls.needs_linear and not setting.linear:
            return f"{cls.label} is defined for linear models only"
        return None

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        """Noise scale and guarantee for a budget, from public facts only.

        Raises:
            InvalidInput: the budget cannot be met, with the reason.
        """
        raise NotImplementedError

    def fit(
        self,
        problem: Problem,
        calibrations: Sequence[Calibration],
        streams: Streams,
        *,
        record: bool = True,
        monitor: Monitor = silent,
    ) -> Fit:
        """Trains len(calibrations) x len(streams) replicas together.

        Replica (e, s) uses the standard draws of stream s, scaled by the noise of calibration e.

        Args:
            record: whether to keep what happened to each row; sweeps leave it out.
            monitor: told of progress; raises to cancel.
        """
        raise NotImplementedError

    def individual(
        self, problem: Problem, calibration: Calibration, theta: Floats, record: NoiseRecord
    ) -> IndividualEpsilon | None:  # fmt: skip
        """Individual epsilon of every training row, or None where none is known for this mechanism.

        Args:
            theta: (S, m) what was released.
            record: what happened to the rows under this calibration (`NoiseRecord.at`).
        """
        return None

    @classmethod
    def share_rule(cls, share: float) -> dict[str, Any] | None:
        """Knobs with which noise meets this share of the rows, the most influential ones; None where it cannot."""
        return None

    @classmethod
    def worst_pair(cls, model: Model, setting: Setting) -> tuple[Problem, Problem] | None:
        """Two neighbouring problems of this size on which the method's privacy is expected to be worst.

        None leaves it to the auditor's general constructions.
        """
        return None

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        """The quantity that the noise protects, without noise: `Calibration.sensitivity` bounds how far it moves.

        Args:
            theta: (R, m) points at which a gradient-type query is asked; output-type queries ignore it.
            streams: R streams, the randomness that two neighbouring runs share.

        Returns:
            (R, k)
        """
        raise NotImplementedError(f"{self.id} adds no noise to a query of bounded sensitivity")

    def rule_views(self, problem: Problem, calibration: Calibration) -> tuple[RuleView, ...] | None:
        """The rules that decide which rows meet noise, the one in use first; None where there is no such rule."""
        return None

    def automatic(self, knob: str, n: int) -> int:
        """What a knob that stands at 0 for the mechanism's own choice is for n rows."""
        raise NotImplementedError(f"{self.id} has no choice of its own for {knob}")

    def sensitivity_trace(self, setting: Setting) -> Trace | None:
        """How far two runs can drift apart, update by update; None where the query is not the end of a recursion."""
        return None

    def sensitivity_bounds(self, setting: Setting) -> tuple[Bound, ...]:
        """Worst-case sensitivities of `query` from every source known, the one in use among them."""
        return ()

    def releases(self, setting: Setting) -> Releases | None:
        """What Gaussian noise is added to, for accountants to compare; None for other noise and other guarantees."""
        return None

    def excess_theory(self, setting: Setting, noise_scale: float, start: float, eigenvalues: Floats) -> dict[str, float]:
        """Expected excess empirical risk by formulas with all constants: "bound" and "near the minimum", where known.

        Args:
            start: objective at 0 above its minimum.
            eigenvalues: (m,) of the Hessian at the minimum; the second number depends on data through them.
        """
        return {}

    def noisy_rows(self, problem: Problem, calibration: Calibration, stream: np.random.SeedSequence) -> Floats | None:
        """(n, d) training rows as one replica sees them after its noise; None where noise is not put on rows."""
        return None

    def rows_in_words(self, setting: Setting) -> str:
        """What `noisy_rows` shows where that is not the row itself, or what was released where it shows nothing."""
        return ""


def scales(calibrations: Sequence[Calibration]) -> Floats:
    """(E,) noise scales."""
    return np.array([c.noise_scale for c in calibrations])
