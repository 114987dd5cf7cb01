"""What pages keep in the address: every value that can be set is written so that it is read back."""

import ast
import dataclasses
import importlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest
from support import LIMIT, assert_refused, parse, walk
from support_pages import Page

from dpviz import dashboard
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.accounting import comparison as accounting
from dpviz.dashboard.audit import attack
from dpviz.dashboard.claims import views
from dpviz.dashboard.components.lessons import LESSONS
from dpviz.dashboard.data import settings as data
from dpviz.dashboard.frame import address, pinned, sidebar
from dpviz.dashboard.frame.fields import Field, RowId, Several
from dpviz.dashboard.groups import over_epsilon as groups
from dpviz.dashboard.guarantees import table as guarantees
from dpviz.dashboard.lessons import view as lessons
from dpviz.dashboard.one_run import views as one_run
from dpviz.dashboard.rows import selection
from dpviz.dashboard.sensitivity import settings as sensitivity
from dpviz.dashboard.story import settings as story
from dpviz.dashboard.trade_off import settings as trade_off
from dpviz.datasets import list_datasets
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.settings import LEAST_DELTA, SETTINGS, DatasetName, Delta, Folds, MechanismName, ModelName
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import list_mechanisms
from dpviz.mechanisms.knobs import Choice, Knob, Number, Switch, Whole
from dpviz.models import MODELS, get_model
from dpviz.papers.figures import catalogue

ROOT = Path(__file__).parents[2]
SPEC = RunSpec("teaching", mechanism="rsgd-ar", seeds=2)
Make = Callable[[RunSpec], Iterable[Field[Any]]]
#: page's folder -> (its fields for a run, the page)
PAGES: dict[str, tuple[Make, str]] = {
    "trade_off": (trade_off.fields_of, "2_Trade-off"),
    "sensitivity": (sensitivity.fields_of, "8_Sensitivity"),
    "rows": (selection.fields_of, "4_Person"),
    "accounting": (accounting.fields_of, "6_Accounting"),
    "audit": (attack.fields_of, "5_Audit"),
    "claims": (views.fields_of, "91_Claims"),
    "guarantees": (guarantees.fields_of, "7_Guarantees"),
    "lessons": (lessons.fields_of, "93_Lessons"),
    "groups": (groups.fields_of, "3_Groups"),
    "one_run": (one_run.fields_of, "1_One_model"),
    "story": (story.fields_of, "../app"),
    "data": (lambda spec: (data.FIRST,), "92_Data"),
}


def values(knob: Knob) -> st.SearchStrategy[Any]:
    """What a control can be set to."""
    match knob:
        case trade_off.Pair():
            return st.permutations(knob.options).map(lambda p: (p[0], p[1]))
        case Several():
            return st.sets(st.sampled_from(knob.options), min_size=1).map(
                lambda chosen: tuple(o for o in knob.options if o in chosen)
            )
        case lessons.Given():
            replies = {one.id: st.sampled_from(list(one.options)) if one.options else st.floats(-1e9, 1e9) for one in LESSONS}
            return st.fixed_dictionaries({}, optional=replies)
        case trade_off.OtherKnobs():
            return st.dictionaries(st.sampled_from(list(list_mechanisms())), st.just({}), max_size=4).flatmap(_params)
        case groups.Cuts():
            return st.sets(st.floats(-1e9, 1e9), max_size=5).map(lambda chosen: tuple(sorted(chosen)))
        case pinned.Kept():
            return st.sampled_from([None, SPEC, RunSpec("teaching", mechanism="dp-gd", epsilon=0.3)])
        case RowId():
            return st.sampled_from([int(i) for i in knob.ids]) if knob.ids is not None else st.integers(0, 10**9)
        case Folds():
            return st.just(0) | st.integers(2, int(knob.high))
        case Whole():
            return st.integers(int(knob.low), int(knob.high)) | (st.just(0) if knob.automatic else st.nothing())
        case Number():
            return st.floats(knob.low, knob.high) | (st.just(0.0) if knob.automatic else st.nothing())
        case DatasetName():
            return st.sampled_from([*list_datasets(), "census-1234"])
        case ModelName():
            return st.sampled_from([*MODELS, "mlp-7"])
        case MechanismName():
            return st.sampled_from(list(list_mechanisms()))
        case Delta():
            return st.none() | st.floats(LEAST_DELTA, 1, exclude_max=True)
        case Choice():
            return st.sampled_from(knob.options)
        case Switch():
            return st.booleans()
    raise TypeError(type(knob))


