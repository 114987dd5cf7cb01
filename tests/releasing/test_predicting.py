"""`dpviz predict`: gaps block their own row only, options, texts that nothing obeys."""

import csv
import io
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import assert_refused, assert_words
from support_shell import Shell

import dpviz
from dpviz.cli.main import main
from dpviz.releasing import ReleasedModel, check_place


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a model and new rows: an id, and a gap in the second row of six."""
    monkeypatch.chdir(tmp_path)
    data = dpviz.load_dataset("census-100")
    dpviz.release(dpviz.RunSpec("census-100", mechanism="output-gaussian", lam=0.1)).save(tmp_path / "model")
    frame = data.frame.iloc[:6, :-1].assign(id=[f"p{k}" for k in range(6)])
    frame.to_csv("whole.csv", index=False)
    frame.loc[1, "age"] = np.nan
    frame.to_csv("new.csv", index=False)
    return tmp_path


def table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_a_gap_blocks_its_own_row_only(folder: Path, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "model", "new.csv", "--keep", "id", "--proba"]) == 0
    said = capsys.readouterr()
    lines = table(said.out)
    assert (lines[0][:2], lines[2]) == (["id", "prediction"], ["p1", "", "", ""])
    assert all(line[1] and abs(float(line[2]) + float(line[3]) - 1) < 1e-5 for k, line in enumerate(lines[1:]) if k != 1)
    assert_words(said.err, "1 of 6 rows have gaps and no prediction: age (1)", "--fill NAME=VALUE")
    whole = table(shell(["predict", "model", "whole.csv", "--keep", "id", "--proba"]))
    assert [line for k, line in enumerate(whole) if k != 2] == [line for k, line in enumerate(lines) if k != 2]


def test_a_gap_can_be_filled(folder: Path, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "model", "new.csv", "--fill", "age=40", "--out", "out.csv"]) == 0
    assert capsys.readouterr().err == ""
    assert all(line[0] for line in table(Path("out.csv").read_text()))
    model, frame = dpviz.load_model("model"), pd.read_csv("new.csv")
    filled = frame.assign(age=frame["age"].fillna(40.0))
    np.testing.assert_array_equal(model.scores(frame, fill={"age": 40.0}), model.scores(filled))
    for wrong in ("height=3", "age=old"):
        shell.refused(["predict", "model", "new.csv", "--fill", wrong])


def test_probabilities_are_those_of_the_model_and_a_label_has_none(folder: Path) -> None:
    model, frame = dpviz.load_model("model"), dpviz.load_dataset("census-100").frame
    scores = model.scores(frame)
    np.testing.assert_allclose(model.probabilities(scores)[:, 1], 1 / (1 + np.exp(-scores)))
    svm = dpviz.release(dpviz.RunSpec("census-100", model="svm", mechanism="output-gaussian", lam=0.1)).model
    assert_refused(svm.probabilities, svm.scores(frame), match="gives no probabilities")


@pytest.mark.parametrize(
    ("classes", "shown"),
    [
        (["=cmd|' /C calc'!A0", "@SUM(1)"], {"'=cmd|' /C calc'!A0", "'@SUM(1)"}),
        (["\x1b]0;owned\x07", "a\nb"], {"\\x1b]0;owned\\x07", "a\\nb"}),
        (["-", "+"], {"-", "+"}),
        (["-1", "+1.5e3"], {"-1", "+1.5e3"}),
        (["‮evil", " =1"], {"\\u202eevil", "' =1"}),
    ],
)
def test_classes_are_shown_so_that_nothing_obeys_them(classes: list[str], shown: set[str], folder: Path, shell: Shell) -> None:
    """The model's author chose these texts; they reach a terminal and a spreadsheet."""
    values = json.loads(Path("model/model.json").read_text())
    Path("model/model.json").write_text(json.dumps(values | {"classes": classes}))
    lines = table(shell(["predict", "model", "whole.csv", "--proba"]))
    assert {line[0] for line in lines[1:]} <= shown
    assert not any(sign in "".join(map("".join, lines)) for sign in "\x1b\x07\u202e")


