"""The fields of a run: `SETTINGS` has the type of each, and what it changes.

A new field is an entry here and an attribute of `RunSettings` (`spec.py`). Run, sweep, command line, sidebar, address and cache
keys follow.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from dpviz.common.validate import InvalidInput, check_range, number_from_text, positive, show
from dpviz.datasets.catalogue import list_datasets, name_of
from dpviz.datasets.table.encoding import AUTOMATIC, SCALINGS
from dpviz.mechanisms import get_mechanism, list_mechanisms, rules
from dpviz.mechanisms.knobs import Changes, Choice, Form, Knob, Number, Pick, Switch, Whole
from dpviz.models import MODELS, get_model
from dpviz.privacy.budget import Budget

MAX_SEEDS = 10_000
#: wider than any use, and within what every calibration can count with
LEAST_EPSILON, MOST_EPSILON, LEAST_DELTA = 1e-9, 1e6, 1e-100
#: below, solvers do not converge in double precision; above, every model is 0
LEAST_LAM, MOST_LAM = 1e-9, 1e4
_MOST_SEED = 2**32 - 1


@dataclass(frozen=True, kw_only=True)
class Name(Knob, ABC):
    """The name of something that is looked up in a list.

    Attributes:
        options: the names that are offered; empty for all that are known.
    """

    options: tuple[str, ...] = ()
    typed: ClassVar[bool] = False
    listed: ClassVar[str] = ""  # command that lists them, where they are many

    @abstractmethod
    def known_names(self) -> tuple[str, ...]:
        """All names in the list."""

    def describe(self) -> str:
        return f"a name that `dpviz {self.listed}` lists" if self.listed else ", ".join(self.known_names())

    def form(self, value: Any) -> Form:
        options = self.options or self.known_names()
        return Pick(options if value in options else (*options, value), self.typed)


@dataclass(frozen=True, kw_only=True)
class DatasetName(Name):
    """The name of a dataset. Whether its rows are there is not looked at; names with a size are not in the list."""

    typed: ClassVar[bool] = True
    listed: ClassVar[str] = "list datasets"

    def known_names(self) -> tuple[str, ...]:
        return tuple(list_datasets())

    def check(self, name: str, value: object) -> Any:
        value = name_of(value)
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(name, f"must be a name, got {show(value)}", "Give one of dpviz.list_datasets().")
        return value


@dataclass(frozen=True, kw_only=True)
class ModelName(Name):
    """The name of a model; networks of a stated width are not in the list."""

    def known_names(self) -> tuple[str, ...]:
        return tuple(MODELS)

    def check(self, name: str, value: object) -> Any:
        get_model(value)  # type: ignore[arg-type]
        return value

    def in_words(self, value: Any) -> str:
        return get_model(value).label


@dataclass(frozen=True, kw_only=True)
class MechanismName(Name):
    """The id of a mechanism, or "automatic" for the one that a rule of public facts names."""

    listed: ClassVar[str] = "list mechanisms"

    def known_names(self) -> tuple[str, ...]:
        return (AUTOMATIC, *list_mechanisms())

    def check(self, name: str, value: object) -> Any:
        return value if value == AUTOMATIC else get_mechanism(value).id  # type: ignore[arg-type]

    def in_words(self, value: Any) -> str:
        return "Automatic" if value == AUTOMATIC else f"{get_mechanism(value).label} · {get_mechanism(value).family}"


@dataclass(frozen=True, kw_only=True)
class Epsilon(Number):
    """A privacy budget that can be counted with."""

    def _checked(self, name: str, value: object) -> Any:
        return check_epsilon(value)


@dataclass(frozen=True, kw_only=True)
class Delta(Knob):
    """A probability, or None for the default; whether it means something depends on the number of rows."""

    def check(self, name: str, value: object) -> Any:
        return None if value is None else _check_delta(value)

    def parse(self, name: str, text: str) -> Any:
        return self.check(name, number_from_text(name, text))

    def in_words(self, value: Any) -> str:
        return "default" if value is None else f"{value:.3g}"

    def describe(self) -> str:
        return f"{LEAST_DELTA:g} to below 1/n for n training rows; left out, it follows from n"


@dataclass(frozen=True, kw_only=True)
class ClassWeight(Number):
    """A public weight of class +1 beside 1 for class -1."""

    def parse(self, name: str, text: str) -> Any:
        return self.check(name, _BALANCED) if text.strip() == _BALANCED else super().parse(name, text)

    def _checked(self, name: str, value: object) -> Any:
        fix = "State the weight of class +1 beside 1 for class -1 without counting, for example 5."
        if isinstance(value, str) and value == _BALANCED:
            raise InvalidInput(name, "'balanced' counts the rows of each class, which no ε covers", fix)
        if not isinstance(value, int | float):
            raise InvalidInput(name, f"must be one number, got {show(value)}", fix)
        return super()._checked(name, value)


@dataclass(frozen=True, kw_only=True)
class Folds(Whole):
    """A number of folds, or 0 for none."""

    def _checked(self, name: str, value: object) -> Any:
        folds = super()._checked(name, value)
        if folds == 1:
            raise InvalidInput(name, "one fold would leave no rows to train on", "Give 0 for an 80/20 split, or at least 2.")
        return folds


_BALANCED = "balanced"
#: values of `ranges`
AS_DECLARED, PRIVATE = "declared", "private"
#: the value of `row_scaling` whose rows depend on epsilon
STANDARDISED = "standardised"

#: the fields of a run beside the mechanism's knobs, in the order of an address
SETTINGS: dict[str, Knob] = {
    "dataset": DatasetName(
        label="Dataset",
        help="A name with a size works too: census-50000 makes a synthetic census of 50,000 people.",
        changes=Changes.DATA,
    ),
    "model": ModelName(label="Model", help="", changes=Changes.FIT),
    "mechanism": MechanismName(label="Mechanism", help=""),
    "epsilon": Epsilon(
        label="Privacy budget ε",
        help="How much one person may change the released model. Small ε is strong privacy.",
        low=LEAST_EPSILON,
        high=MOST_EPSILON,
        log=True,
    ),
    "delta": Delta(label="Failure probability δ", help=""),
    "lam": Number(
        label="Regularisation λ",
        help="Weight of |θ|²/2. A larger λ lowers the sensitivity, so less noise is needed.",
        low=LEAST_LAM,
        high=MOST_LAM,
        log=True,
        automatic=rules.LAM,
        changes=Changes.FIT,
    ),
    "class_weight": ClassWeight(
        label="Weight of class +1",
        help="How much an error on a row of class +1 counts beside one of class −1. It is public: state it without counting "
        "rows. The noise is for a row of the largest weight.",
        low=0.01,
        high=100.0,
        log=True,
        changes=Changes.FIT,
    ),
    "seeds": Whole(
        label="Noise draws", help="Number of models, each with its own noise. Results are means over them.", low=1, high=MAX_SEEDS
    ),
    "split_seed": Whole(
        label="Split seed",
        help="Which 80 % of the rows are trained on, and which rows of a person are kept.",
        low=0,
        high=_MOST_SEED,
        changes=Changes.DATA,
    ),
    "seed": Whole(label="Noise seed", help="The same seed gives the same noise, at every ε.", low=0, high=_MOST_SEED),
    "intercept": Switch(
        label="Intercept",
        help="Adds a constant feature, regularised like the others; rows stay in the unit ball.",
        changes=Changes.DATA,
    ),
    "row_scaling": Choice(
        label="Row scaling",
        help="How rows get into the unit ball, which every method needs (|x| ≤ 1). Automatic is “centred” where the columns' "
        "ranges are known, else unit length. Where nearly all columns are numbers and n ε is large, up to 5 % of ε finds out "
        "whether most rows are near the lowest corner of the ranges, as counts of words are: then they get unit length. "
        "Centring, unit length and clipping change each row on its own and cost no privacy. "
        "The largest possible norm follows from the number of columns. The largest norm is read from the rows, and ε does not "
        "cover it. Standardising takes 15 % of the noise budget, where n and ε are large enough for it.",
        options=(AUTOMATIC, *SCALINGS, STANDARDISED),
        names={AUTOMATIC: "automatic", **SCALINGS, STANDARDISED: "standardised: features less noisy means, over noisy spreads"},
        changes=Changes.DATA,
    ),
    "ranges": Choice(
        label="Ranges of numbers",
        help="Where the ranges of number columns come from. Private: a tenth of ε and δ pays for ranges that are found with "
        "noise in the training rows, anew at each ε; the method has the rest. All noise draws of a run share its ranges.",
        options=(AS_DECLARED, PRIVATE),
        names={AS_DECLARED: "as declared or read", PRIVATE: "private, for a tenth of ε"},
        changes=Changes.DATA,
    ),
    "folds": Folds(
        label="Folds",
        help="0: one split, 80 % for training. k: k-fold cross validation, whose split s is fold s mod k of permutation s div k.",
        low=0,
        high=100,
        changes=Changes.DATA,
    ),
    "published_split": Switch(
        label="Test on the publisher’s test rows",
        help="The rows that the publisher set aside, such as adult.test; all others are trained on. The split seed has "
        "no effect then.",
        changes=Changes.DATA,
    ),
}


def check_epsilon(value: object) -> float:
    """`value` as an epsilon that can be counted with."""
    return check_range("epsilon", Budget(value).epsilon, LEAST_EPSILON, MOST_EPSILON)  # type: ignore[arg-type]


def _check_delta(value: object) -> float:
    """`value` as a probability that can be counted with; whether it means something depends on the number of rows."""
    fix = "Give a probability above 0 and below 1/n for n training rows, for example 1e-6."
    delta = positive("delta", value, fix=fix)
    if not LEAST_DELTA <= delta < 1:
        raise InvalidInput("delta", f"must be at least {LEAST_DELTA:g} and below 1, got {delta:.3g}", fix)
    return delta
