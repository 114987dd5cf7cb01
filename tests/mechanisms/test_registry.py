"""Mechanisms and their knobs: found in folders and entry points, chosen, labelled; what a knob writes it reads back."""

import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_refused, assert_words

import dpviz
from dpviz.cli.main import main
from dpviz.mechanisms import Calibration, get_mechanism, registry
from dpviz.mechanisms.base import Mechanism
from dpviz.mechanisms.capabilities import CountsSteps
from dpviz.mechanisms.knobs import AUTOMATIC, Choice, Enter, Knob, Number, Pick, Switch, Whole, knob
from dpviz.mechanisms.registry import GROUP, automatic_mechanism
from dpviz.models import Rows, Setting, get_model
from dpviz.privacy.budget import Budget, Status

SOURCE = '''
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.mechanisms import Calibration, Fit, NoiseRecord, ProtectsQuery, Training, knob


@dataclass(frozen=True)
class Rounded(ProtectsQuery):
    """The minimiser, rounded."""

    id = "{id}"
    label = "Rounded minimiser"
    family = "output"
    citation = "nobody"
    noise_enters = "Nowhere."
    guarantee = "None."

    digits: int = knob(2, "Digits", "Digits that are kept.", low=0, high=10)

    def calibrate(self, setting, budget):
        return Calibration.unprotected(
            budget, query="the minimiser", sensitivity_source="none", noise_scale=0.0, accountant="none"
        )

    def fit(self, training):
        theta = training.problem.optimum.round(self.digits)
        shape = (len(training.calibrations), len(training.streams), len(theta))
        return Fit(np.broadcast_to(theta, shape).copy(), NoiseRecord("nowhere"))

    def query(self, problem, theta, streams):
        return problem.optimum[None].repeat(len(streams), axis=0)
'''


def install(folder: Path, source: str, target: str = "strange_methods.rounding:Rounded", name: str = "rounded") -> None:
    """A distribution as an installer would leave it: a package, and a dist-info folder with the entry point."""
    package = folder / "strange_methods"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "rounding.py").write_text(source)
    about = folder / "strange_methods-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-methods\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {target}\n")


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that sees the distribution."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})


@pytest.mark.long
def test_a_method_of_another_package_runs_without_an_edit_here(tmp_path: Path) -> None:
    install(tmp_path, SOURCE.replace("{id}", "rounded"))
    done = run(
        tmp_path,
        "import dpviz, json\n"
        "from dpviz.experiments.run.resolve import resolve\n"
        "spec = dpviz.RunSpec.from_query('?dataset=iris&mechanism=rounded&rounded.digits=1&seeds=2')\n"
        "result = dpviz.run(spec)\n"
        "print(json.dumps([list(dpviz.list_mechanisms()), spec.to_query(), result.theta.tolist(), resolve(spec).key()]))",
    )
    assert done.returncode == 0, done.stderr
    names, query, theta, key = json.loads(done.stdout)
    assert set(names) == {*dpviz.list_mechanisms(), "rounded"}
    assert query["rounded.digits"] == "1"
    assert all(value == round(value, 1) for row in theta for value in row)
    assert "rounded" in key


def test_two_mechanisms_with_one_id_are_an_error_that_names_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, SOURCE.replace("{id}", "dp-gd"))
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        said = str(assert_refused(registry._all.__wrapped__))
    for name in [name for name in sys.modules if name.startswith("strange_methods")]:
        del sys.modules[name]
    assert_words(
        said, "two mechanisms have the id 'dp-gd'", "dpviz.mechanisms.gradient.dp_gd.DPGD", "strange_methods.rounding.Rounded"
    )


