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
    assert chosen(model) == chosen(model, n=25_601) == "objective-tight"
    assert chosen(model, n=25_599) == chosen(model, epsilon=0.5) == chosen(model, d=400) == "dp-gd"
    assert chosen(model, person_rows=2) == "dp-gd", "of persons there are half as many"


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
        (["run", "?dataset=breast-cancer&epsilon=50&seeds=2"], "dp-gd"),
        (["run", "--dataset", "breast-cancer", "--epsilon", "50", "--seeds", "2", "--set", "steps=5"], "dp-gd"),
    ):
        assert main(arguments) in (0, None)
        text = capsys.readouterr().out
        assert f"{method} on logistic" in text
        assert ("by the rule" in text) == (method == "objective-tight")
