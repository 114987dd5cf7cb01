"""A run as a value: everything that decides a result, validated once, with a canonical key and a URL form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from dpviz.common.fingerprint import engine_version, foreign_code
from dpviz.common.validate import InvalidInput, in_range, number, number_from_text, one_of, positive, show, truth, whole
from dpviz.datasets import canonical_name, load_dataset, rows_of
from dpviz.datasets.base import train_size
from dpviz.mechanisms import Mechanism, get_mechanism
from dpviz.models import get_model
from dpviz.privacy.budget import Budget, default_delta

MAX_SEEDS = 10_000
#: wider than any use, and within what every calibration can count with
LEAST_EPSILON, MOST_EPSILON, LEAST_DELTA = 1e-9, 1e6, 1e-100
#: below, solvers do not converge in double precision; above, every model is 0
LEAST_LAM, MOST_LAM = 1e-9, 1e4


@dataclass(frozen=True)
class RunSpec:
    """One run: a dataset, a model, a mechanism with its knobs, a budget and the seeds.

    Attributes:
        dataset: catalogue name.
        model: "logistic", "svm", "mlp" (one hidden layer as wide as the rows) or "mlp-32" (32 hidden units).
        mechanism: mechanism id.
        epsilon: privacy budget, from `LEAST_EPSILON` to `MOST_EPSILON`.
        delta: failure probability, `LEAST_DELTA` <= delta < 1/n for n training rows; None picks `default_delta(n)`.
        lam: l2 regularisation, from `LEAST_LAM` to `MOST_LAM`.
        seeds: number of noise draws, 1 to 10,000.
        split_seed: seed of the 80/20 split.
        seed: seed of the noise; replica s uses its s-th child stream.
        params: knobs of the mechanism; what is left out is at its default.
        intercept: whether the data has the constant feature.

    Raises:
        InvalidInput: at construction, naming the field, what is wrong and what to do.
    """

    dataset: str = "breast-cancer"
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

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("dataset", canonical_name(self.dataset))
        get_model(self.model)
        get_mechanism(self.mechanism)
        put("epsilon", check_epsilon(self.epsilon))
        n = self.n_train
        put("delta", default_delta(n) if self.delta is None else check_delta(self.delta, n))
        put("lam", in_range("lam", self.lam, LEAST_LAM, MOST_LAM))
        put("seeds", whole("seeds", self.seeds, 1, MAX_SEEDS))
        put("split_seed", whole("split_seed", self.split_seed, 0, 2**32 - 1))
        put("seed", whole("seed", self.seed, 0, 2**32 - 1))
        put("intercept", truth("intercept", self.intercept))
        if not isinstance(self.params, Mapping):
            raise InvalidInput("params", f"must be a mapping, got {show(self.params)}", "Give a dict of knobs.")
        built = self.build()
        put("params", MappingProxyType({k: getattr(built, k) for k in sorted(self.params)}))
        refusal = built.refusal(get_model(self.model).setting(n, 1, self.lam))
        if refusal:
            raise InvalidInput("mechanism", refusal, "Choose another mechanism or another model.")

    @property
    def n_train(self) -> int:
        """Training rows, public."""
        return train_size(rows_of(self.dataset))

    @property
    def budget(self) -> Budget:
        """(epsilon, delta)."""
        assert self.delta is not None
        return Budget(self.epsilon, self.delta)

    def build(self) -> Mechanism:
        """The mechanism with its knobs set."""
        return get_mechanism(self.mechanism).from_params(dict(self.params))

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values; `RunSpec(**spec.to_dict()) == spec`."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {"params": dict(self.params)}

    def key(self) -> str:
        """Canonical JSON of all that decides the result: the spec with every knob, the data's hash, the engine.

        Two specs have the same key exactly if they give the same numbers; caches use it and nothing else.
        """
        built = self.build()
        values = self.to_dict() | {
            "params": {name: getattr(built, name) for name in built.knobs()},
            "sha256": load_dataset(self.dataset, intercept=self.intercept).sha256,
            "engine": engine_version() + foreign_code(type(built)),
        }
        return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def to_query(self) -> dict[str, str]:
        """The fields that differ from the default, as text for a URL; knobs are "mechanism.knob"."""
        query = {}
        for f in fields(self):
            value = getattr(self, f.name)
            default = default_delta(self.n_train) if f.name == "delta" else f.default
            if f.name != "params" and value != default:
                query[f.name] = _text(value)
        declared, defaults = get_mechanism(self.mechanism).knobs(), get_mechanism(self.mechanism).defaults()
        query |= {f"{self.mechanism}.{k}": declared[k].text(v) for k, v in self.params.items() if v != defaults[k]}
        return query

    @classmethod
    def from_query(cls, query: str | Mapping[str, Any], problems: list[InvalidInput] | None = None) -> RunSpec:
        """A spec from a URL's query.

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
                    values[f.name] = _parse(f.name, given[f.name])
                    # one field at a time against the defaults, so that each bad one is named
                    if f.name not in ("delta", "mechanism", "model"):
                        cls(**{f.name: values[f.name]})
                    elif f.name == "delta":
                        cls(dataset=values.get("dataset", cls.dataset), delta=values["delta"])
                    else:
                        {"mechanism": get_mechanism, "model": get_model}[f.name](values[f.name])
                except InvalidInput as error:
                    values.pop(f.name, None)
                    found.append(error.bare())
        mechanism = get_mechanism(values.get("mechanism", cls.mechanism))
        params: dict[str, Any] = {}
        for name, declared in mechanism.knobs().items():
            text = given.get(f"{mechanism.id}.{name}")
            if text is not None:
                try:
                    params[name] = declared.parse(name, text)
                except InvalidInput as error:
                    found.append(error.bare())
        spec, doubtful = None, ["delta", "mechanism", "model"]  # what can only be wrong in company of other fields
        while spec is None:
            try:
                spec = cls(**values, params=params)
            except InvalidInput as error:
                if str(error) not in map(str, found):
                    found.append(error.bare())
                if not doubtful:
                    break
                dropped = error.field if error.field in doubtful else doubtful[0]
                doubtful.remove(dropped)
                values.pop(dropped, None)
                params = {} if dropped == "mechanism" else params
        if found and problems is None:
            raise found[0]
        if problems is not None:
            problems.extend(found)
        return spec if spec is not None else cls()

    def __hash__(self) -> int:
        return hash((self.dataset, self.model, self.mechanism, self.epsilon, tuple(self.params.items()), self.seed))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.to_dict(),)


