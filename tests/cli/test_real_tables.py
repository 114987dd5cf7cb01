"""From a table with ids, gaps and many columns to predictions in five commands, none of them refused."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support_shell import Shell

from dpviz.cli.main import main

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
    shell(["ledger", "spent.toml", "--limit", "20", "--delta", "1e-5"])
    # options declare what the file proposes, whatever it says
    options = [] if "--declare" in write else ["--range", "age=18,100", "--range", "days=0,30"]
    shell(["release", "mine.csv", *options, "--epsilon", "8", "--ledger", "spent.toml", "--out", "model"])
    shell(["predict", "model", "new.csv", "--keep", name, "--out", "out.csv"])
    assert "spent" in shell(["ledger", "spent.toml"])
    found = pd.read_csv("out.csv", dtype=str)
    assert found[name].tolist() == new[name].astype(str).tolist()
    card = Path("model/card.md").read_text(encoding="utf-8")
    assert "Ranges and categories of the features were declared" in card
    right = found["prediction"] == new.iloc[:, -1].astype(str)
    assert right[found["prediction"].notna()].mean() > 0.6


def test_a_refusal_prints_the_line_that_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    churn(np.random.default_rng(0)).rename(columns={"Pays": "pays=by"}).to_csv("mine.csv", index=False)
    release = ["release", "mine.csv", "--target", "Churn", "--positive", "Yes", "--epsilon", "8", "--out", "model"]
    assert main(release) == 2
    line = capsys.readouterr().err.partition("round ranges: ")[2].partition(". Or find them")[0]
    shell([*release, *shlex.split(line)])
    assert "were declared" in Path("model/card.md").read_text(encoding="utf-8")
