"""What the trade-off page keeps in the address beside the run: text in the session, checked, as one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpviz.common.validate import InvalidInput, in_range, number_from_text, one_of, positive, whole
from dpviz.dashboard.shell import address
from dpviz.experiments import curves
from dpviz.experiments.spec import RunSpec
from dpviz.experiments.sweep import SweepSpec
from dpviz.mechanisms import get_mechanism, list_mechanisms
from dpviz.models import get_model
from dpviz.papers.figures import base

OWN = ("methods", "knobs", "from", "to", "points", "shown", "band", "want", "odds", "figure", "tune", "by")
LOW, HIGH, POINTS, MOST_POINTS = 0.01, 10.0, 7, 31
_LAST = "dpviz.sidebar"


@dataclass(frozen=True)
class Choices:
    """The page's own settings.

    Attributes:
        methods: mechanism ids in the order of lists.
        knobs: knobs of mechanisms other than the sidebar's, by id.
        low, high, points: the epsilon grid.
        show: quantity on the vertical axis.
        band: what bands mean.
        want: accuracy wanted, None where the page picks one.
        odds: whether the axis of attack odds is drawn.
        figure: id of a paper's figure, "" for none.
        tune: two settings to tune.
        by: what tuning looks at.
    """

    methods: tuple[str, ...]
    knobs: Mapping[str, Mapping[str, Any]]
    low: float = LOW
    high: float = HIGH
    points: int = POINTS
    show: str = "accuracy"
    band: str = "draws"
    want: float | None = None
    odds: bool = False
    figure: str = ""
    tune: tuple[str, str] | None = None
    by: str = "accuracy"

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The grid."""
        return curves.grid(self.low, self.high, self.points)

    def sweep(self, spec: RunSpec) -> SweepSpec:
        """The sweep that these choices and the sidebar's run make.

        Raises:
            InvalidInput: no method, or one that does not fit the model.
        """
        knobs = {**self.knobs, spec.mechanism: dict(spec.params)}
        return SweepSpec(
            dataset=spec.dataset,
            model=spec.model,
            mechanisms={m: knobs.get(m, {}) for m in self.methods},
            epsilons=self.epsilons,
            seeds=spec.seeds,
            delta=spec.delta,
            lam=spec.lam,
            split_seed=spec.split_seed,
            seed=spec.seed,
            intercept=spec.intercept,
        )


def offered(model: str) -> list[str]:
    """Mechanisms that a model can be trained with, without the references that are lines in every picture."""
    setting = get_model(model).setting(1000, 1, 1e-3)
    return [name for name, cls in list_mechanisms().items() if cls.family != "reference" and cls.refusal(setting) is None]


def before() -> None:
    """Gives the sidebar the knobs that were chosen here for a mechanism; call before it is drawn."""
    state = st.session_state
    mechanism = str(state.get("mechanism", ""))
    for name, value in _tolerant(state.get("knobs", "")).get(mechanism, {}).items():
        state.setdefault(f"{mechanism}.{name}", value)


