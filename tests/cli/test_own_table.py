"""A table of one's own on the command line: with options or a file beside it, from a file or standard input, as in Python."""

from __future__ import annotations

import io
import json
import shlex
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.cli.main import main
from dpviz.reporting import python_call, shell_call

FLAGS = ["--target", "income", "--positive", ">50K", "--range", "age=17,90", "--categories", "job=a|b", "--fill", "job=a"]
RUN = ["--mechanism", "output-gaussian", "--seeds", "2"]
HOW = {"target": "income", "positive": ">50K", "drop": ["note"], "ranges": {"age": (17, 90)}, "categories": {"job": ["a", "b"]}}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    n = 80
    frame = pd.DataFrame({"age": rng.integers(17, 90, n), "job": rng.choice(["a", "b"], n), "note": rng.choice(["x", "y"], n)})
    frame.loc[3, "job"] = None
    frame["income"] = np.where(frame["age"] > 50, ">50K", "<=50K")
    frame.to_csv(tmp_path / "mine.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.csv"


@pytest.mark.reader_process
def test_a_run_says_what_the_table_lost(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "mine.csv", *FLAGS[:4], "--drop", "note", *RUN]) == 0
    said = capsys.readouterr().out
    assert "not trained on:" in said
    assert "note" in said.partition("not trained on:")[2], "the column that was dropped"
    assert "job" in said.partition("not trained on:")[2], "the row with a gap"


def test_the_encoding_of_a_table_can_be_said(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cyrillic = mine.read_text().replace("job", "труд")
    mine.write_bytes(cyrillic.encode("koi8_r"))
    chosen = ["run", "mine.csv", *FLAGS[:4], "--columns", "age,труд", *RUN, "--json"]
    assert main([*chosen, "--encoding", "koi8_r"]) == 0
    assert main([*chosen, "--encoding", "cp1251"]) == 2
    assert main([*chosen, "--encoding", "klingon"]) == 2
    assert "encoding" in capsys.readouterr().err
    mine.write_bytes(cyrillic.encode("utf-16-be"))
    assert main(chosen) == 0
    assert main([*chosen, "--encoding", "utf-16"]) == 0


def test_what_is_said_of_the_text_is_repeated_in_the_calls(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = mine.read_text().replace("job", "труд").replace(",", "|").splitlines()
    mine.write_bytes("\n".join(lines).encode("koi8_r"))
    rows = dpviz.dataset(mine, target="income", positive=">50K", encoding="koi8_r", header=True, delimiter="vertical bar")
    assert "труд=a" in rows.feature_names
    spec = dpviz.RunSpec(rows, mechanism="output-gaussian", seeds=2)
    scope: dict[str, object] = {}
    exec(python_call(spec), scope)
    assert scope["rows"].sha256 == rows.sha256  # type: ignore[attr-defined]
    assert "encoding='koi8_r'" in python_call(spec)
    call = shlex.split(shell_call(spec))[1:]
    assert {"--encoding=koi8_r", "--header=names", "--delimiter=vertical bar"} <= set(call)
    assert main([*call, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["dataset"] == rows.name
    mine.write_bytes("\n".join(lines[1:]).encode("koi8_r"))
    with pytest.raises(dpviz.InvalidInput, match="--header data"):
        dpviz.dataset(mine, target="income")
    assert dpviz.dataset(mine, encoding="koi8_r", header=False).feature_names[0] == "column 1"
    with pytest.raises(dpviz.InvalidInput, match="header"):
        dpviz.dataset(np.eye(20), np.arange(20) % 2, header=False)


def accuracy(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, list[float]]:
    assert main(["run", *arguments, *RUN, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["looked_at"] == []
    return found["run"]["dataset"], found["accuracy"]["draws"]


def test_every_way_gives_the_same_rows_and_numbers(
    mine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = accuracy(["mine.csv", *FLAGS, "--drop", "note"], capsys)
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(mine.read_bytes())))
    assert accuracy(["-", *FLAGS, "--drop", "note"], capsys) == expected
    rows = dpviz.dataset("mine.csv", missing="default", defaults={"job": "a"}, **HOW)
    assert rows.name == expected[0]
    result = dpviz.run(dpviz.RunSpec(rows, mechanism="output-gaussian", seeds=2))
    assert result.accuracy.tolist() == expected[1]
    table = dpviz.sweep(rows, mechanisms=["output-gaussian"], epsilons=[1.0], seeds=2)
    assert table["accuracy"].tolist() == expected[1]
    assert len(dpviz.influence_of(rows).norm) == result.setup.problem.n
    assert dpviz.audit_run(result.spec, "without", runs=40).runs == 40
    assert main(shlex.split(shell_call(result.spec))[1:]) == 0
    assert f"{result.accuracy.mean():.4f}" in capsys.readouterr().out
    exec(python_call(result.spec), again := {})
    assert again["result"].accuracy.tolist() == expected[1]
    Path("mine.toml").write_text(
        'target = "income"\npositive = [">50K"]\ndrop = ["note"]\nmissing = "default"\n'
        "[ranges]\nage = [17, 90]\n[categories]\njob = ['a', 'b']\n[defaults]\njob = 'a'\n"
    )
    assert accuracy(["mine.csv"], capsys) == expected


@pytest.mark.long
def test_a_sweep_of_ones_own_rows(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["mine.csv", *FLAGS, "--mechanisms", "output-gaussian", "--epsilons", "1", "--seeds", "2", "--no-cache", "--json"]
    assert main(["sweep", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["rows"]) == 2
    for command in ("influence", "audit --runs=40", "accounting", "groups", "guarantees", "calibrate"):
        assert main([*command.split(), "mine.csv", *FLAGS, *RUN, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["command"] == command.split()[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.csv"], "file"),
        (["mine.csv", "--target", "nothing"], "target"),
        (["mine.csv", *FLAGS, "--dataset", "teaching"], "--dataset"),
        (["mine.csv", "--range", "age"], "--range"),
        (["mine.csv", "--fill", "job"], "--fill"),
        (["--target", "income"], "--target"),
    ],
)
def test_bad_tables_are_one_line(mine: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert said in captured.err