def _rebuild(values: dict[str, Any]) -> RunSpec:
    return RunSpec(**values)


def check_epsilon(value: object) -> float:
    """`value` as an epsilon that can be counted with."""
    return in_range("epsilon", Budget(value).epsilon, LEAST_EPSILON, MOST_EPSILON)  # type: ignore[arg-type]


def check_delta(value: object, n: int) -> float:
    """`value` as a delta that means something for n rows: `LEAST_DELTA` <= delta < 1/n."""
    fix = f"Give a probability above 0 and below 1/n = {1 / n:.3g}, for example {default_delta(n):g}."
    delta = positive("delta", value, fix=fix)
    if delta < LEAST_DELTA:
        raise InvalidInput("delta", f"must be at least {LEAST_DELTA:g}, got {delta:.3g}", fix)
    if delta >= 1 / n:
        raise InvalidInput(
            "delta",
            f"{delta:g} is not below 1/n = {1 / n:.3g}: a mechanism that publishes one random row in clear would meet it",
            fix,
        )
    return delta


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_text(query: str | Mapping[str, Any]) -> dict[str, str]:
    if isinstance(query, str):
        return dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True))
    return {str(k): str(v[-1] if isinstance(v, list | tuple) and v else v) for k, v in query.items()}


def _parse(name: str, text: str) -> Any:
    if name in ("dataset", "model", "mechanism"):
        return text
    if name == "intercept":
        return one_of(name, text.lower(), ("true", "false")) == "true"
    value = number_from_text(name, text)
    return whole(name, value, 0, 2**32 - 1) if name in ("seeds", "split_seed", "seed") else number(name, value)
