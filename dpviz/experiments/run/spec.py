"""A run as a value: everything that decides a result, with a URL form. It is plain: making one reads no data.

`dpviz.experiments.run.resolve` checks a run against the data that is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from dpviz.common.validate import InvalidInput, show
from dpviz.experiments.run import links
from dpviz.experiments.run.settings import AS_DECLARED, PRIVATE, SETTINGS, STANDARDISED
from dpviz.mechanisms import Mechanism, get_mechanism
from dpviz.mechanisms.knobs import AUTOMATIC, Changes, Knob


@dataclass(frozen=True)
class RunSettings:
    """The fields that the runs of a sweep share, and a single run has too; `RunSpec` lists them with their limits."""

    dataset: str = "teaching"
    model: str = "logistic"
    _: KW_ONLY
    delta: float | None = None
    lam: float = 0.0
    class_weight: float = 1.0
    seeds: int = 10
    split_seed: int = 0
    seed: int = 0
    intercept: bool = True
    row_scaling: str = "automatic"
    ranges: str = AS_DECLARED
    folds: int = 0
    published_split: bool = False

    @property
    def prepared(self) -> bool:
        """True where rows depend on epsilon, of which a part pays for what is found in them before training."""
        return self.ranges == PRIVATE or self.row_scaling == STANDARDISED


def shared_fields(spec: RunSettings) -> dict[str, Any]:
    """The fields of `RunSettings` of a run or a sweep."""
    return {f.name: getattr(spec, f.name) for f in fields(RunSettings)}


if TYPE_CHECKING:
    from dpviz.datasets import Dataset

    class DatasetName:
        """For type checkers: what is given may be a dataset, what is kept is its name."""

        def __get__(self, spec: Any, owner: Any) -> str: ...
        def __set__(self, spec: Any, value: str | Dataset) -> None: ...


@dataclass(frozen=True)
class RunSpec(RunSettings):
    """One run: a dataset, a model, a mechanism with its hyperparameters, a budget and the seeds.

    Attributes:
        dataset: a name that `dpviz.load_dataset` knows, or a `Dataset`, taken for its name. `dpviz.resolve` looks for it.
        model: "logistic", "svm", "mlp" (one hidden layer as wide as the rows) or "mlp-32" (32 hidden units).
        mechanism: id, one of `dpviz.list_mechanisms()`; "automatic" for the one that a rule of public facts names; "non-private"
            trains without noise.
        epsilon: privacy budget, no unit, 1e-9 to 1e6.
        params: hyperparameters of the mechanism by name (`dpviz.list_mechanisms()[id].knobs()`); the others have their defaults.
        delta: additive slack beside e^epsilon, 1e-100 to below 1/n for n training rows; None for a rule of n (`default_delta`).
        lam: weight of |theta|^2/2, 1e-9 to 1e4; 0 for a rule of public facts (`dpviz.resolve(spec).lam`).
        class_weight: weight of a row of class +1 beside 1 for one of class -1, 0.01 to 100; public.
        seeds: number of noise draws, 1 to 10,000: so many models are trained.
        split_seed: seed of the 80/20 split, 0 to 2^32 - 1.
        seed: seed of the noise, 0 to 2^32 - 1; model s uses its s-th child stream.
        intercept: whether the rows have a constant feature.
        row_scaling: how rows are brought into the unit ball: one of those of `dpviz.load_dataset`; "standardised", which a part
            of the budget pays for; or "automatic", which does so where the rows may be near one corner (`dpviz.preparing`).
        ranges: "declared" for the ranges of number columns as the dataset has them, or "private" for ranges that a tenth of the
            budget pays for (`dpviz.preparing.ranges`).
        folds: 0 for the 80/20 split; k from 2 to 100 for one fold of a k-fold cross validation, chosen by `split_seed`.
        published_split: whether the test part is the one that the rows were published with, such as adult.test.

    Raises:
        InvalidInput: at construction, naming the field, what is wrong and what to do. No data is looked at.

    >>> RunSpec("iris", epsilon=0.5).to_query()
    {'dataset': 'iris', 'epsilon': '0.5'}
    >>> RunSpec.from_query("?dataset=iris&epsilon=0.5") == RunSpec("iris", epsilon=0.5)
    True
    >>> RunSpec(epsilon=0)
    Traceback (most recent call last):
    ...
    dpviz.common.validate.InvalidInput: epsilon: must be above 0, got 0. Give a privacy budget above 0, for example 1.0.
    """

    if TYPE_CHECKING:
        dataset: DatasetName = DatasetName()
    mechanism: str = AUTOMATIC
    epsilon: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        for name, knob in SETTINGS.items():
            put(name, knob.check(name, getattr(self, name)))
        if not isinstance(self.params, Mapping):
            raise InvalidInput("params", f"must be a mapping, got {show(self.params)}", "Give a dict of knobs.")
        if self.mechanism == AUTOMATIC:
            if self.params:
                raise InvalidInput("params", "are knobs of one mechanism, and it is automatic", "Name a mechanism.")
            put("params", MappingProxyType({}))
            return
        built = get_mechanism(self.mechanism).from_params(dict(self.params))
        put("params", MappingProxyType({k: getattr(built, k) for k in sorted(self.params)}))
        put("_built", built)  # a page asks for it a hundred times

    def build(self) -> Mechanism:
        """The mechanism with its knobs set; an automatic one depends on the dataset, which is loaded."""
        if self.mechanism == AUTOMATIC:
            from dpviz.experiments.run.resolve import resolve

            return resolve(self).spec.build()
        return self.__dict__["_built"]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values; `RunSpec(**spec.to_dict()) == spec`."""
        return {name: getattr(self, name) for name in SETTINGS} | {"params": dict(self.params)}

    def restrict(self, *changes: Changes) -> RunSpec:
        """The run in what changes these parts, all else at its defaults: what depends on nothing else is kept under its key.

        Where rows are prepared, the data depends on what pays for that and on its noise.
        """
        paid = ("epsilon", "delta", "seed") if self.prepared and Changes.DATA in changes else ()
        return RunSpec(**{k: getattr(self, k) for k, knob in SETTINGS.items() if knob.changes in changes or k in paid})

    def to_query(self) -> dict[str, str]:
        """The fields that differ from the default, as text for a URL; knobs are "mechanism.knob"."""
        values = {name: (knob, getattr(self, name)) for name, knob in SETTINGS.items()}
        query = {name: knob.text(value) for name, (knob, value) in values.items() if value != getattr(RunSpec, name)}
        if self.mechanism == AUTOMATIC:
            return query
        declared, defaults = get_mechanism(self.mechanism).knobs(), get_mechanism(self.mechanism).defaults()
        return query | {f"{self.mechanism}.{k}": declared[k].text(v) for k, v in self.params.items() if v != defaults[k]}

    @classmethod
    def from_query(cls, query: str | Mapping[str, Any], problems: list[InvalidInput] | None = None) -> RunSpec:
        """A spec from a URL's query, `dpviz.resolve` then checks it against the data.

        Args:
            query: "a=1&b=2" (a leading "?" is allowed) or a mapping to text or lists of text. Unknown keys are
                ignored.
            problems: where given, bad values are reported here and replaced by their default; otherwise the
                first one raises.
        """
        bad: list[InvalidInput] = []
        texts = links.drop_version(_as_text(query), bad)
        values: dict[str, Any] = {}
        params: dict[str, Any] = {}

        def parse(knobs: Mapping[str, Knob], prefix: str, parsed: dict[str, Any]) -> None:
            for name, knob in knobs.items():
                if prefix + name in texts:
                    try:
                        parsed[name] = knob.parse(name, texts[prefix + name])
                    except InvalidInput as problem:
                        bad.append(problem.bare())

        parse(SETTINGS, "", values)
        name = values.get("mechanism", cls.mechanism)
        if name != AUTOMATIC:
            parse(get_mechanism(name).knobs(), f"{name}.", params)
        if bad and problems is None:
            raise bad[0]
        if problems is not None:
            problems.extend(bad)
        return cls(**values, params=params)

    def __hash__(self) -> int:
        return hash((self.dataset, self.model, self.mechanism, self.epsilon, tuple(self.params.items()), self.seed))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.to_dict(),)


def _rebuild(values: dict[str, Any]) -> RunSpec:
    return RunSpec(**values)


def _as_text(query: str | Mapping[str, Any]) -> dict[str, str]:
    if isinstance(query, str):
        return dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True))
    return {str(k): str(v[-1] if isinstance(v, list | tuple) and v else v) for k, v in query.items()}
