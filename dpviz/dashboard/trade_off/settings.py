"""The settings that the trade-off page keeps in the address, and what they mean together, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.frame import address, fields, metric, ranking
from dpviz.experiments.run.metrics import METRICS, Metric, levels_of, metric_of_column
from dpviz.experiments.run.settings import LEAST_EPSILON, MOST_EPSILON
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.sweeps import curves
from dpviz.experiments.sweeps import grid as tuning
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.mechanisms import get_knob, list_mechanisms
from dpviz.mechanisms.knobs import Choice, Form, Number, Pick, Whole
from dpviz.models import get_model
from dpviz.papers.figures import catalogue

_TITLES = {
    "accuracy": "test accuracy",
    "train_accuracy": "training accuracy",
    "optimality_gap": "optimality gap (training)",
    "objective": "objective (training)",
}
_METRIC = "metric"  # what is shown or tuned for is the sidebar's metric
_OFFERED = {_METRIC: "the metric in the sidebar", **_TITLES}
BANDS = {"draws": "10 to 90 % of the noise draws", "mean": "95 % interval of the mean"}
MOST_POINTS = 31
DRAWN = 3  # of the best methods
_ENDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_LAST = "dpviz.sidebar"


@dataclass(frozen=True, kw_only=True)
class End(Number):
    """An end of the range of epsilon: one of a few, or any that the address names."""

    def form(self, value: Any) -> Form:
        return Pick(tuple(sorted({*_ENDS, value})))


@dataclass(frozen=True, kw_only=True)
class OtherKnobs(fields.Typed):
    """Knobs of several mechanisms by id, in the address as "id.knob:value,id.knob:value"; set by other controls."""

    def parse(self, name: str, text: str) -> dict[str, dict[str, Any]]:
        knobs: dict[str, dict[str, Any]] = {}
        for item in filter(None, text.split(",")):
            path, colon, value = item.partition(":")
            mechanism, dot, knob = path.partition(".")
            if not colon or not dot:
                raise InvalidInput(name, f"must look like method.knob:value, got {item[:40]!r}", "They are ignored.")
            declared = get_knob(mechanism, knob, name)
            knobs.setdefault(mechanism, {})[knob] = declared.parse(declared.label, value)
        return knobs

    def text(self, value: Mapping[str, Mapping[str, Any]]) -> str:
        """Without what is at its default."""
        mechanisms = list_mechanisms()
        return ",".join(
            f"{mechanism}.{name}:{mechanisms[mechanism].knobs()[name].text(setting)}"
            for mechanism, params in value.items()
            for name, setting in params.items()
            if setting != mechanisms[mechanism].defaults()[name]
        )


@dataclass(frozen=True, kw_only=True)
class Percent(Number):
    """A number of percent, written without ".0" in the address."""

    def text(self, value: Any) -> str:
        return super().text(value).removesuffix(".0")


@dataclass(frozen=True, kw_only=True)
class Pair(fields.Several):
    """Two different ones of a few texts, or None; their order counts."""

    def check(self, name: str, value: object) -> Any:
        if not isinstance(value, list | tuple) or len(value) != 2 or len({*value} & {*self.options}) != 2:
            raise InvalidInput(name, "needs two different settings", f"Choose two of: {self.in_words(self.options)}.")
        return tuple(value)


KNOBS: fields.Field[Mapping[str, Mapping[str, Any]]] = fields.Field(
    "knobs", OtherKnobs(label="Settings of other methods", help=""), {}
)
FROM = fields.Field("from", End(label="ε from", help="", low=LEAST_EPSILON, high=MOST_EPSILON, log=True), 0.01, few=0)
TO = fields.Field("to", End(label="ε to", help="", low=LEAST_EPSILON, high=MOST_EPSILON, log=True), 10.0, few=0)
POINTS = fields.Field("points", Whole(label="Budgets", help="Equal ratios between neighbours.", low=1, high=MOST_POINTS), 7)
SHOWN = fields.choice("shown", "Shown", _OFFERED, _METRIC, few=0)
BAND = fields.choice("band", "Bands", BANDS, "draws", few=0)
_INVERSE = "The inverse of the curve: how much ε does each method need for it?"
WANT = fields.Field("want", Percent(label="Wanted, %", help=_INVERSE, low=0.1, high=100.0, automatic="none"), 0.0)
_LOSS = "The loss that a model should reach, or stay below."
WANT_LOSS = fields.Field("want_loss", Number(label="Wanted", help=_LOSS, low=1e-4, high=100.0, automatic="none"), 0.0)
ODDS = fields.switch(
    "odds",
    "Attack odds",
    "A second axis on top: an upper bound on how often an attacker guesses right about one person, for the sidebar’s method; "
    "none where its ε is not proved.",
)
_TUNED = {name: title for name, title in _OFFERED.items() if name not in ("train_accuracy", "objective")}
_FOLDS = "Permutations of the rows, each cut into five folds, or as many as the sidebar says. Chen, Lee, Kifer 2019 take 20."
REPEATS = fields.Field("repeats", Whole(label="Repeats", help=_FOLDS, low=1, high=20), 20)
BY = fields.choice("by", "Look at", _TUNED, _METRIC, few=0)


def figure_field() -> fields.Field[str]:
    """The paper's figure that was set up."""
    return fields.Field("figure", Choice(label="Figure", help="", options=tuple(catalogue.PANELS)), "")


