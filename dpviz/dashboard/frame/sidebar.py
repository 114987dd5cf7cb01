"""The sidebar is the run. Every control follows from what the engine declares; no mechanism is named."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.common.validate import InvalidInput, number_from_text
from dpviz.dashboard.components import panels, recorder
from dpviz.dashboard.frame import address, fields, links, metric, pinned, session
from dpviz.datasets import canonical_name, load_dataset, rows_of
from dpviz.datasets.base import train_size
from dpviz.datasets.catalogue import cautions, has_size, short_list
from dpviz.datasets.sources import own as own_rows
from dpviz.datasets.sources import uploads
from dpviz.datasets.sources.folder import PREFIX as FOLDER
from dpviz.datasets.sources.synthetic import CENSUS_MAX, CENSUS_MIN
from dpviz.experiments.run.resolve import ResolvedRun, dataset_of, resolve
from dpviz.experiments.run.settings import SETTINGS, DatasetName, MechanismName, check_epsilon
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Mechanism, get_mechanism, list_mechanisms, protection
from dpviz.mechanisms.knobs import AUTOMATIC, Changes, Whole
from dpviz.mechanisms.persons import privacy_unit
from dpviz.models import MOST_UNITS, get_model
from dpviz.privacy.budget import default_delta
from dpviz.reporting import words

#: twenty steps per factor of ten: the preferred numbers R20 (ISO 3), with 3 for 3.15
_R20 = (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9)
EPSILONS = (*(float(f"{m}e{e}") for e in (-2, -1, 0) for m in _R20), 10.0)

#: more ways to set what the address has already: the network's width and the census's size, parts of names, and an exact epsilon
_UNITS, _PEOPLE, _TYPED = "dpviz.units", "dpviz.people", "epsilon_typed"
_WIDTH = Whole(
    label="Hidden units",
    help="Width of the hidden layer; 0 takes as many units as the data has features.",
    low=0,
    high=MOST_UNITS,
)

_SIZE = Whole(label="People", help="", low=CENSUS_MIN, high=CENSUS_MAX)

#: fields above the drawer; it has all others, below what they change
_ABOVE = "dataset", "published_split", "model", "mechanism", "epsilon"
_HEADINGS = {Changes.FIT: "Model", Changes.DATA: "Data", Changes.NOISE: "Budget and noise", Changes.EVALUATION: "Evaluation"}


Shows = Literal["run", "data", "nothing"]
#: the name of the drawer with all that a newcomer does not need, by what of it is seen
MORE: dict[Shows, str] = {"run": "More settings, compare, report", "data": "More settings, report", "nothing": "Report"}


class Sidebar:
    """The sidebar of a page, and the run that its controls stand for.

    What the controls say is known before they are drawn. A page whose pictures are quick draws them first: a browser that
    gets the whole sidebar at every move of ε draws that before it shows anything new.

    Args:
        own: what the page keeps in the address beside the run.
        budget: where the slider of ε is drawn, beside the picture that it moves; None where ε changes nothing.
        measured: whether the page speaks a metric, which `metric.chosen_metric` then gives.
        shows: what of the run the page depends on; controls that change nothing are kept, and not seen.

    Attributes:
        spec: the run; bad values are reported and replaced.
    """

    def __init__(
        self, own: fields.Group | None, budget: DeltaGenerator | None = None, *, measured: bool = False, shows: Shows = "run"
    ) -> None:
        further = (panels.TASK, pinned.PINNED.key, *((metric.KEY,) if measured else ()))
        self._keys = tuple(dict.fromkeys((*(own.keys if own is not None else ()), *further)))
        self._place, self._measured, self._shows = budget, measured, shows
        state = st.session_state
        wanted = state.pop(session.WANTED, None)
        if wanted is not None:
            state["dataset"] = wanted
        address.read(self._keys)
        _dataset_there()
        self._method, self._run = controls(state)
        resolved = read(self._run.values())
        self.spec, self._why = resolved.spec, resolved.why
        if own is not None:
            own.check(self.spec)
        # what is bad is reported before the address is written
        if measured:
            metric.chosen_metric(self.spec)
        pinned.PINNED.value()
        self._query = address.write(resolved.request, [*self._run, _TYPED], self._keys)

    def draw(self) -> RunSpec:
        """Draws it, and the slider of ε, and returns the run; call once."""
        state, run = st.session_state, self._run
        with st.sidebar:
            with st.container(gap="xxsmall", key="pages"):
                links.links(self._query)
            unseen = st.container(key="unseen")
            with st.container() if self._shows != "nothing" else unseen:
                run["dataset"].draw(on_change=_dataset_typed, help=None)
                if state["published_split"] or _published(state["dataset"]):
                    run["published_split"].draw(help=None)
                if has_size(self.spec.dataset):
                    address.set_widget(_PEOPLE, rows_of(self.spec.dataset))
                    fields.control(_PEOPLE, _SIZE, on_change=_people_typed)
                nothing: tuple[str, ...] = ()
                alike = fields.read_or_default(lambda: dataset_of(self.spec).alike, nothing)
                for caution in (*cautions(self.spec.dataset), *alike):
                    panels.warning(caution)
            with st.container() if self._shows == "run" else unseen:
                run["model"].draw()
                run["mechanism"].draw()
                if self._why:
                    panels.note(self._why)
            with st.expander(MORE[self._shows]):
                with st.container() if self._shows == "run" else unseen:
                    if self._measured:
                        metric.draw(self.spec)
                    _of_mechanism(self._method, run, self.spec)
                for changes, heading in _HEADINGS.items():
                    seen = self._shows == "run" or (self._shows == "data" and changes is Changes.DATA)
                    with st.container() if seen else unseen:
                        _settings(run, changes, heading, self.spec)
                with st.container() if self._shows == "run" else unseen:
                    st.button("Back to the defaults", on_click=address.seed, args=({}, (metric.KEY,)), width="stretch")
                    _compare(self.spec)
                recorder.button(self.spec, dataset_label(self.spec.dataset))
        with unseen if self._place is None else self._place:
            self._budget()
        address.remember_drawn([*run, _TYPED], self._keys)
        session.forget_options()
        return self.spec

    def show_run(self, budget: DeltaGenerator) -> None:
        """All controls of the run, for a page with a part that depends on it; the slider of ε stands in `budget`."""
        self._place, self._shows = budget, "run"

    def _budget(self) -> None:
        self._run["epsilon"].draw(help=None)  # its words stand on the scale; a help icon would be one more tab stop before it
        st.html(_scale(self.spec.epsilon))
        persons = fields.read_or_default(lambda: load_dataset(self.spec.dataset).person_rows, 0)
        if persons:
            st.caption(f"ε is for {privacy_unit(persons)}.")
        _paid(self.spec)


def _scale(epsilon: float) -> str:
    """The words below the slider: its ends, 0.1 and 1, each where it stands among the slider's steps."""
    steps = sorted({*EPSILONS, epsilon})
    named = {steps[0]: "<br>strong", 0.1: "", 1.0: "", steps[-1]: "<br>weak"}
    spans = (
        f'<span style="left:{100 * k / (len(steps) - 1):.1f}%">{words.three(step)}{named[step]}</span>'
        for k, step in enumerate(steps)
        if step in named
    )
    return f'<div aria-hidden="true" class="dpviz-scale">{"".join(spans)}</div>'