def read(spec: RunSpec) -> Choices:
    """The choices in the session; what is wrong with them is reported and replaced by the default."""
    state = st.session_state
    able = offered(spec.model)

    def methods(text: str) -> tuple[str, ...]:
        chosen = [one_of("methods", name, list_mechanisms()) for name in text.split(",")]
        for name in chosen:
            if name not in able:
                raise InvalidInput("methods", f"{name} does not run on this model", "It is left out.")
        return tuple(name for name in able if name in chosen)

    default = base.first_view(able, spec.mechanism)
    knobs = _value("knobs", parse_knobs, {})
    last = state.get(_LAST)
    if last is not None and last[0] != spec.mechanism:
        knobs = {**knobs, **({last[0]: last[1]} if last[1] else {})}
    knobs.pop(spec.mechanism, None)  # the sidebar says it
    state[_LAST] = (spec.mechanism, dict(spec.params))
    state["knobs"] = knob_text(knobs)
    low = _value("from", lambda t: positive("from", number_from_text("from", t)), LOW)
    high = _value("to", lambda t: positive("to", number_from_text("to", t)), HIGH)
    points = _value("points", lambda t: whole("points", number_from_text("points", t), 1, MOST_POINTS), POINTS)
    try:
        if low >= high and points > 1:
            raise InvalidInput("epsilon grid", f"must rise, got {low:g} to {high:g}", "Give a larger end.")
        curves.grid(low, high, points)
    except InvalidInput as problem:
        address.report(problem)
        low, high, points = LOW, HIGH, POINTS
        state["from"] = state["to"] = state["points"] = ""
    return Choices(
        methods=_value("methods", methods, default),
        knobs=knobs,
        low=low,
        high=high,
        points=points,
        show=_value("shown", lambda t: one_of("shown", t, curves.QUANTITIES), "accuracy"),
        band=_value("band", lambda t: one_of("band", t, curves.BANDS), "draws"),
        want=_value("want", lambda t: in_range("want", number_from_text("want", t), 0, 100) / 100, None),
        odds=_value("odds", lambda t: one_of("odds", t, ("true", "false")) == "true", False),
        figure=_value("figure", lambda t: one_of("figure", t, base.panels()), ""),
        tune=_value("tune", lambda t: _tune(t, spec), None),
        by=_value("by", lambda t: one_of("by", t, ("accuracy", "optimality_gap")), "accuracy"),
    )


def keep(**texts: str) -> None:
    """Sets choices from a control's callback, as text."""
    for key, text in texts.items():
        st.session_state[key] = text


def forget_sidebar() -> None:
    """What the sidebar said before belongs to other settings; call where all of them are replaced."""
    st.session_state.pop(_LAST, None)


def parse_knobs(text: str) -> dict[str, dict[str, Any]]:
    """Knobs of several mechanisms from "id.knob:value,id.knob:value".

    Raises:
        InvalidInput: not of that form, or an unknown or bad knob.
    """
    found: dict[str, dict[str, Any]] = {}
    for item in filter(None, text.split(",")):
        name, colon, value = item.partition(":")
        mechanism, dot, knob = name.partition(".")
        if not colon or not dot:
            raise InvalidInput("knobs", f"must look like method.knob:value, got {item[:40]!r}", "They are ignored.")
        cls = get_mechanism(mechanism)
        declared = cls.knobs().get(knob)
        if declared is None:
            raise InvalidInput("knobs", f"{mechanism} has no {knob[:40]!r}", f"It has: {', '.join(cls.knobs())}.")
        found.setdefault(mechanism, {})[knob] = declared.parse(knob, value)
    return found


def knob_text(knobs: Mapping[str, Mapping[str, Any]]) -> str:
    """The text that `parse_knobs` reads, without what is at its default."""
    items = []
    for mechanism, values in knobs.items():
        defaults = get_mechanism(mechanism).defaults()
        for name, value in values.items():
            if value != defaults[name]:
                items.append(f"{mechanism}.{name}:{get_mechanism(mechanism).knobs()[name].text(value)}")
    return ",".join(items)


def _tolerant(text: str) -> dict[str, dict[str, Any]]:
    try:
        return parse_knobs(text)
    except InvalidInput:
        return {}


def _tune(text: str, spec: RunSpec) -> tuple[str, str]:
    names = tunable(spec)
    chosen = tuple(one_of("tune", name, names) for name in text.split(","))
    if len(chosen) != 2 or chosen[0] == chosen[1]:
        raise InvalidInput("tune", "needs two different settings", f"Choose two of: {', '.join(names)}.")
    return chosen[0], chosen[1]


def tunable(spec: RunSpec) -> list[str]:
    """What can be tuned: the mechanism's knobs, and the regularisation."""
    return [*get_mechanism(spec.mechanism).knobs(), "lam"]


def _value(key: str, parse: Callable[[str], Any], default: Any) -> Any:
    """A choice, or its default where nothing or nonsense was given; nonsense is reported once."""
    text = str(st.session_state.get(key, "") or "")
    if not text:
        return default
    try:
        return parse(text)
    except InvalidInput as problem:
        address.report(problem)
        st.session_state[key] = ""
        return default


def text_of(methods: Iterable[str]) -> str:
    """Methods as text for the address."""
    return ",".join(methods)
