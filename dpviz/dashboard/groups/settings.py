"""The controls of the page Groups: the column and its cuts, what is measured, and the threshold."""

import math
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from dpviz.common.validate import InvalidInput, number_from_text
from dpviz.dashboard.frame import fields
from dpviz.dashboard.frame.fields import Field, Typed
from dpviz.datasets import Dataset, load_dataset
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.groups import MEASURES, columns, suggest_column
from dpviz.mechanisms.knobs import Choice, Number
from dpviz.models import get_model

_RANGE = 20.0  # of a threshold on decision values
_known: WeakKeyDictionary[Dataset, dict[int, tuple[dict[str, bool], str]]] = WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True)
class Cuts(Typed):
    """Rising numbers, as text with commas between them."""

    def check(self, name: str, value: object) -> tuple[float, ...]:
        numbers = tuple(float(v) for v in value) if isinstance(value, list | tuple) else ()
        if not all(map(math.isfinite, numbers)) or list(numbers) != sorted(set(numbers)):
            raise InvalidInput(name, "must be rising numbers", "For example: 30, 45, 60.")
        return numbers

    def parse(self, name: str, text: str) -> tuple[float, ...]:
        return self.check(name, [number_from_text(name, part) for part in text.split(",")])

    def text(self, value: Any) -> str:
        return ",".join(f"{v!r}" for v in value)

    def in_words(self, value: Any) -> str:
        return ", ".join(f"{v:g}" for v in value)

    def describe(self) -> str:
        return "rising numbers with commas between them"


_QUARTILES = "For example 30, 45, 60. Empty cuts at the quartiles of all rows, or at the median of few."
CUTS: Field[tuple[float, ...]] = Field("cuts", Cuts(label="Cut a number at", help=_QUARTILES), ())
MEASURE = fields.choice("of", "What is measured", MEASURES, "accuracy", few=0)
WHY = fields.switch(
    "why", "Who pays, and why?", "Influence, noise and individual ε of each group of training rows. May take a while."
)


def fields_of(spec: RunSpec) -> tuple[Field[Any], ...]:
    """The page's fields in the address, for a run's table and model."""
    probabilities = get_model(spec.model).loss.probabilities
    low, high, usual = (0.0, 1.0, 0.5) if probabilities else (-_RANGE, _RANGE, 0.0)
    label = "Threshold on the probability" if probabilities else "Threshold on the score"
    threshold = Field("threshold", Number(label=label, help="Rows from here on are called positive.", low=low, high=high), usual)
    dataset = _dataset(spec)
    options, first = ({}, "") if dataset is None else _offered(dataset, spec)
    column = Field("group", Choice(label="Groups by (any column)", help="", options=tuple(options)), first, few=0)
    return column, CUTS, WHY, MEASURE, threshold


def is_number(spec: RunSpec, column: str) -> bool:
    """True where a column of a run's table is a number; not where there is no such column or no table."""
    dataset = _dataset(spec)
    return dataset is not None and _offered(dataset, spec)[0].get(column, False)


def _dataset(spec: RunSpec) -> Dataset | None:
    """A run's table; None where it cannot be read."""
    return fields.read_or_default(lambda: load_dataset(spec.dataset, intercept=spec.intercept), None)


def _offered(dataset: Dataset, spec: RunSpec) -> tuple[dict[str, bool], str]:
    """The columns and the one that is suggested, found once for a split: to see which makes groups reads all of its rows."""
    known, tested = _known.setdefault(dataset, {}), dataset.n - dataset.train_size(spec.folds, spec.published_split)
    if tested not in known:
        known[tested] = (columns(dataset), suggest_column(dataset, tested))
    return known[tested]