def _paid(spec: RunSpec) -> None:
    """A caption with the cost of preparations in a run, and a remark on what could not be seen; nothing where there are none."""

    def known() -> str:
        dataset = dataset_of(spec)
        paid = f" The method has {words.budget(resolve(spec).of_method)}." if dataset.preparations else ""
        return dataset.remarks[-1] + paid if paid or spec.prepared else ""

    if note := fields.read_or_default(known, ""):
        panels.note(note)


def _compare(spec: RunSpec) -> None:
    """Keeps the run as A; where there is one, its name, and the ways to swap and to drop it."""
    kept = pinned.PINNED.value()
    if kept is not None:
        panels.note(f"A is {words.title(kept)} on {dataset_label(kept.dataset)}.")
    pinned.controls(spec, width="stretch")


@dataclass(frozen=True, kw_only=True)
class _Datasets(DatasetName):
    """Datasets under the names that people call them."""

    def in_words(self, value: Any) -> str:
        return dataset_label(value)


def controls(state: Any) -> tuple[type[Mechanism] | None, dict[str, fields.RunField[Any]]]:
    """The mechanism that is chosen (None: automatic), and the controls of every run and its own, by their keys in the address.

    A mechanism that refuses the model is reported and replaced.
    """
    offered = _offered(state["model"])
    if state["mechanism"] not in offered:
        _refuse(state["mechanism"], state["model"], offered)
    mechanism, n = list_mechanisms().get(state["mechanism"]), _trained_on(state)
    below = f"Must lie below 1/n = {1 / n:.3g} ({n:,} training rows)"
    knobs = SETTINGS | {
        "dataset": _Datasets(
            label=SETTINGS["dataset"].label, help=SETTINGS["dataset"].help, options=(*short_list(), *session.held_uploads())
        ),
        "mechanism": MechanismName(label=SETTINGS["mechanism"].label, help="", options=tuple(offered)),
        "delta": replace(
            SETTINGS["delta"],
            help=f"{below}: a method that publishes one random row in clear already has δ = 1/n. The default is 1e-5, or the "
            "largest power of ten up to 1/(10 n).",
        ),
    }
    marks = {"epsilon": EPSILONS}
    run: dict[str, fields.RunField[Any]] = {
        name: fields.RunField(name, knob, getattr(RunSpec, name), marks=marks.get(name, ())) for name, knob in knobs.items()
    }
    if mechanism is not None:
        for name, knob in mechanism.knobs().items():
            key = f"{mechanism.id}.{name}"
            run[key] = fields.RunField(key, knob, mechanism.defaults()[name])
    for one in run.values():
        one.start()
    return mechanism, run


