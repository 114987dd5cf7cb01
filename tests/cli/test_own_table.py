"""A table of one's own on the command line: with options or a file beside it, from a file or standard input, as in Python."""

import contextlib
import io
import json
import os
import re
import shlex
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import assert_refused, mostly_long
from support_shell import Shell

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


def test_the_encoding_of_a_table_can_be_said(mine: Path, shell: Shell) -> None:
    mine.write_bytes(mine.read_text().replace("job", "труд").encode("koi8_r"))
    chosen = ["run", "mine.csv", *FLAGS[:4], "--columns", "age,труд", *RUN]
    assert "труд" in shell([*chosen, "--encoding", "koi8_r"])
    for wrong in ("cp1251", "klingon"):
        shell.refused([*chosen, "--encoding", wrong])


def test_what_is_said_of_the_text_is_repeated_in_the_calls(mine: Path, shell: Shell) -> None:
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
    assert shell.json([*call])["run"]["dataset"] == rows.name
    mine.write_bytes("\n".join(lines[1:]).encode("koi8_r"))
    assert_refused(dpviz.dataset, mine, target="income", match="Say whether the first line")
    assert dpviz.dataset(mine, encoding="koi8_r", header=False).feature_names[0] == "column 1"
    assert_refused(dpviz.dataset, np.eye(20), np.arange(20) % 2, header=False, match="header")


def accuracy(arguments: list[str], shell: Shell) -> tuple[str, list[float]]:
    found = shell.json(["run", *arguments, *RUN])
    assert found["looked_at"] == []
    return found["run"]["dataset"], found["accuracy"]["draws"]


def test_every_way_gives_the_same_rows_and_numbers(mine: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = accuracy(["mine.csv", *FLAGS, "--drop", "note"], shell)
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(mine.read_bytes())))
    assert accuracy(["-", *FLAGS, "--drop", "note"], shell) == expected
    rows = dpviz.dataset("mine.csv", defaults={"job": "a"}, **HOW)
    assert rows.name == expected[0]
    result = dpviz.run(dpviz.RunSpec(rows, mechanism="output-gaussian", seeds=2))
    assert result.accuracy.tolist() == expected[1]
    table = dpviz.sweep(rows, mechanisms=["output-gaussian"], epsilons=[1.0], seeds=2)
    assert table["accuracy"].tolist() == expected[1]
    assert len(dpviz.influence_of(rows).norm) == result.setup.problem.n
    assert dpviz.audit_run(result.spec, "without", runs=40).runs == 40
    assert f"{result.accuracy.mean():.4f}" in shell(shlex.split(shell_call(result.spec))[1:])
    exec(python_call(result.spec), again := {})
    assert again["result"].accuracy.tolist() == expected[1]
    Path("mine.toml").write_text(
        'target = "income"\npositive = [">50K"]\ndrop = ["note"]\n'
        "[ranges]\nage = [17, 90]\n[categories]\njob = ['a', 'b']\n[defaults]\njob = 'a'\n"
    )
    assert accuracy(["mine.csv"], shell) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mine.csv", "--target", "nothing"], "target"),
        (["mine.csv", *FLAGS, "--dataset", "teaching"], "--dataset"),
        (["mine.csv", "--range", "age"], "--range"),
        (["mine.csv", "--fill", "job"], "--fill"),
        (["--target", "income"], "--target"),
    ],
)
def test_bad_tables_are_one_line(mine: Path, arguments: list[str], said: str, shell: Shell) -> None:
    assert said in shell.refused(["run", *arguments])


def test_the_first_line_says_that_a_file_beside_the_table_names_no_label(mine: Path, shell: Shell) -> None:
    Path("mine.toml").write_text("header = true\n")
    assert "mine.toml names no target" in shell(["calibrate", "mine.csv"]).partition("\n")[0]


COMMANDS = (
    "run, calibrate, calibrate --accountants, influence, audit --runs=40, groups, calibrate --methods, "
    "report --out=r.html --overwrite, show"
)


@pytest.mark.parametrize("command", mostly_long(COMMANDS.split(", "), "run", "show"))
def test_every_command_says_it_and_its_json_has_it(command: str, mine: Path, shell: Shell) -> None:
    arguments = [*command.split(), "mine.csv", *FLAGS, *([] if command == "show" else RUN)]
    assert shell(arguments).partition("\n")[0] == "label:             income; +1 is >50K, -1 is <=50K"
    found = shell.json([*arguments])
    assert found["label"] == {"column": "income", "positive": ">50K", "negative": "<=50K", "guessed": []}
    assert {"remarks", "notes"} <= set(found)


