"""The method that "automatic" stands for: a rule of public facts, which every surface names."""

from dataclasses import replace

import numpy as np
import pytest

import dpviz
from dpviz.cli.main import main
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms.registry import automatic_mechanism
from dpviz.models import get_model


def chosen(model: str = "logistic", n: int = 40_000, d: int = 100, epsilon: float = 1.0, **more: int) -> str:
    return automatic_mechanism(replace(get_model(model).setting(n, d, 1e-4), **more), epsilon)[0]


@pytest.mark.parametrize("model", ["logistic", "svm"])
def test_objective_perturbation_is_chosen_where_rows_are_many_for_the_features(model: str) -> None:
    assert chosen(model) == chosen(model, n=12_801) == "objective-tight"
    assert chosen(model, n=12_799) == chosen(model, epsilon=0.3) == chosen(model, d=1600) == "dp-gd"
    assert chosen(model, person_rows=4) == "dp-gd", "of persons there are fewer"


@pytest.mark.parametrize("model", ["mlp", "mlp-32"])
def test_networks_have_no_method_that_needs_convexity(model: str) -> None:
    assert chosen(model, n=10**7) == "dp-gd"


def test_hyperparameters_restrict_the_choice() -> None:
    setting = get_model("logistic").setting(40_000, 100, 1e-4)
    assert automatic_mechanism(setting, 1.0, ["steps"])[0] == "dp-gd"
    with pytest.raises(InvalidInput, match="no method that is chosen automatically has flavour"):
        automatic_mechanism(setting, 1.0, ["flavour"])


def test_a_classifier_names_the_method_that_it_chose() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (6000, 2))
    y = x[:, 0] > 0
    found = [dpviz.PrivateClassifier(epsilon=e, data_norm=1.5, random_state=0).fit(x, y).guarantee_.mechanism for e in (0.1, 3.0)]
    assert found == ["dp-gd", "objective-tight"]
    assert dpviz.PrivateClassifier(epsilon=3.0, data_norm=1.5, random_state=0, steps=5).fit(x, y).guarantee_.mechanism == "dp-gd"


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