def read(run: Iterable[fields.RunField[Any]]) -> ResolvedRun:
    """The run that the controls stand for; what is wrong with them is reported."""
    problems: list[InvalidInput] = []
    texts = {one.key: one.text() for one in run}
    request = RunSpec.from_query({k: v for k, v in texts.items() if v.strip() or k != "delta"}, problems)
    resolved = resolve(request, problems)
    for problem in problems:
        if str(problem) not in map(str, address.problems()):
            address.report(problem)
    return resolved


def _of_mechanism(method: type[Mechanism] | None, run: dict[str, fields.RunField[Any]], spec: RunSpec) -> None:
    """Draws the hyperparameters of the method that the controls were made for, and the width of a network.

    The run's method may be another one by now: a script that is being stopped may still change it, and the next one draws it.
    """
    rules = _rules(spec)
    if method is not None and method.knobs():
        st.markdown(f"**{words.markdown(method.label)}**")
        for name in method.knobs():
            run[f"{method.id}.{name}"].draw(rule=rules.get(name, ()))
    model = get_model(spec.model)
    if model.width is not None:
        st.markdown("**Network**")
        address.set_widget(_UNITS, model.width)
        fields.control(_UNITS, _WIDTH, on_change=_units_typed)


def _settings(run: dict[str, fields.RunField[Any]], changes: Changes, heading: str, spec: RunSpec) -> None:
    """Draws the settings below a heading of the drawer: those that change the same."""
    names = [name for name in SETTINGS if SETTINGS[name].changes is changes and name not in _ABOVE]
    if names:
        st.markdown(f"**{heading}**")
    for name in names:
        more: dict[str, Any] = {}
        if name == "lam":
            by_rule = fields.read_or_default(lambda: resolve(replace(spec, lam=0.0)), None)
            more = {} if by_rule is None else {"rule": (f"{by_rule.lam:g}", f"n = {by_rule.n_train:,}")}
        if name == "delta":
            more = {"placeholder": f"{default_delta(_trained_on(st.session_state)):g} (default)"}
        run[name].draw(**more)
    if changes is Changes.NOISE:
        st.text_input("ε, exactly", key=_TYPED, placeholder="for example 0.37", on_change=_epsilon_typed)


