"""The sidebar is the run. Every control follows from what the engine declares; no mechanism is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.common.validate import InvalidInput, number_from_text
from dpviz.dashboard.kit import recorder, words
from dpviz.dashboard.shell import address, fields, links, metric, pinned, session
from dpviz.dashboard.shell.fields import Group
from dpviz.datasets import canonical_name, list_datasets, load_dataset, rows_of
from dpviz.datasets.base import train_size
from dpviz.datasets.catalogue import cautions
from dpviz.datasets.sources import own as own_rows
from dpviz.datasets.sources import uploads
from dpviz.datasets.sources.folder import PREFIX as FOLDER
from dpviz.experiments.resolve import resolve
from dpviz.experiments.spec import SETTINGS, RunSpec, check_epsilon, text_of
from dpviz.mechanisms import Mechanism, get_mechanism, list_mechanisms
from dpviz.models import MODELS, MOST_UNITS, get_model
from dpviz.privacy.budget import Budget, default_delta

#: twenty steps per factor of ten: the preferred numbers R20 (ISO 3), with 3 for 3.15
_R20 = (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9)
EPSILONS = (*(float(f"{m}e{e}") for e in (-2, -1, 0) for m in _R20), 10.0)
LAMS = (*(float(f"{m}e{e}") for e in range(-6, 0) for m in (1, 2, 5)), 1.0)

_UNITS = "dpviz.units"  # the network's width; the address has it in the model's name

#: words below the slider, where the four marks stand on a logarithmic scale from 0.01 to 10
_SCALE = """<div aria-hidden="true" class="dpviz-scale">
<span style="left:0">0.01<br>strong</span><span style="left:33.3%">0.1</span>
<span style="left:66.7%">1</span><span style="left:100%">10<br>weak</span></div>"""


def sidebar(
    own: Group | None = None, budget: DeltaGenerator | None = None, *, measured: bool = False, keeps: bool = True
) -> RunSpec:
    """Draws the controls and returns the run they stand for; bad values are reported and replaced.

    Args:
        own: what the page keeps in the address beside the run.
        budget: where the slider of ε is drawn, beside the picture that it moves; in the sidebar by default.
        measured: whether the page speaks a metric, which `metric.chosen` then gives.
        keeps: whether the run can be kept for comparison here; the first page has these buttons beside the slider.
    """
    further = (metric.KEY, pinned.PINNED.key) if measured else (pinned.PINNED.key,)
    keys_of_page = tuple(dict.fromkeys((*(own.keys if own is not None else ()), *further)))
    state = st.session_state
    wanted = session.wanted()
    if wanted is not None:
        state["dataset"] = wanted
    address.arrive(keys_of_page)
    _dataset_there()
    with st.sidebar:
        pages = st.container(gap="xxsmall")
        _datasets(state["dataset"])
        about = st.container()
        models = [*MODELS, *([] if state["model"] in MODELS else [state["model"]])]
        st.selectbox("Model", models, key="model", format_func=lambda name: get_model(name).label)
        offered = _offered(state["model"])
        if state["mechanism"] not in offered:
            _refuse(state["mechanism"], state["model"], offered)
        st.selectbox("Mechanism", offered, key="mechanism", format_func=_mechanism_label)
        with budget or st.container():
            _slider("epsilon", EPSILONS, state["epsilon"])
            st.html(_SCALE)
        if measured:
            metric.draw(state["dataset"], state["intercept"])
        _slider("lam", LAMS, state["lam"])
        with st.expander("Advanced"):
            shown = _advanced(state)
        st.button("Back to the defaults", on_click=_reset, width="stretch")
    spec = read(state, shown)
    if own is not None:
        own.check(spec)
    pinned.PINNED.value()  # a bad one is reported before the address is written
    query = address.leave(spec, [*address.FIELDS, *shown, "epsilon_typed"], keys_of_page)
    with pages:
        links.links(query)
    for caution in cautions(spec.dataset):
        about.warning(words.markdown(caution), icon="⚠️")
    with st.sidebar:
        if keeps:
            _compare(spec)
        recorder.button(spec, dataset_label(spec.dataset))
    return spec


def _compare(spec: RunSpec) -> None:
    """Keeps the run as A; where there is one, its name, and the ways to swap and to drop it."""
    kept = pinned.PINNED.value()
    if kept is not None:
        st.caption(words.markdown(f"A is {pinned.title(kept)} on {dataset_label(kept.dataset)}."))
    pinned.controls(spec, width="stretch")


def _datasets(current: str) -> None:
    names = (*list_datasets(), *session.held())
    st.selectbox(
        "Dataset",
        [*names, *([] if current in names else [current])],
        key="dataset",
        format_func=dataset_label,
        accept_new_options=True,
        on_change=_dataset_typed,
        help="A name with a size works too: census-50000 makes a synthetic census of 50,000 people.",
    )


def read(state: Any, shown: Sequence[str]) -> RunSpec:
    """The run that the controls stand for; what is wrong with them is reported."""
    problems: list[InvalidInput] = []
    given = {k: text_of(k, state[k]) for k in address.FIELDS}
    own_knobs = get_mechanism(state["mechanism"]).knobs()
    given |= {k: own_knobs[k.partition(".")[2]].text(state[k]) for k in shown}
    found = RunSpec.from_query({k: v for k, v in given.items() if v.strip() or k != "delta"}, problems)
    spec = resolve(found, problems).spec
    for problem in problems:
        if str(problem) not in map(str, address.problems()):
            address.report(problem)
    return spec


def _slider(name: str, marks: Sequence[float], value: float) -> None:
    """A slider over marks with equal ratios; any other value has a place between them."""
    knob = SETTINGS[name]
    st.select_slider(knob.label, sorted({*marks, value}), key=name, format_func=knob.in_words, help=knob.help)


def _advanced(state: Any) -> list[str]:
    """Draws the drawer; returns the keys of the mechanism's own controls."""
    mechanism = get_mechanism(state["mechanism"])
    knobs = mechanism.knobs()
    if knobs:
        st.markdown(f"**{words.markdown(mechanism.label)}**")
    for name, default in mechanism.defaults().items():
        if f"{mechanism.id}.{name}" not in state:
            state[f"{mechanism.id}.{name}"] = default
    rules = _rules(mechanism, state)
    for name, knob in knobs.items():
        fields.control(f"{mechanism.id}.{name}", knob, rule=rules.get(name, ""))
    model = get_model(state["model"])
    if model.width is not None:
        st.markdown("**Network**")
        state[_UNITS] = model.width
        st.number_input(
            "Hidden units",
            0,
            MOST_UNITS,
            key=_UNITS,
            on_change=_units_typed,
            help="Width of the hidden layer; 0 takes as many units as the data has features.",
        )
    st.markdown("**Data**")
    for name in ("row_scaling", "intercept"):
        fields.control(name, SETTINGS[name])
    st.markdown("**Budget and noise**")
    n = train_size(rows_of(state["dataset"]))
    st.text_input(
        "Failure probability δ",
        key="delta",
        placeholder=f"{default_delta(n):g} (default)",
        help=f"Must lie below 1/n = {1 / n:.3g} ({n:,} training rows): a method that publishes one random row in clear already "
        f"has δ = 1/n. The default is 1e-5, or the largest power of ten up to 1/(10 n).",
    )
    st.text_input("ε, exactly", key="epsilon_typed", placeholder="for example 0.37", on_change=_epsilon_typed)
    for name in ("seeds", "seed", "split_seed", "folds"):
        fields.control(name, SETTINGS[name])
    return [f"{mechanism.id}.{name}" for name in knobs]


