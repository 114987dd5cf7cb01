"""Knobs: what one writes it reads back; values that no proof or formula covers are refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_refused

import dpviz
from dpviz.mechanisms.base import Mechanism
from dpviz.mechanisms.capabilities import CountsSteps
from dpviz.mechanisms.knobs import AUTOMATIC, Choice, Enter, Knob, Number, Pick, Switch, Whole, knob
from dpviz.models import Rows, Setting, get_model
from dpviz.privacy.budget import Budget

KINDS: list[tuple[Knob, st.SearchStrategy[Any]]] = [
    (Number(label="a", help="b", low=1e-6, high=1e6, log=True), st.floats(1e-6, 1e6)),
    (Number(label="a", help="b", low=-1.0, high=1.0), st.floats(-1.0, 1.0)),
    (Number(label="a", help="b", low=0.5, high=9.0, automatic="n"), st.floats(0.5, 9.0) | st.just(0.0)),
    (Whole(label="a", help="b", low=1, high=2**40, log=True), st.integers(1, 2**40)),
    (Whole(label="a", help="b", low=1, high=100, automatic="n"), st.integers(0, 100)),
    (Choice(label="a", help="b", options=("x", "y", "published")), st.sampled_from(("x", "y", "published"))),
    (Switch(label="a", help="b"), st.booleans()),
]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=lambda v: type(v).__name__ if isinstance(v, Knob) else "")
def test_what_a_knob_writes_it_reads_back(kind: Knob, values: st.SearchStrategy[Any]) -> None:
    @settings(max_examples=60)
    @given(values)
    def check(value: Any) -> None:
        assert kind.check("k", value) == value
        assert kind.parse("k", kind.text(value)) == value
        assert type(kind.parse("k", kind.text(value))) is type(value)
        tried = kind.candidates(value, 7)
        assert value in tried
        assert all(kind.check("k", v) == v for v in tried)
        assert kind.in_words(value)
        if kind.has_curve and value:
            grid = kind.curve(value)
            assert (np.diff(grid) > 0).all()
        match kind.form(value):
            case Enter(low, high, step, _, optional):
                assert low < high
                assert step > 0
                assert optional or low <= value <= high
            case Pick(options):
                assert value in options

    check()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (KINDS[0][0], "nan"),
        (KINDS[0][0], "0"),
        (KINDS[0][0], AUTOMATIC),
        (KINDS[3][0], "1.5"),
        (KINDS[3][0], "１"),
        (KINDS[5][0], "z"),
        (KINDS[6][0], "yes"),
    ],
)
def test_bad_text_is_refused_by_name(kind: Knob, text: str) -> None:
    assert_refused(kind.parse, "steps", text, match=r"^steps: ")
    assert_refused(kind.check, "steps", (text,), match=r"^steps: ")


def test_a_family_is_one_of_those_that_have_a_folder() -> None:
    with pytest.raises(TypeError, match="family"):
        type("Strange", (Mechanism,), {"family": "strange"})


def test_who_counts_steps_has_a_number_of_them() -> None:
    with pytest.raises(TypeError, match="declare a knob `steps`"):
        type("Endless", (CountsSteps,), {"id": "endless"})
    with pytest.raises(TypeError, match="declare a knob `steps`"):
        type("Plain", (CountsSteps,), {"id": "plain", "steps": 3})
    type("Given", (CountsSteps,), {"id": "given", "steps": knob(3, "Steps", "Number of steps.", low=1, high=9)})
    type("Counted", (CountsSteps,), {"id": "counted", "step_count": lambda self, setting: 3})


@pytest.mark.parametrize(("name", "there"), [("dp-gd", "step_size"), ("non-private", "has no parameters")])
def test_an_unknown_parameter_is_named_with_those_that_there_are(name: str, there: str) -> None:
    build = dpviz.list_mechanisms()[name].from_params
    assert there in str(assert_refused(build, {"steps_size": 1.0}, match=r"params\['steps_size'\]"))


LONG = {"batch_size": 1, "epochs": 1000, "step_size": 10.0}


def linear(n: int, model: str = "logistic") -> Setting:
    return get_model(model).setting(n, 5, 1e-3 if n > 50 else 0.1)


#: mechanism, hyperparameters, setting, budget, and the words in which it is refused
UNCOVERED: list[tuple[str, dict[str, Any], Setting, Budget, str]] = [
    ("ldp-duchi", {"release": "gradient", "batches": 41}, linear(40), Budget(1.0), "batches"),
    ("dp-svrg", {"rounds": 1000, "inner_steps": 100_000}, linear(1000), Budget(1.0, 1e-5), "inner_steps"),
    ("dp-svrg", {"relation": "add-remove"}, linear(500), Budget(1e-3, 1e-12), "order"),
    ("dp-svrg", {"relation": "replace-one"}, linear(500), Budget(1e-3, 1e-12), "order"),
    ("bassily-sgd", {"mode": "faithful"}, linear(1001), Budget(1.0, 1e-5), "1,002,001 steps"),
    ("bassily-sgd", {"mode": "faithful", "relation": "add-remove"}, linear(50), Budget(1.0, 1e-5), "relation"),
    ("bolt-on-psgd", {"rule": "sc-constant", "bound": "published"}, linear(40, "svm"), Budget(1.0, 1e-5), "step_size"),
    *((name, LONG, linear(2000), Budget(1.0, 1e-5), "step_size") for name in ("nsgd", "rsgd", "rsgd-ar")),
    *((name, {}, linear(40), Budget(1.0), "delta") for name in ("input-perturbation", "dbdp")),
]


@pytest.mark.parametrize(("name", "params", "setting", "budget", "words"), UNCOVERED)
def test_what_no_proof_or_formula_covers_is_refused(
    name: str, params: dict[str, Any], setting: Setting, budget: Budget, words: str
) -> None:
    assert_refused(dpviz.list_mechanisms()[name].from_params(params).calibrate, setting, budget, match=words)


@pytest.mark.parametrize("weight", [1.1, np.nan])
def test_weights_above_one_make_no_rows(weight: float) -> None:
    with pytest.raises(ValueError, match="weights"):
        Rows(np.zeros((2, 1)), np.ones(2), weights=np.array([1.0, weight]))
