"""Sentences, calls and downloads: pure functions of the dashboard."""

from __future__ import annotations

import dataclasses
import io
import shlex

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.cli.main import main
from dpviz.dashboard.kit import repeat, words
from dpviz.dashboard.kit.tables import csv
from dpviz.experiments.cost import Cost
from dpviz.mechanisms.attack import strongest_attack
from dpviz.models import get_model
from dpviz.privacy.budget import Status

CAL = dpviz.calibrate("dp-gd", n=1000, d=10, epsilon=1.0)
ACCURACY = np.array([0.82, 0.83, 0.81])


COST = Cost(ACCURACY, np.array([0.825, 0.825, 0.825]), 0.829, None)
ATTACK = strongest_attack(dpviz.list_mechanisms()["dp-gd"](), get_model("logistic").setting(1000, 10, 1e-3), CAL)


def test_headline_has_the_numbers_in_twenty_words() -> None:
    text = words.headline(1.0, COST, CAL, ATTACK)
    assert text.replace("\u00a0", " ") == (
        "At ε = 1 the model is right 82.0 % of the time: noise costs 0.5 points, training 0.4; attacks succeed at most 55.3 %."
    )
    assert len(text.replace(" = ", "=").replace("\u00a0", "").split()) <= 20


@pytest.mark.parametrize(("points", "text"), [(0.023, "2.3"), (0.0004, "nothing"), (-0.0004, "nothing"), (-0.004, "−0.4")])
def test_parts_of_a_cost(points: float, text: str) -> None:
    assert words.part(points) == text


def test_an_attack_is_limited_by_proof_and_never_by_a_claim() -> None:
    claim = dataclasses.replace(CAL, status=Status.CLAIM, proved_budget=None, conditions=())
    nothing = dataclasses.replace(CAL, status=Status.NONE, proved_budget=None, claimed_budget=None)
    assert "no limit on attacks is proved" in words.headline(1.0, COST, claim, None)
    assert "nothing limits attacks" in words.headline(1.0, COST, nothing, None)
    assert all("at most" not in words.headline(1.0, COST, cal, None) for cal in (claim, nothing))


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (0.12345, "0.123"), (1e-5, "1e−5"), (1234.0, "1,230"), (-5.432, "−5.43"), (float("nan"), "none")],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert words.three(value) == text


SPECS = [
    dpviz.RunSpec(dataset="teaching", epsilon=0.37),
    dpviz.RunSpec(dataset="iris", mechanism="dp-gd", params={"steps": 7, "noise": "published"}, intercept=False, lam=0.01),
    dpviz.RunSpec(dataset="census-500", model="svm", mechanism="cms-output", delta=1e-4, seeds=3, seed=5, split_seed=2),
]


@pytest.mark.parametrize("spec", SPECS)
def test_the_python_call_repeats_the_run(spec: dpviz.RunSpec) -> None:
    scope: dict[str, object] = {}
    exec(repeat.python_call(spec).rsplit("\n", 1)[0], scope)
    assert dpviz.resolve(scope["result"].spec).key() == dpviz.resolve(spec).key()  # type: ignore[attr-defined]


@pytest.mark.parametrize("spec", SPECS)
def test_the_shell_call_repeats_the_run(spec: dpviz.RunSpec, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(repeat.shell_call(spec))[1:]) == 0
    assert f"{dpviz.run(spec).accuracy.mean():.4f}" in capsys.readouterr().out


def test_markdown_from_outside_is_harmless() -> None:
    text = words.markdown("![x](http://evil) <b> :red[a] $x$ `c`\n# h")
    for sign in "![]()<>$`:#":
        assert text.count(sign) == text.count("\\" + sign)
    assert "\n" not in text


def test_downloads_hold_no_formulas() -> None:
    hostile = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "fine", "a=b"]
    table = pd.DataFrame({"=name": hostile, "n": [-1.5] * 8, "c": pd.Categorical(hostile)})
    back = pd.read_csv(io.BytesIO(csv(table)))
    assert list(back.columns) == ["'=name", "n", "c"]
    for column in ("'=name", "c"):
        assert [v[0] == "'" for v in back[column]] == [True] * 6 + [False] * 2
    assert (back["n"] == -1.5).all()