@pytest.mark.parametrize(
    "target", ["unittest:TestCase", "dpviz.mechanisms.base:Mechanism", "dpviz.mechanisms.base:knob", "dpviz:list_mechanisms"]
)
def test_an_entry_point_names_a_mechanism_with_an_id(target: str) -> None:  # a TestCase has an id, and is none
    assert_refused(list, registry._of_entry_point(EntryPoint("strange", target, GROUP)), match="neither a mechanism nor a module")
    assert list(registry._of_entry_point(EntryPoint("fine", "dpviz.mechanisms.gradient.dp_gd:DPGD", GROUP))) == [
        get_mechanism("dp-gd")
    ]


BUDGET = Budget(1.0, 1e-5)
FACTS: dict[str, Any] = {"query": "q", "sensitivity_source": "s", "sensitivity": 1.0, "noise_scale": 2.0, "accountant": "a"}


def test_each_way_of_making_one_sets_its_own_label() -> None:
    proved = Calibration.proved(BUDGET, **FACTS)
    assert (proved.status, proved.proved_budget, proved.claimed_budget) == (Status.PROVED, BUDGET, BUDGET)
    other = Calibration.proved(BUDGET, **FACTS, proves=Budget(2.0), claims="nothing")
    assert (other.proved_budget, other.claimed_budget) == (Budget(2.0), None)
    conditional = proved.conditional("the minimiser is exact")
    assert (conditional.status, conditional.conditions) == (Status.PROVED_IF, ("the minimiser is exact",))
    with pytest.raises(ValueError, match="0 conditions"):
        proved.conditional()
    claimed = Calibration.claimed(BUDGET, **FACTS)
    assert (claimed.status, claimed.proved_budget, claimed.claimed_budget) == (Status.CLAIM, None, BUDGET)
    nothing = Calibration.unprotected(BUDGET, **FACTS)
    assert (nothing.status, nothing.proved_budget, nothing.claimed_budget) == (Status.NONE, None, None)
    for made in (proved, conditional, claimed, nothing):
        quiet = made.noiseless()
        assert (quiet.status, quiet.noise_scale, quiet.proved_budget, quiet.conditions) == (Status.NONE, 0.0, None, ())


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        ("proved", {"proved_budget": None}),
        ("proved", {"status": Status.CLAIM}),
        ("proved", {"status": Status.NONE}),
        ("proved", {"status": Status.PROVED_IF}),
        ("proved", {"conditions": ("if",)}),
        ("claimed", {"status": Status.PROVED}),
        ("claimed", {"proved_budget": BUDGET}),
        ("claimed", {"claimed_budget": None}),
        ("unprotected", {"claimed_budget": BUDGET}),
        ("unprotected", {"proved_budget": BUDGET}),
    ],
)
def test_a_label_that_does_not_fit_is_an_error(made: str, wrong: dict[str, Any]) -> None:
    calibration = getattr(Calibration, made)(BUDGET, **FACTS)
    with pytest.raises(ValueError, match="does not fit"):
        dataclasses.replace(calibration, **wrong)


def chosen(
    model: str = "logistic",
    n: int = 40_000,
    d: int = 100,
    epsilon: float = 1.0,
    knobs: tuple[str, ...] = (),
    k: int = 1,
    **more: int,
) -> str:
    return automatic_mechanism(replace(get_model(model).setting(n, d, 1e-4), **more), epsilon, knobs, k)[0]


@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_objective_perturbation_is_chosen_where_rows_are_many_for_the_features(model: str) -> None:
    assert chosen(model) == chosen(model, n=12_801) == chosen(model, n=66_511, k=3) == "objective-tight"
    assert chosen(model, n=12_799) == chosen(model, epsilon=0.3) == chosen(model, d=1600) == "dp-gd"
    assert chosen(model, person_rows=4) == chosen(model, n=66_510, k=3) == "dp-gd", "of persons or for models there are fewer"


def test_hyperparameters_and_models_restrict_the_choice() -> None:
    assert chosen(knobs=("steps",)) == chosen("mlp", n=10**7) == chosen("mlp-32", n=10**7) == "dp-gd"
    assert_refused(chosen, knobs=("flavour",), match="no method that is chosen automatically has flavour")