def test_the_decisions_are_written_once_and_give_the_same_rows(mine: Path, shell: Shell) -> None:
    before = dpviz.dataset("mine.csv", target="income", ranges={"age": (17, 90)}, drop=["note"])
    shown = ["show", "mine.csv", "--target=income", "--range=age=17,90", "--drop=note", "--write-toml"]
    assert "mine.csv.toml: every decision" in shell(shown)
    written = Path("mine.csv.toml").read_text()
    assert 'proposed = [\n    "job"' in written
    after = dpviz.dataset("mine.csv")
    assert after.sha256 == before.sha256
    assert after.looked_at == before.looked_at == ("job",), "what was read from the rows does not become public by being written"
    assert after.label.guessed == ()
    assert "is there already" in shell.refused(shown)
    assert Path("mine.csv.toml").read_text() == written


def test_gaps_of_one_column_and_a_round_range(mine: Path, shell: Shell) -> None:
    age = pd.read_csv(mine)["age"][0]
    flags = [*FLAGS[:2], "--missing=job=b", f"--missing=age={age}|0", "--round-range=age"]
    found = shell.json(["run", "mine.csv", *flags, *RUN])
    notes = {note.rpartition(" (")[0] for note in found["notes"]}
    assert {"'b' was read as a gap in job", f"'{age}' was read as a gap in age"} <= notes
    assert "age" in found["looked_at"]


#: names and values that a line of ours could be taken for something else by
ODD = ["-x", "a=b", "=", '"q"', "a,b", "a|b", "--json", "x=1,2", "?", "naïve", "it's", "$HOME", "<=30", ">30", "a b"]