def methods_field(spec: RunSpec) -> fields.Field[tuple[str, ...]]:
    """The methods that are drawn: the best few and the sidebar's, or those that were chosen."""
    setting = replace(get_model(spec.model).setting(1000, 1, 1e-3), weighted=spec.class_weight != 1)
    mechanisms = list_mechanisms()
    # the references are lines in every picture
    able = [name for name, cls in mechanisms.items() if cls.family != "reference" and cls.refusal(setting) is None]
    kind = fields.Several(
        label="Methods",
        help="Grouped by where the noise goes. Add as many as you like; what was computed before is not computed again.",
        options=tuple(able),
        names={name: f"{mechanisms[name].family} · {mechanisms[name].label}" for name in able},
        refused={name: "does not run on this model, or takes no weights" for name in mechanisms if name not in able},
    )
    ranks = ranking.rank_methods(ranking.measured_lines(spec), metric.chosen_metric(spec))
    best = {one.one.spec.mechanism for one in ranks[:DRAWN]}
    return fields.Field("methods", kind, tuple(name for name in able if name in best | {spec.mechanism}) or tuple(able[:1]))


def tune_field(spec: RunSpec) -> fields.Field[tuple[str, str] | None]:
    """The two settings that are tuned."""
    names = {name: knob.label for name, knob in tuning.declared_knobs(spec).items()}
    return fields.Field("tune", Pair(label="Settings to tune", help="", options=tuple(names), names=names), None)


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """All of them, for a run; what does not fit together is reported and put back."""
    _other_knobs(spec)
    low, high, points = FROM.value(), TO.value(), POINTS.value()
    try:
        if low >= high and points > 1:
            raise InvalidInput("epsilon grid", f"must rise, got {low:g} to {high:g}", "Give a larger end.")
        curves.grid(low, high, points)
    except InvalidInput as problem:
        address.report(problem)
        for name in ("from", "to", "points"):
            st.session_state[name] = ""
    fixed = (KNOBS, FROM, TO, POINTS, SHOWN, BAND, WANT, WANT_LOSS, ODDS, BY, REPEATS)
    return (methods_field(spec), *fixed, figure_field(), tune_field(spec))


