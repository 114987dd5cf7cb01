"""A run as a value: everything that decides a result, with a URL form. It is plain: making one reads no data.

`dpviz.experiments.resolve` checks a run against the data that is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from dpviz.common.validate import InvalidInput, in_range, number_from_text, positive, show
from dpviz.datasets.catalogue import name_of
from dpviz.datasets.table.encoding import SCALINGS
from dpviz.mechanisms import Mechanism, get_mechanism
from dpviz.mechanisms.knobs import Choice, Knob, Number, Switch, Whole
from dpviz.models import get_model
from dpviz.privacy.budget import Budget

MAX_SEEDS = 10_000
#: wider than any use, and within what every calibration can count with
LEAST_EPSILON, MOST_EPSILON, LEAST_DELTA = 1e-9, 1e6, 1e-100
#: below, solvers do not converge in double precision; above, every model is 0
LEAST_LAM, MOST_LAM = 1e-9, 1e4
_MOST_SEED = 2**32 - 1

#: fields of a run that have a type of their own: how each is checked, written as text and set on a page
SETTINGS: dict[str, Knob] = {
    "epsilon": Number(
        label="Privacy budget ε",
        help="How much one person may change what is seen: small is strong privacy. Arrow keys move it.",
        low=LEAST_EPSILON,
        high=MOST_EPSILON,
        log=True,
    ),
    "lam": Number(
        label="Regularisation λ",
        help="Weight of |θ|²/2 beside the mean loss. More of it makes the model steadier, so less noise is needed.",
        low=LEAST_LAM,
        high=MOST_LAM,
        log=True,
    ),
    "seeds": Whole(label="Noise draws", help="Models trained with independent noise, together.", low=1, high=MAX_SEEDS),
    "seed": Whole(label="Noise seed", help="The same seed gives the same noise, at every ε.", low=0, high=_MOST_SEED),
    "split_seed": Whole(label="Split seed", help="Which 80 % of the rows are trained on.", low=0, high=_MOST_SEED),
    "folds": Whole(
        label="Folds",
        help="0: one split, 80 % for training. k: k-fold cross validation, whose split s is fold s mod k of permutation s div k.",
        low=0,
        high=100,
    ),
    "intercept": Switch(label="Intercept", help="A constant feature inside the unit ball, regularised with the rest."),
    "row_scaling": Choice(
        label="Row scaling",
        help="How rows get into the unit ball, which every method needs (|x| ≤ 1). Unit length and clipping change each row on "
        "its own and cost no privacy; clipping keeps the length of short rows. The largest possible norm follows from the number "
        "of columns. The largest norm is read from the rows, outside every ε.",
        options=tuple(SCALINGS),
        names=SCALINGS,
    ),
}


@dataclass(frozen=True)
class RunSpec:
    """One run: a dataset, a model, a mechanism with its knobs, a budget and the seeds.

    Attributes:
        dataset: a name that `dpviz.load_dataset` knows; whether there is such a dataset is checked by `dpviz.resolve`. A
            `Dataset` is taken for its name.
        model: "logistic", "svm", "mlp" (one hidden layer as wide as the rows) or "mlp-32" (32 hidden units).
        mechanism: mechanism id.
        epsilon: privacy budget, from `LEAST_EPSILON` to `MOST_EPSILON`.
        delta: failure probability, from `LEAST_DELTA` to below 1; `dpviz.resolve` checks that it is below 1/n for n
            training rows, and takes `default_delta(n)` for None.
        lam: l2 regularisation, from `LEAST_LAM` to `MOST_LAM`.
        seeds: number of noise draws, 1 to 10,000.
        split_seed: seed of the 80/20 split.
        seed: seed of the noise; replica s uses its s-th child stream.
        params: knobs of the mechanism; what is left out is at its default.
        intercept: whether the data has the constant feature.
        row_scaling: how rows are brought into the unit ball: "unit", "clip", "bound" or "largest"; see `Dataset.scaled`.
        folds: 0 for the 80/20 split; k for one fold of a k-fold cross validation, chosen by `split_seed`; see `Dataset.split`.

    Raises:
        InvalidInput: at construction, naming the field, what is wrong and what to do. No data is looked at.
    """

    dataset: str = "teaching"
    model: str = "logistic"
    mechanism: str = "dp-gd"
    epsilon: float = 1.0
    delta: float | None = None
    lam: float = 1e-3
    seeds: int = 10
    split_seed: int = 0
    seed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    intercept: bool = True
    row_scaling: str = "unit"
    folds: int = 0

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("dataset", name_of(self.dataset))
        if not isinstance(self.dataset, str) or not self.dataset.strip():
            raise InvalidInput("dataset", f"must be a name, got {show(self.dataset)}", "Give one of dpviz.list_datasets().")
        get_model(self.model)
        get_mechanism(self.mechanism)
        put("epsilon", check_epsilon(self.epsilon))
        put("delta", None if self.delta is None else _check_delta(self.delta))
        for name in ("lam", "seeds", "split_seed", "seed", "intercept", "row_scaling", "folds"):
            put(name, SETTINGS[name].check(name, getattr(self, name)))
        if self.folds == 1:
            raise InvalidInput("folds", "one fold would leave no rows to train on", "Give 0 for an 80/20 split, or at least 2.")
        if not isinstance(self.params, Mapping):
            raise InvalidInput("params", f"must be a mapping, got {show(self.params)}", "Give a dict of knobs.")
        built = self.build()
        put("params", MappingProxyType({k: getattr(built, k) for k in sorted(self.params)}))

    def build(self) -> Mechanism:
        """The mechanism with its knobs set."""
        return get_mechanism(self.mechanism).from_params(dict(self.params))

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values; `RunSpec(**spec.to_dict()) == spec`."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {"params": dict(self.params)}

    def to_query(self) -> dict[str, str]:
        """The fields that differ from the default, as text for a URL; knobs are "mechanism.knob"."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "params"}
        query = {name: text_of(name, value) for name, value in values.items() if value != getattr(RunSpec, name)}
        declared, defaults = get_mechanism(self.mechanism).knobs(), get_mechanism(self.mechanism).defaults()
        return query | {f"{self.mechanism}.{k}": declared[k].text(v) for k, v in self.params.items() if v != defaults[k]}

    @classmethod
    def from_query(cls, query: str | Mapping[str, Any], problems: list[InvalidInput] | None = None) -> RunSpec:
        """A spec from a URL's query; `dpviz.resolve` then checks it against the data.

        Args:
            query: "a=1&b=2" (a leading "?" is allowed) or a mapping to text or lists of text. Unknown keys are
                ignored.
            problems: where given, bad values are reported here and replaced by their default; otherwise the
                first one raises.
        """
        given = _as_text(query)
        found: list[InvalidInput] = []
        values: dict[str, Any] = {}
        for f in fields(cls):
            if f.name in given and f.name != "params":
                try:
                    value = _parse(f.name, given[f.name])
                    cls(**{f.name: value})  # one field at a time against the defaults, so that each bad one is named
                    values[f.name] = value
                except InvalidInput as problem:
                    found.append(problem.bare())
        mechanism = get_mechanism(values.get("mechanism", cls.mechanism))
        params: dict[str, Any] = {}
        for name, declared in mechanism.knobs().items():
            text = given.get(f"{mechanism.id}.{name}")
            if text is not None:
                try:
                    params[name] = declared.parse(name, text)
                except InvalidInput as problem:
                    found.append(problem.bare())
        if found and problems is None:
            raise found[0]
        if problems is not None:
            problems.extend(found)
        return cls(**values, params=params)

    def __hash__(self) -> int:
        return hash((self.dataset, self.model, self.mechanism, self.epsilon, tuple(self.params.items()), self.seed))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.to_dict(),)