def test_nothing_is_overwritten_and_places_are_checked_before_work(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(*_: object, **__: object) -> None:
        raise AssertionError("trained before the place was checked")

    monkeypatch.setattr("dpviz.releasing.training.train", trained)
    Path("mine").mkdir()
    Path("mine/card.md").write_text("a card of a person's own")
    Path("file").write_text("x")
    Path("closed").mkdir(mode=0o500)
    asked = ["release", "--dataset=census-100", "--mechanism=output-gaussian", "--out"]
    places = ["mine", "model", "file", "", " ", "no/such/folder", "a" * 300, *(["closed"] if os.geteuid() else [])]
    for place in places:
        said = shell.refused([*asked, place])
        assert said.startswith("dpviz: --out: ")
        assert said.count("\n") == 1
    assert Path("mine/card.md").read_text() == "a card of a person's own"
    assert main(["predict", "model", "new.csv", "--out", "file"]) == 2
    assert main(["predict", "model", "new.csv", "--out", ""]) == 2
    assert Path("file").read_text() == "x"
    assert main(["predict", "model", "new.csv", "--out", "file", "--overwrite"]) == 0
    assert "prediction" in Path("file").read_text()
    check_place(folder / "new")


def test_a_release_refuses_a_seed(folder: Path, shell: Shell) -> None:
    """An attacker who knows a seed subtracts the noise. That of a link belongs to the explorer and is left out."""
    assert "subtract the noise" in shell.refused(["release", "--dataset=census-100", "--seed=3", "--out=new"])
    assert_refused(dpviz.release, dpviz.RunSpec("census-100", mechanism="output-gaussian", seed=3), match="subtract its noise")
    link = "http://127.0.0.1:8501/?dataset=census-100&mechanism=output-gaussian&lam=0.1&seed=7&seeds=3"
    assert main(["release", link, "--out=new"]) == 0
    assert "seed" not in Path("new/model.json").read_text()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.json")
    for path in (tmp_path, tmp_path / "model.json", "/dev/zero"):
        assert_refused(dpviz.load_model, path, match="no file")


def test_own_files_load_again_whatever_their_columns(tmp_path: Path) -> None:
    """What the schema refuses must be nothing that a release writes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x" * 120: rng.normal(size=40), "constant": 1.0, "=odd": rng.choice(["a,b", "ü|", "="], 40), "y": [0, 1] * 20}
    )
    rows = dpviz.dataset(frame, target="y", ranges={"x" * 120: (-1e150, 1e150)})
    made = dpviz.release(dpviz.RunSpec(rows, mechanism="output-gaussian", lam=0.1), ranges_from_data=True)
    again = ReleasedModel.from_json(made.model.to_json())
    np.testing.assert_array_equal(again.scores(frame), made.model.scores(frame))


def test_kept_columns_stay_as_they_are_written_and_one_column_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    """An identifier joins predictions to other tables: 007 is not 7, and 12 is not 12.0."""
    monkeypatch.chdir(tmp_path)
    ages = np.random.default_rng(0).integers(18, 90, 60)
    rows = "".join(f"{age},{'yes' if age > 50 else 'no'}\n" for age in ages)
    Path("people.csv").write_text(f"age,label\n{rows}")
    assert main(["release", "people.csv", "--range", "age=18,90", "--out", "model"]) == 0
    Path("new.csv").write_text("id,code,age\n007,12,30\n1000000000000000001,13,40\n,14,200\n")
    capsys.readouterr()
    assert main(["predict", "model", "new.csv", "--keep", "id", "--keep", "code", "--keep", "age"]) == 0
    out, said = capsys.readouterr()
    expected = [["007", "12", "30"], ["1000000000000000001", "13", "40"], ["", "14", "200"]]
    assert [line.split(",")[:3] for line in out.splitlines()[1:]] == expected
    assert "1 value of age outside [18, 90] was clipped." in said
    Path("ages.csv").write_text("age\n30\n?\n70\n")
    assert len(shell(["predict", "model", "ages.csv"]).splitlines()) == 4
    Path("ages.csv").write_text("age\n30\n\n70\n")
    assert main(["predict", "model", "ages.csv"]) == 2, "a row that is left out moves all others"
    assert "blank line" in capsys.readouterr().err
    assert "one column only" in shell.refused(["run", "ages.csv"])