def _trained_on(state: Any) -> int:
    """Training rows of the split that the controls ask for; what is wrong with it is reported by `read`."""
    try:
        cut = RunSpec(state["dataset"], folds=state["folds"], published_split=state["published_split"])
        return resolve(cut, []).n_train
    except InvalidInput:
        return train_size(rows_of(state["dataset"]))


def _published(dataset: str) -> bool:
    """True where a set has a test part of its publisher."""
    return fields.read_or_default(lambda: load_dataset(dataset).published_test is not None, False)


def _people_typed() -> None:
    name = st.session_state["dataset"].partition("-")[0]
    st.session_state["dataset"] = canonical_name(name, st.session_state[_PEOPLE])


def _units_typed() -> None:
    units = st.session_state[_UNITS]
    st.session_state["model"] = f"mlp-{units}" if units else "mlp"


def _rules(spec: RunSpec) -> dict[str, tuple[str, str]]:
    """For each knob with a rule of its own: what the rule gives for this run, in words, and for what n."""
    built = spec.build()
    knobs = {name: knob for name, knob in built.knobs().items() if knob.automatic}
    if not knobs:
        return {}

    def find() -> dict[str, tuple[str, str]]:
        run, dataset = resolve(spec), dataset_of(spec)
        of_rows = get_model(spec.model).setting(run.n_train, dataset.d, run.lam)
        setting = replace(of_rows, person_rows=dataset.person_rows, preparations=dataset.preparations)
        by_rule = replace(built, **{name: type(getattr(built, name))(0) for name in knobs})
        values = {name: knob.in_words(protection.knob_value(by_rule, name, setting, run.budget)) for name, knob in knobs.items()}
        return {name: (value, f"n = {run.n_train:,}") for name, value in values.items()}

    return fields.read_or_default(find, {})


def _offered(model: str) -> list[str]:
    setting = get_model(model).setting(1000, 1, 1e-3)
    return [AUTOMATIC, *(name for name, cls in list_mechanisms().items() if cls.refusal(setting) is None)]


def _refuse(mechanism: str, model: str, offered: list[str]) -> None:
    why = get_mechanism(mechanism).refusal(get_model(model).setting(1000, 1, 1e-3)) or "not available"
    st.session_state["mechanism"] = offered[0]
    address.report(InvalidInput("mechanism", why, "Another one was chosen; all that fit this model are in the list."))


def _dataset_there() -> None:
    """A file may have gone or changed since it was chosen; its rows are needed before anything else."""
    try:
        rows_of(st.session_state["dataset"])
    except InvalidInput as problem:
        st.session_state["dataset"] = RunSpec.dataset
        address.report(problem)


def dataset_label(name: str) -> str:
    """The name of a dataset for people."""
    if uploads.is_upload(name):
        return f"{uploads.get(name).title} (your upload)" if uploads.is_held(name) else "an upload that is gone"
    if own_rows.is_own(name):
        return "Your own rows"
    if name.startswith(FOLDER):
        return f"{name.removeprefix(FOLDER)} (data folder)"
    base, _, size = name.partition("-")
    if size.isdigit():
        return f"{base.capitalize()}, {int(size):,} people (synthetic)"
    return name.replace("-", " ").capitalize()


def _dataset_typed() -> None:
    try:
        name = canonical_name(st.session_state["dataset"])
        rows_of(name)
        st.session_state["dataset"] = name
        if st.session_state["published_split"]:  # of the set before
            st.session_state["published_split"] = _published(name)
    except InvalidInput as problem:
        st.session_state["dataset"] = address.previous_value("dataset", RunSpec.dataset)
        address.report_typed(problem)


def _epsilon_typed() -> None:
    text = str(st.session_state[_TYPED]).strip()
    if not text:
        return
    try:
        st.session_state["epsilon"] = check_epsilon(number_from_text("epsilon", text))
        st.session_state[_TYPED] = ""
    except InvalidInput as problem:
        address.report_typed(problem)