@pytest.mark.long
def test_a_search_takes_a_method_whose_releases_it_counts(tmp_path: Path) -> None:
    spec, typed = dpviz.RunSpec("breast-cancer", epsilon=50.0), "release --dataset breast-cancer --epsilon 50 --ranges-from-data"
    made = dpviz.private_search(spec, {"lam": [0.01]}, mean_runs=2.0, ranges_from_data=True)
    assert (dpviz.resolve(spec).spec.mechanism, made.spec.mechanism) == ("objective-tight", "dp-gd")
    assert main([*typed.split(), "--try", "clip_norm=0.5,1", "--mean-runs", "2", "--out", str(tmp_path / "model")]) in (0, None)


def test_a_classifier_names_the_method_that_it_chose() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (6000, 2))
    y, of_five = x[:, 0] > 0, np.digitize(x[:, 0], [-0.6, -0.2, 0.2, 0.6])
    found = [
        dpviz.PrivateClassifier(epsilon=epsilon, data_norm=1.5, random_state=0, **knobs).fit(x, labels).guarantee_.mechanism
        for epsilon, labels, knobs in ((0.1, y, {}), (3.0, y, {}), (3.0, y, {"steps": 5}), (3.0, of_five, {}))
    ]
    searched = dpviz.PrivateSearchCV(dpviz.PrivateClassifier(data_norm=1.5), {"lam": [0.01]}, epsilon=9.0, random_state=0)
    assert [*found, searched.fit(x, y).guarantee_.mechanism] == ["dp-gd", "objective-tight", "dp-gd", "dp-gd", "dp-gd"]


def test_commands_choose_and_a_link_keeps_its_method(capsys: pytest.CaptureFixture[str]) -> None:
    size = ["calibrate", "--n", "50000", "--d", "100", "--epsilon", "1", "--mechanism", "automatic"]
    for arguments, method in (
        (size, "objective-tight"),
        (["run", "--dataset", "breast-cancer", "--epsilon", "50", "--seeds", "2"], "objective-tight"),
        (["run", "?dataset=breast-cancer&epsilon=50&seeds=2"], "objective-tight"),
        (["run", "?dataset=breast-cancer&epsilon=50&seeds=2&v=1"], "dp-gd"),
        (["run", "?dataset=breast-cancer&epsilon=50&seeds=2&mechanism=dp-gd"], "dp-gd"),
        (["run", "--dataset", "breast-cancer", "--epsilon", "50", "--seeds", "2", "--set", "steps=5"], "dp-gd"),
    ):
        assert main(arguments) in (0, None)
        text = capsys.readouterr().out
        assert f"{method} on logistic" in text
        assert ("automatic: " in text) == ("v=1" not in str(arguments) and "mechanism=dp-gd" not in str(arguments))


def test_a_run_has_the_method_of_each_of_its_budgets() -> None:
    """A curve of the automatic method is made of the runs that it names."""
    spec = dpviz.RunSpec("breast-cancer", seeds=2)
    results = dpviz.run_epsilons(spec, [1.0, 100.0], instances=False)
    assert [r.spec.mechanism for r in results] == ["dp-gd", "objective-tight"]
    assert dpviz.resolve(spec).request == spec
    assert dpviz.resolve(spec).why.endswith("< 1,280")
    named = dpviz.run(dpviz.RunSpec("breast-cancer", mechanism="objective-tight", epsilon=100.0, seeds=2))
    swept = dpviz.sweep("breast-cancer", mechanisms=["automatic", "dp-gd"], epsilons=[1.0, 100.0], seeds=2)
    own = swept[(swept["mechanism"] == "automatic") & (swept["epsilon"] == 100.0)]
    assert own["accuracy"].to_numpy() == pytest.approx(named.accuracy)
    weighted = dpviz.resolve(dpviz.RunSpec("breast-cancer", class_weight=2.0)).spec.mechanism
    assert dpviz.list_mechanisms()[weighted].weighted


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