@dataclass(frozen=True)
class Choices:
    """The page's settings together.

    Attributes:
        methods: mechanism ids in the order of lists.
        knobs: knobs of mechanisms other than the sidebar's, by id.
        low, high, points: the epsilon grid.
        metric: how usefulness is measured.
        show: quantity on the vertical axis.
        band: what bands mean.
        want: value of the metric wanted, shares in [0, 1]; None for none.
        odds: whether the axis of attack odds is drawn.
        figure: id of a paper's figure, "" for none.
        tune: two settings to tune.
        by: what tuning looks at.
    """

    methods: tuple[str, ...]
    knobs: Mapping[str, Mapping[str, Any]]
    low: float = FROM.default
    high: float = TO.default
    points: int = POINTS.default
    metric: Metric = METRICS["accuracy"]
    show: str = "accuracy"
    band: str = BAND.default
    want: float | None = None
    odds: bool = ODDS.default
    figure: str = ""
    tune: tuple[str, str] | None = None
    by: str = "accuracy"

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The grid."""
        return curves.grid(self.low, self.high, self.points)

    def sweep(self, spec: RunSpec) -> SweepSpec:
        """The sweep that these choices and the sidebar's run make: over the grid, and at the run's own budget.

        Raises:
            InvalidInput: no method, or one that does not fit the model.
        """
        knobs = {**self.knobs, spec.mechanism: dict(spec.params)}
        epsilons = sorted({*self.epsilons, spec.epsilon})
        return SweepSpec.from_run(spec, {m: knobs.get(m, {}) for m in self.methods}, epsilons, self.levels)

    @property
    def levels(self) -> tuple[str, ...]:
        """The metric's id where it has a level of its own."""
        return levels_of([self.metric.id])


def title(quantity: str) -> str:
    """The name of a quantity of a sweep's table."""
    measure = metric_of_column(quantity)
    return _TITLES[quantity] if measure is None else f"test {measure.within}"


def read(own: fields.Group, spec: RunSpec) -> Choices:
    """The settings in force."""
    measure = metric.chosen_metric(spec)
    shown, by = (measure.column if name == _METRIC else name for name in (SHOWN.value(), BY.value()))
    return Choices(
        methods=own["methods"].value(),
        knobs=KNOBS.value(),
        low=FROM.value(),
        high=TO.value(),
        points=POINTS.value(),
        metric=measure,
        show=shown,
        band=BAND.value(),
        want=(WANT.value() / 100 if measure.shares else WANT_LOSS.value()) or None,
        odds=ODDS.value(),
        figure=own["figure"].value(),
        tune=own["tune"].value(),
        by=by,
    )


def apply_chosen_knobs() -> None:
    """Gives the sidebar the knobs that were chosen here for a mechanism; call before it is drawn."""
    state = st.session_state
    mechanism = str(state.get("mechanism", ""))
    try:
        chosen = KNOBS.read(str(state.get("knobs") or "")).get(mechanism, {})
    except InvalidInput:
        return  # reported when the page reads them
    for name, value in chosen.items():
        state.setdefault(f"{mechanism}.{name}", value)


def _other_knobs(spec: RunSpec) -> None:
    """Knobs that the sidebar had for another mechanism stay with that mechanism."""
    state, knobs = st.session_state, dict(KNOBS.value())
    last = state.get(_LAST)
    if last is not None and last[0] != spec.mechanism and last[1]:
        knobs[last[0]] = last[1]
    knobs.pop(spec.mechanism, None)  # the sidebar says it
    state[_LAST] = (spec.mechanism, dict(spec.params))
    KNOBS.keep(knobs)


def forget_sidebar() -> None:
    """Forgets the sidebar's earlier settings; call where all of them are replaced."""
    st.session_state.pop(_LAST, None)


def draw(own: fields.Group, measure: Metric) -> None:
    """Methods, a value that is wanted, range of epsilon, and what is drawn, folded away."""
    with st.expander("Which ε gives a wanted value? Methods, range and axes"):
        own["methods"].draw()
        one, two, three = st.columns(3)
        if measure.shares:
            WANT.draw(f"{measure.label} wanted, %", three, step=0.5)
        else:
            WANT_LOSS.draw(f"{measure.label} wanted", three, step=0.01)
        for field, place in ((FROM, one), (TO, one), (SHOWN, two), (BAND, two), (POINTS, three)):
            field.draw(place=place)
        ODDS.draw()