def _params(chosen: dict[str, Any]) -> st.SearchStrategy[Any]:
    known = list_mechanisms()
    return st.fixed_dictionaries(
        {
            name: st.fixed_dictionaries({}, optional={k: values(knob) for k, knob in known[name].knobs().items()})
            for name in chosen
        }
    )


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for module in ("frame.fields", "frame.address", "trade_off.settings"):
        streamlit = importlib.import_module(f"dpviz.dashboard.{module}").st
        monkeypatch.setattr(streamlit, "session_state", state)
    return state


@pytest.mark.parametrize("page", PAGES)
def test_every_value_is_read_back_from_the_address(page: str, session: dict[str, Any]) -> None:
    fields = tuple(PAGES[page][0](SPEC))
    assert fields
    assert not address.problems()

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        for field in fields:
            value = data.draw(values(field.knob), label=field.key)
            text = field.write(value)
            back = field.read(text)
            if isinstance(field.knob, trade_off.OtherKnobs):
                assert field.write(back) == text
            else:
                assert back == value
            assert (text == "") == (value == field.default or (field.key == "knobs" and not text))
            field.keep(value)
            assert field.value() == back
        assert not address.problems()

    check()


@pytest.mark.parametrize("page", PAGES)
def test_nonsense_is_reported_once_and_dropped(page: str, session: dict[str, Any]) -> None:
    for field in PAGES[page][0](SPEC):
        session[field.key] = "<nonsense>"
        assert field.value() == field.default
        assert [problem.field for problem in address.problems()] in ([field.knob.label], ["mechanism"])
        assert session[field.key] == ""
        address.st.session_state[address._PROBLEMS] = []
        assert_refused(field.read, "<nonsense>")


@pytest.mark.parametrize("mechanism", list_mechanisms())
def test_every_control_of_the_sidebar_is_a_field_whose_values_are_read_back(mechanism: str, session: dict[str, Any]) -> None:
    run = RunSpec("teaching", mechanism=mechanism)
    address.set_run(run)
    _, fields = sidebar.controls(session)
    assert set(fields) == {f.name for f in dataclasses.fields(RunSpec)} - {"params"} | {
        f"{mechanism}.{name}" for name in list_mechanisms()[mechanism].knobs()
    }
    assert all(field.key == key and field.value() == field.default for key, field in fields.items() if key != "mechanism")

    @settings(max_examples=10, deadline=None, derandomize=True)  # of every control of every method
    @given(st.data())
    def check(data: st.DataObject) -> None:
        for field in fields.values():
            value = data.draw(values(field.knob), label=field.key)
            assert field.read(field.write(value)) == value
            field.keep(value)
            assert field.value() == value

    check()
    for key, field in fields.items():
        with pytest.raises(InvalidInput):
            field.read("<nonsense>") if key != "dataset" else resolve(RunSpec(field.read("<nonsense>")))


def _of_mechanism(mechanism: str) -> st.SearchStrategy[RunSpec]:
    cls = list_mechanisms()[mechanism]
    parts = {name: values(knob) for name, knob in SETTINGS.items()} | {
        "dataset": st.sampled_from(["teaching", "iris"]),
        "model": values(SETTINGS["model"]).filter(lambda name: cls.refusal(get_model(name).setting(1000, 1, 1e-3)) is None),
        "mechanism": st.just(mechanism),
        "delta": st.none() | st.floats(1e-12, 1e-3),
        "folds": st.sampled_from([0, 2, 5]),
        "published_split": st.just(False),  # of sets that are not always there
        "class_weight": values(SETTINGS["class_weight"]) if cls.weighted else st.just(1.0),
        "params": st.fixed_dictionaries({}, optional={name: values(knob) for name, knob in cls.knobs().items()}),
    }
    runs = st.builds(RunSpec, **parts)

    def possible(run: RunSpec) -> RunSpec:
        """Networks take no weights, and teaching has no ranges."""
        weight = 1.0 if run.model.startswith("mlp") else run.class_weight
        return dataclasses.replace(run, class_weight=weight, ranges="declared" if run.dataset == "teaching" else run.ranges)

    return runs.map(possible)


#: any run that the sidebar can stand for, of datasets that are always there
RUNS = st.sampled_from(list(list_mechanisms())).flatmap(_of_mechanism)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(run=RUNS)
def test_the_sidebar_stands_for_the_run_of_the_address(run: RunSpec) -> None:
    """Every control that an address can hold is written, read and shown without losing a digit."""
    state: dict[str, Any] = {}
    assert resolve(RunSpec.from_query(run.to_query())).key() == resolve(run).key()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(address.st, "session_state", state)
        address.seed(run.to_query())
        assert not address.problems()
        _, fields = sidebar.controls(state)
        assert sidebar.read(fields.values()).spec.to_query() == run.to_query()
        assert not address.problems()


