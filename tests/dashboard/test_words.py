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
from dpviz.privacy.budget import Budget, Status

CAL = dpviz.calibrate("dp-gd", n=1000, d=10, epsilon=1.0)
ACCURACY = np.array([0.82, 0.83, 0.81])


def test_headline_has_the_numbers() -> None:
    text = words.headline(1.0, ACCURACY, 0.829, 0.6, CAL).replace("\u00a0", " ")
    assert text == (
        "At ε = 1 the model is right 82.0 % of the time (± 1.0 over 3 noise draws), 0.9 points below no privacy and 22.0 points "
        "above always guessing the majority; an attacker who bets on one person wins 73.1 % at most."
    )


@pytest.mark.parametrize(
    ("change", "said", "not_said"),
    [
        ({"status": Status.CLAIM, "proved": None, "notes": ("why",)}, "no bound on an attacker's odds is proved", "at most"),
        ({"status": Status.NONE, "proved": None, "claimed": None}, "nothing limits", "at most"),
        ({"status": Status.PROVED_IF, "conditions": ("x",)}, "provided the stated conditions hold", "no bound"),
        ({"proved": Budget(3.0, 1e-5)}, "95.3", "73.1"),
    ],
)
def test_attacker_odds_follow_the_proof_and_never_a_claim(change: dict[str, object], said: str, not_said: str) -> None:
    text = words.headline(1.0, ACCURACY, 0.829, 0.6, dataclasses.replace(CAL, **change))  # type: ignore[arg-type]
    assert said in text
    assert not_said not in text


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