@pytest.mark.parametrize("seed", range(8))
def test_lines_that_are_written_are_accepted(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(seed)
    number, kind, other, target = (str(name) for name in rng.choice(ODD, 4, replace=False))
    levels = [str(one) for one in rng.choice(ODD, 3, replace=False)]
    frame = pd.DataFrame(
        {
            number: rng.integers(0, 50, 60),
            kind: rng.choice(levels, 60),
            other: rng.integers(0, 9, 60),
            target: [levels[k % 2] for k in range(60)],
        }
    )
    file = str(rng.choice(["-t.csv", "?x.csv", "?a=b.csv", "t=1.csv", "t.csv"]))
    frame.to_csv(f"./{file}", index=False)
    how = {"ranges": {number: (0, 60)}, "categories": {kind: [*levels, "z"]}, "defaults": {kind: levels[0]}, "drop": [other]}
    how |= {"missing": {kind: [levels[2]], number: [0]}} if seed % 2 else {"missing": [levels[2], "-9"]}
    rows = dpviz.dataset(f"./{file}", target=target, positive=levels[1], **how)
    spec = dpviz.RunSpec(rows, mechanism="output-gaussian", seeds=2)
    arguments = shlex.split(shell_call(spec, "calibrate"))[1:]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([*arguments, "--json"]) == 0, arguments
    assert json.loads(out.getvalue())["dataset"] == rows.name
    exec(python_call(spec).replace("result = ", "spec = ").replace("dpviz.run(", "(").rpartition("\n")[0], scope := {})
    assert scope["rows"].name == rows.name  # type: ignore[attr-defined]


def test_a_name_in_two_ways_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": range(40), "a=0": range(40), "y": [k % 2 for k in range(40)]}).to_csv("t.csv", index=False)
    assert "may name the column 'a' or 'a=0'" in shell.refused(["calibrate", "t.csv", "--range", "a=0=0,9"])
    assert main(["calibrate", "t.csv", "--range", '"a=0"=0,9']) == 0
    assert "Choose one of: a, a=0, y" in shell.refused(["calibrate", "t.csv", "--range", "b=0,9"])


@pytest.mark.parametrize("name", ["?x.csv", "?x=1.csv", "http://[x"])
def test_a_name_is_never_taken_for_a_link_that_says_nothing(name: str, mine: Path, shell: Shell) -> None:
    shell.refused(["calibrate", name])


@pytest.mark.parametrize(
    ("file", "said"), [("/dev/zero", "a pipe or a device"), (".", "a folder, not a file"), ("none.csv", "is not there")]
)
def test_what_is_no_file_is_named(file: str, said: str, shell: Shell) -> None:
    for command in (["run", file], ["show", f"./{file}" if file == "none.csv" else file]):
        assert said in shell.refused(command)


def test_endless_standard_input_ends_in_words(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    monkeypatch.setenv("DPVIZ_MAX_MEGABYTES", "1")

    class Endless(io.RawIOBase):
        read_so_far = 0

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            assert size >= 0, "read without a bound"
            self.read_so_far += size
            return b"1,2,yes\n" * (size // 8 + 1)

    endless = Endless()
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=endless))
    assert "is more than 1.0 MB large" in shell.refused(["run", "-"])
    assert endless.read_so_far < 2_000_000


def test_a_release_takes_no_proposed_range_for_a_public_one(mine: Path, shell: Shell) -> None:
    flags = [*FLAGS[:4], "--drop=note", "--categories=job=a|b", "--fill=job=a", "--mechanism=output-gaussian"]
    shell(["release", "mine.csv", *flags, "--round-range=age", "--out=model"], 2)
    assert "of age were read" in shell.err
    assert not Path("model").exists()
    assert main(["release", "mine.csv", *flags, "--range=age=17,90", "--out=model"]) == 0


ROWS = [(f"{17 + k % 60}", f"{k % 7},5", "é" if k % 3 else "ü", "ja" if k % 2 else "nein") for k in range(90)]


def _workbook(path: Path) -> None:
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.append(["a remark"])
    sheet = book.create_sheet("people")
    sheet.append(["age", "hours", "letter", "y"])
    for age, hours, *others in ROWS:
        sheet.append([int(age), float(hours.replace(",", ".")), *others])
    book.save(path)


@pytest.mark.parametrize(
    ("kind", "flags", "expected"),
    [
        ("utf-8;", [], {"encoding": "utf-8", "delimiter": "semicolon", "header": True}),
        ("cp1252\t", [], {"encoding": "cp1252", "delimiter": "tab", "header": True}),
        ("utf-16;", [], {"encoding": "utf-16", "delimiter": "semicolon", "header": True}),
        ("utf-32;", [], {"delimiter": "semicolon", "header": True}),
        ("utf-8; bare", ["--header=data"], {"encoding": "utf-8", "delimiter": "semicolon", "header": False}),
        ("utf-8; second", ["--header=second"], {"encoding": "utf-8", "delimiter": "semicolon", "header": 2}),
        ("workbook", ["--sheet=people"], {"sheet": "people", "header": True}),
    ],
)
def test_what_was_found_about_the_file_is_written_too(
    kind: str, flags: list[str], expected: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "t.xlsx" if kind == "workbook" else "t.csv"
    if kind == "workbook":
        _workbook(tmp_path / name)
    else:
        lines = [*ROWS] if "bare" in kind else [("age", "hours", "letter", "y"), *ROWS]
        if "second" in kind:
            lines = [("X1", "X2", "X3", "X4"), *lines]
        sign = "\t" if "\t" in kind else ";"
        (tmp_path / name).write_bytes("".join(sign.join(row) + "\n" for row in lines).encode(kind.split(";")[0].strip()))
    target = f"--target={'column 4' if 'bare' in kind else 'y'}"
    before = _kinds(shell.json(["show", name, target, *flags]))
    shell(["show", name, target, *flags, "--write-toml"])
    written = tomllib.loads((tmp_path / f"{name}.toml").read_text())
    assert {key: written[key] for key in ("encoding", "delimiter", "header", "sheet") if key in written} == expected
    after = shell.json(["show", name])
    assert _kinds(after) == before
    assert after["label"]["guessed"] == []
    if "encoding" in expected:  # the control: what the file says is what is done
        other = (tmp_path / f"{name}.toml").read_text().replace(f'"{expected["encoding"]}"', '"koi8_r"')
        (tmp_path / f"{name}.toml").write_text(other)
        assert main(["show", name, "--json"]) == 2 or "90 values of" in shell(["show", name, "--json"])


def _kinds(said: dict[str, Any]) -> list[tuple[str, ...]]:
    """Columns without the ranges of numbers, which are written as round ones."""
    return [(one["column"], one["kind"], "" if one["kind"] == "number" else one["values"]) for one in said["columns"]]


@pytest.mark.skipif(os.name != "posix", reason="no such files there")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "broken link"])
def test_a_toml_file_that_is_none_is_said_and_not_passed_over(kind: str, mine: Path, shell: Shell) -> None:
    beside = Path("mine.csv.toml")
    makes = {"pipe": lambda: os.mkfifo(beside), "folder": beside.mkdir}
    makes.get(kind, lambda: beside.symlink_to("/dev/zero" if kind == "device" else "nowhere"))()
    assert re.search(r"mine.csv.toml: .*(not a file|cannot be read)", shell.refused(["show", "mine.csv"]))


@pytest.mark.parametrize("flag", ["--categories=job=a|\udcff", "--missing=\udcff", "--fill=job=\udcff", "--positive=\udcff"])
def test_bytes_that_are_no_text_are_one_line(flag: str, mine: Path, shell: Shell) -> None:
    """Python hands over such bytes of a shell as lone surrogates."""
    for command in (["run", "mine.csv"], ["release", "mine.csv", "--ranges-from-data", "--out", "model"]):
        assert "'\\udcff'" in shell.refused([*command, flag])


def test_a_closed_standard_input_is_one_line(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in shell.refused(["run", "-"])