def _rebuild(values: dict[str, Any]) -> RunSpec:
    return RunSpec(**values)


def check_epsilon(value: object) -> float:
    """`value` as an epsilon that can be counted with."""
    return in_range("epsilon", Budget(value).epsilon, LEAST_EPSILON, MOST_EPSILON)  # type: ignore[arg-type]


def _check_delta(value: object) -> float:
    """`value` as a probability that can be counted with; whether it means something depends on the number of rows."""
    fix = "Give a probability above 0 and below 1/n for n training rows, for example 1e-6."
    delta = positive("delta", value, fix=fix)
    if not LEAST_DELTA <= delta < 1:
        raise InvalidInput("delta", f"must be at least {LEAST_DELTA:g} and below 1, got {delta:.3g}", fix)
    return delta


def text_of(name: str, value: Any) -> str:
    """A field's value as text for an address; `RunSpec.from_query` reads it back."""
    return SETTINGS[name].text(value) if name in SETTINGS else str(value)


def _as_text(query: str | Mapping[str, Any]) -> dict[str, str]:
    if isinstance(query, str):
        return dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True))
    return {str(k): str(v[-1] if isinstance(v, list | tuple) and v else v) for k, v in query.items()}


def _parse(name: str, text: str) -> Any:
    if name in SETTINGS:
        return SETTINGS[name].parse(name, text)
    return number_from_text(name, text) if name == "delta" else text