def test_all_keys_are_known_on_every_page() -> None:
    folders = {path.name for path in (ROOT / "dpviz" / "dashboard").iterdir() if (path / "__init__.py").exists()}
    with_keys = {name for name in folders if hasattr(importlib.import_module(f"dpviz.dashboard.{name}"), "KEYS")}
    assert with_keys - {"frame"} == set(PAGES)
    assert {key for name in with_keys for key in importlib.import_module(f"dpviz.dashboard.{name}").KEYS} == address.page_keys()


#: for each page, an address in which every key is away from its default
FULL = {
    "trade_off": {
        "methods": "dp-gd,cms-output",
        "knobs": "dp-gd.steps:7,cms-output.refined:true",
        "from": "0.3",
        "to": "3.0",
        "points": "2",
        "shown": "objective",
        "band": "mean",
        "want": "70.5",
        "odds": "true",
        "tune": "batch_size,epochs",
        "by": "optimality_gap",
        "figure": next(iter(catalogue.PANELS)),
    },
    "sensitivity": {
        "part": "rates",
        "algorithm": "nsgd",
        "over": "lam",
        "risk": "n",
        "sizes": "large",
        "table": "dbdp",
        "sort": "noise",
        "tn": "1234",
        "td": "17",
        "te": "0.7",
        "tdelta": "1e-07",
        "tt": "99",
        "tk": "5",
    },
    "rows": {"row": "0", "other": "1", "x": "x2", "y": "x1"},
    "accounting": {"compare": "dp-gd", "relation": "add-remove", "q": "0.05", "z": "2.5"},
    "audit": {"pair": "two-rows", "row": "0", "other": "1", "runs": "200"},
    "guarantees": {"order": "name"},
    "claims": {"about": "mechanism", "claim": "averaging-raises-accuracy", "thorough": "yes"},
    "lessons": {"lesson": "attack"},
    "data": {"upload": "true"},
    "groups": {"group": "x1", "cuts": "-0.5,0.5", "of": "recall", "threshold": "0.3", "why": "true"},
    "story": {"present": "1", "scene": "3", "who": "typical", "trainings": "4", "metric": "roc-auc"},
    "one_run": {"training": "1", "pinned": "dataset=teaching&epsilon=3.0", "metric": "roc-auc"},
}


@pytest.mark.parametrize("page", PAGES)
def test_an_address_that_the_app_wrote_is_accepted_on_every_page(page: str) -> None:
    full = FULL[page]
    asked = {"mechanism": "rsgd-ar", "seeds": "2"} | full  # of the default dataset, teaching
    test = Page(ROOT / "pages" / f"{PAGES[page][1]}.py", default_timeout=LIMIT)
    test.query_params.update(asked)
    test.run()
    assert not [w.value for w in test.warning if "address" in w.value or "default" in w.value or "ignored" in w.value]
    assert not address_problems(test)
    assert {k: v if isinstance(v, str) else v[0] for k, v in test.query_params.items()} == asked


def test_settings_of_other_pages_are_kept_for_them() -> None:
    asked = {key: value for full in FULL.values() for key, value in full.items()}
    page = Page(ROOT / "pages" / "92_Data.py", default_timeout=LIMIT)
    page.query_params.update(asked)
    page.run()
    assert not address_problems(page)
    assert {k: v if isinstance(v, str) else v[0] for k, v in page.query_params.items()} == asked


def address_problems(page: AppTest) -> list[str]:
    return [str(problem) for problem in page.session_state["dpviz.problems"]]


@pytest.mark.long
def test_only_fields_keep_settings_in_the_address() -> None:
    """A page that drew a widget under a key of the address itself would be a second idiom."""
    keys = address.page_keys() | {f"page.{key}" for key in address.page_keys()} | set(address.FIELDS)
    for path in (ROOT / "dpviz" / "dashboard").rglob("*.py"):
        for node in walk(parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                given = [k.value.value for k in node.keywords if k.arg == "key" and isinstance(k.value, ast.Constant)]
                assert not keys & set(given), path


def test_no_two_modules_keep_different_things_under_one_key_of_the_session() -> None:
    rooms = Path(dashboard.__file__).parent.rglob("*.py")
    keys = [key for path in rooms for key in re.findall(r'= "(dpviz\.[a-z_-]+)"', path.read_text(encoding="utf-8"))]
    assert len(keys) > 10
    assert sorted(set(keys)) == sorted(keys)
