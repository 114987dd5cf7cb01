"""The journeys of docs/journeys.md as they stand, and five commands from a table with ids and gaps to predictions."""

import random
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import mostly_long
from support_shell import Shell

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


N = 400


def churn(rng: np.random.Generator) -> pd.DataFrame:
    """An id of texts, several categories, blanks for gaps."""
    months = rng.integers(0, 72, N)
    total = pd.Series((months * rng.uniform(20, 120, N)).round(2).astype(str)).where(months > 0, " ")
    contract, pays = (
        rng.choice(["Month-to-month", "One year", "Two year"], N),
        rng.choice(["Mailed check", "Card (automatic)"], N),
    )
    ids = [f"{k:04}-{''.join(rng.choice(list('ABCDEF'), 5))}" for k in rng.permutation(N)]
    label = np.where(months < 30, "Yes", "No")
    return pd.DataFrame({"customerID": ids, "months": months, "Contract": contract, "Pays": pays, "Total": total, "Churn": label})


def visits(rng: np.random.Generator) -> pd.DataFrame:
    """Several rows of one patient, with ids for both."""
    days = rng.integers(0, 12, N)
    patient = [f"P{k:03}" for k in np.sort(rng.integers(0, 150, N))]
    frame = pd.DataFrame({"visit_id": [f"V{k:05}" for k in range(N)], "patient_id": patient, "age": rng.integers(20, 90, N)})
    return frame.assign(days=days, readmitted=np.where(days > 6, "yes", "no"))


def credit(rng: np.random.Generator) -> pd.DataFrame:
    """Nineteen columns, some constant, with question marks for gaps, and an id that is counted."""
    numbers = {f"n{k}": rng.integers(0, 50, N) for k in range(9)}
    texts = {f"t{k}": rng.choice(["a", "b", "?"], N, p=[0.6, 0.38, 0.02]) for k in range(6)}
    frame = pd.DataFrame({"ID": np.arange(N), **numbers, **texts, "same": 1, "also": "x"})
    return frame.assign(good=np.where(frame["n0"] > 24, "good", "bad"))


@pytest.mark.parametrize(
    ("table", "name", "write"),
    [
        (churn, "customerID", ["--write-toml", "--declare"]),
        (visits, "patient_id", ["--write-toml"]),
        (credit, "ID", ["--write-toml", "--declare"]),
    ],
)
def test_five_commands_and_none_is_refused(
    table: object, name: str, write: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    frame, new = (table(np.random.default_rng(seed)) for seed in (0, 1))  # type: ignore[operator]
    frame.to_csv("mine.csv", index=False)
    new.iloc[:, :-1].to_csv("new.csv", index=False)
    looked = shell(["show", "mine.csv", *write])
    assert f"{name} is not used" in looked
    assert "nothing" in shell(["ledger", "spent.toml", "--limit", "20", "--delta", "1e-5"])
    # options declare what the file proposes, whatever it says
    options = [] if "--declare" in write else ["--range", "age=18,100", "--range", "days=0,30"]
    shell(["release", "mine.csv", *options, "--epsilon", "8", "--ledger", "spent.toml", "--out", "model"])
    shell(["predict", "model", "new.csv", "--keep", name, "--out", "out.csv"])
    assert "nothing" not in shell(["ledger", "spent.toml"])
    found = pd.read_csv("out.csv", dtype=str)
    assert found[name].tolist() == new[name].astype(str).tolist()
    card = Path("model/card.md").read_text(encoding="utf-8")
    assert "Ranges and categories of the features were declared" in card
    right = found["prediction"] == new.iloc[:, -1].astype(str)
    assert right[found["prediction"].notna()].mean() > 0.6


def test_a_refusal_prints_the_line_that_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    monkeypatch.chdir(tmp_path)
    churn(np.random.default_rng(0)).rename(columns={"Pays": "pays=by"}).to_csv("mine.csv", index=False)
    release = ["release", "mine.csv", "--target", "Churn", "--positive", "Yes", "--epsilon", "8", "--out", "model"]
    shell(release, 2)
    line = shell.err.partition("round ranges: ")[2].partition(". Or find them")[0]
    shell([*release, *shlex.split(line)])
    assert "were declared" in Path("model/card.md").read_text(encoding="utf-8")
