"""The journeys of docs/journeys.md run as they stand, on small tables of the kind that each is about."""

import random
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import mostly_long

from dpviz.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "journeys.md").read_text(encoding="utf-8")
JOURNEYS = {title: block.splitlines() for title, block in re.findall(r"## ([^\n]+)\n\n```sh\n(.+?)\n```", PAGE, re.DOTALL)}


def people(rng: np.random.Generator) -> pd.DataFrame:
    age = rng.integers(17, 90, 4000)  # the release is drawn by the operating system: few rows would be wrong in one run of fifty
    return pd.DataFrame(
        {"age": age, "job": rng.choice(["clerk", "cook", "nurse"], 4000), "income": np.where(age > 45, ">50K", "<=50K")}
    )


def bank(rng: np.random.Generator) -> pd.DataFrame:
    """In the manner of a German bank's export: semicolons, decimal commas."""
    balance = rng.normal(0, 500, 400).round(2)
    text = [f"{value:.2f}".replace(".", ",") for value in balance]
    kind = rng.choice(["giro", "depot"], 400)
    return pd.DataFrame({"balance": text, "kind": kind, "churn": np.where(balance < 0, "yes", "no")})


def sensors(rng: np.random.Generator) -> pd.DataFrame:
    heat = rng.normal(60, 15, 2000)
    return pd.DataFrame({"heat": heat, "load": rng.uniform(0, 5, 2000), "fault": (heat > 60).astype(int)})


def clinic(rng: np.random.Generator) -> pd.DataFrame:
    glucose = rng.integers(50, 240, 400)
    ill = (glucose > 140).astype(int)
    return pd.DataFrame({"glucose": np.where(rng.random(400) < 0.1, 0, glucose), "age": rng.integers(0, 100, 400), "ill": ill})


TABLES = {made.__name__: made for made in (people, bank, sensors, clinic)}


def test_there_are_six_and_each_is_short() -> None:
    assert len(JOURNEYS) == 6
    for title, commands in JOURNEYS.items():
        assert len(commands) <= 5, title
        assert all(line.startswith("dpviz ") for line in commands), title


@pytest.mark.parametrize("title", mostly_long(JOURNEYS, "Ranges found privately", "Decisions in a file beside the table"))
def test_a_journey_ends_in_predictions_that_are_right(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = random.Random(0)  # the operating system's noise finds absurd ranges in one run of sixty
    monkeypatch.setattr(random, "SystemRandom", lambda: source)
    commands = JOURNEYS[title]
    (name,) = set(re.findall(r"(\w+)\.csv", "\n".join(commands))) - {"new", "predictions"}
    frame = TABLES[name](np.random.default_rng(0))
    target = frame.columns[-1]
    sign = ";" if name == "bank" else ","
    frame.to_csv(f"{name}.csv", index=False, sep=sign)
    new = TABLES[name](np.random.default_rng(1))
    new.drop(columns=target).to_csv("new.csv", index=False, sep=sign)
    for line in commands:
        capsys.readouterr()
        assert main(shlex.split(line)[1:]) == 0, (line, capsys.readouterr().err)
    out = tmp_path / "predictions.csv"
    if not out.exists():
        out.write_text(capsys.readouterr().out)
    found = pd.read_csv(out)["prediction"].astype(str)
    assert len(found) == len(new)
    assert (found == new[target].astype(str)).mean() > 0.7, "a label by chance is right half of the time"