def _units_typed() -> None:
    units = st.session_state[_UNITS]
    st.session_state["model"] = f"mlp-{units}" if units else "mlp"


def _rules(mechanism: type[Mechanism], state: Any) -> dict[str, str]:
    """For each knob with a rule of its own: what the rule gives for this run, in words."""
    knobs = {name: knob for name, knob in mechanism.knobs().items() if knob.automatic}
    if not knobs:
        return {}
    try:
        dataset = load_dataset(state["dataset"], intercept=state["intercept"])
        built = mechanism.from_params({name: state[f"{mechanism.id}.{name}"] for name in mechanism.knobs()})
        n = train_size(dataset.n)
        setting = get_model(state["model"]).setting(n, dataset.d, state["lam"])
        budget = Budget(state["epsilon"], default_delta(n))
        values = {name: built.automatic(name, setting, budget) for name in knobs}
    except (InvalidInput, MemoryError):  # the page says what is wrong
        return {}
    return {name: f"automatic: {knob.in_words(knob.check(name, values[name]))} for n = {n:,}" for name, knob in knobs.items()}


def _offered(model: str) -> list[str]:
    setting = get_model(model).setting(1000, 1, 1e-3)
    return [name for name, cls in list_mechanisms().items() if cls.refusal(setting) is None]


def _refuse(mechanism: str, model: str, offered: list[str]) -> None:
    why = get_mechanism(mechanism).refusal(get_model(model).setting(1000, 1, 1e-3)) or "not available"
    st.session_state["mechanism"] = RunSpec.mechanism if RunSpec.mechanism in offered else offered[0]
    address.report(InvalidInput("mechanism", why, "Another one was chosen; all that fit this model are in the list."))


def _dataset_there() -> None:
    """A file may have gone or changed since it was chosen; its rows are needed before anything else."""
    try:
        rows_of(st.session_state["dataset"])
    except InvalidInput as problem:
        st.session_state["dataset"] = RunSpec.dataset
        address.report(problem)


def dataset_label(name: str) -> str:
    """What people call a dataset."""
    if uploads.is_upload(name):
        return f"{uploads.get(name).title} (your upload)" if uploads.there(name) else "an upload that is gone"
    if own_rows.is_own(name):
        return "Your own rows"
    if name.startswith(FOLDER):
        return f"{name.removeprefix(FOLDER)} (data folder)"
    base, _, size = name.partition("-")
    if size.isdigit():
        return f"{base.capitalize()}, {int(size):,} people (synthetic)"
    return name.replace("-", " ").capitalize()


def _mechanism_label(name: str) -> str:
    cls = list_mechanisms()[name]
    return f"{cls.label} · {cls.family}"


def _dataset_typed() -> None:
    try:
        name = canonical_name(st.session_state["dataset"])
        rows_of(name)
        st.session_state["dataset"] = name
    except InvalidInput as problem:
        st.session_state["dataset"] = address.before("dataset", RunSpec.dataset)
        address.report_typed(problem)


def _epsilon_typed() -> None:
    text = str(st.session_state["epsilon_typed"]).strip()
    if not text:
        return
    try:
        st.session_state["epsilon"] = check_epsilon(number_from_text("epsilon", text))
        st.session_state["epsilon_typed"] = ""
    except InvalidInput as problem:
        address.report_typed(problem)


def _reset() -> None:
    address.seed({}, (metric.KEY,))
