"""What leaves the program (docs/threats.md): one row is replaced at fixed randomness, and bytes that must stay are compared."""

import hashlib
import json
import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from support import LIMIT

import dpviz
from dpviz import PrivateClassifier
from dpviz.cli import answers
from dpviz.cli.main import main
from dpviz.datasets.sources import own
from dpviz.experiments.run.resolve import ResolvedRun
from dpviz.experiments.run.setup import calibration_of
from dpviz.releasing import card, training
from dpviz.reporting import words

Sequence_ = np.random.SeedSequence
NAME = re.compile(r"rows-[0-9a-f]{16}")
DECLARED = ["--target=y", "--positive=yes", "--range=age=18,90", "--range=income=0,100", "--categories=job=a|b|c"]
METHODS = {
    "output-gaussian": [],
    "cms-output": [],
    "objective-tight": [],
    "dp-gd": ["--set=steps=3"],
    "ldp-gaussian": [],
    "majority": ["--set=private=true"],
}


def table(moved: bool, kind: str = "plain") -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n).astype(float),
            "income": rng.integers(10, 90, n).astype(float),
            "job": rng.choice(["a", "b", "c"], n),
            "note": rng.integers(0, 9, n).astype(float),  # a column that no model uses
            "y": np.where(np.arange(n) % 3 == 0, "yes", "no"),
        }
    )
    if kind == "rare":  # 3 rows of the class +1, or 2
        frame["y"] = np.where(np.isin(np.arange(n), (5, 17, 40)), "yes", "no")
    if kind == "repeats":
        frame.loc[17] = frame.loc[16]
    if moved:
        frame.loc[17] = [89.0, 99.0, "c", 3.0, "no" if kind == "rare" else "yes"]
    return frame


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A folder with mine.csv, the same name for both neighbours, which becomes the current one; all randomness is fixed."""

    def at(moved: bool, kind: str = "plain") -> Path:
        folder = tmp_path / f"{moved} {kind}"
        folder.mkdir(exist_ok=True)
        table(moved, kind).to_csv(folder / "mine.csv", index=False)
        monkeypatch.chdir(folder)
        monkeypatch.setattr(random, "SystemRandom", lambda: random.Random(5))
        monkeypatch.setattr(training.np.random, "SeedSequence", lambda entropy=11, **more: Sequence_(entropy, **more))
        return folder

    return at


def released(
    tables: Callable[..., Path],
    moved: bool,
    mechanism: str,
    capsys: pytest.CaptureFixture[str],
    kind: str = "plain",
    search: bool = False,
) -> dict[str, str]:
    """Everything that `dpviz release` gives, but for the parameters and for the random name of the table."""
    tables(moved, kind)
    how = ["--try=lam=0.01"] if search else ["--lam=0.01"]
    call = ["release", "mine.csv", *DECLARED, "--drop=note", f"--mechanism={mechanism}", *how, *METHODS[mechanism]]
    assert main([*call, "--out=plain"]) == 0
    said = capsys.readouterr()
    assert main([*call, "--out=json", "--json"]) == 0
    document = NAME.sub("rows-", capsys.readouterr().out)
    model = json.loads(Path("plain/model.json").read_text())
    del model["theta"], model["constant_label"]
    card_ = Path("plain/card.md").read_text()
    return {"out": said.out, "err": said.err, "json": document, "card": card_, "model": json.dumps(model)}


@pytest.mark.parametrize("mechanism", METHODS)
def test_a_replaced_row_moves_the_parameters_of_a_release_and_no_other_byte(
    mechanism: str, tables: Callable[[bool], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert released(tables, False, mechanism, capsys) == released(tables, True, mechanism, capsys)


@pytest.mark.parametrize("silent", [True, False])
@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("kind", ["repeats", "rare"])
def test_repeats_and_rare_classes_are_no_output_of_a_release(
    kind: str,
    search: bool,
    silent: bool,
    tables: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control prints the remarks on the table, as all other commands do."""
    if not silent:
        monkeypatch.setattr(answers, "PUBLISHING", "")
    one, other = (released(tables, moved, "output-gaussian", capsys, kind, search) for moved in (False, True))
    assert [name for name in one if one[name] != other[name]] == ([] if silent else ["out", "json"])


def test_the_parameters_do_move(tables: Callable[[bool], Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise the test above would compare a table with itself. Their grid, and the noise on it, stay."""
    thetas = []
    for moved in (False, True):
        released(tables, moved, "output-gaussian", capsys)
        thetas.append(json.loads(Path("plain/model.json").read_text())["theta"])
    assert thetas[0] != thetas[1]


def of_the_labels(dataset: dpviz.Dataset) -> str:
    return f"{(dataset.y > 0).mean():.6f}"


@pytest.mark.parametrize("place", ["card", "model"])
def test_a_private_number_in_card_or_file_is_noticed(
    place: str, tables: Callable[[bool], Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a share of the labels of the training rows, in either."""
    if place == "card":
        usual = card._looked_at
        monkeypatch.setattr(card, "_looked_at", lambda *given: usual(*given) + of_the_labels(given[0]))
    else:
        plain = training.privacy_of

        def leaking(run: ResolvedRun, *rest: object) -> dict[str, object]:
            return plain(run, *rest) | {"share": of_the_labels(dpviz.load_dataset(run.spec.dataset))}  # type: ignore[arg-type]

        monkeypatch.setattr(training, "privacy_of", leaking)
    one, other = (released(tables, moved, "output-gaussian", capsys) for moved in (False, True))
    assert [name for name in one if one[name] != other[name]] == [place]


def digests(moved: bool) -> list[str]:
    """Hashes of the table that an attacker could compute who guesses it: of the file, of the content, of rows in training."""
    content = own.from_file(Path("mine.csv"), target="y", positive=["yes"], ranges={"age": [18, 90], "income": [0, 100]})
    made = [content.digest, content.dataset("x", True).sha256]
    file = Path("mine.csv").read_bytes()
    made += [hashlib.new(kind, file).hexdigest() for kind in ("md5", "sha1", "sha256")]
    made.append(dpviz.load_dataset(own.hold(content)).sha256)
    return [digest[:10] for digest in made]


@pytest.mark.parametrize("named_by_a_hash", [False, True])
def test_no_hash_of_the_rows_leaves(
    named_by_a_hash: bool, tables: Callable[[bool], Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attacker with all rows but one could try values for it against a hash. The control names tables by one, as before."""
    tables(False)
    if named_by_a_hash:
        by_hash = hashlib.sha256(Path("mine.csv").read_bytes()).hexdigest()
        monkeypatch.setattr(own.secrets, "token_hex", lambda size: by_hash[: 2 * size])
        own._names.clear()
    run = ["mine.csv", *DECLARED, "--drop=note", "--mechanism=output-gaussian"]
    commands = [
        ["run", *run, "--seeds=2"],
        ["run", *run, "--seeds=2", "--json"],
        ["report", *run, "--seeds=2", "--out=report.html"],
        ["report", *run, "--seeds=2", "--out=run.ipynb"],
        ["release", *run, "--out=model", "--json"],
        ["predict", "model", "mine.csv", "--json"],
        ["sweep", *run[:-1], "--mechanisms=output-gaussian", "--epsilons=1", "--seeds=2", "--out=sweep.csv"],
        ["groups", *run, "--seeds=2", "--json"],
        ["influence", *run, "--json"],
    ]
    said = []
    for command in commands:
        if command[-1].endswith(".ipynb"):
            pytest.importorskip("nbformat")
        assert main(command) == 0
        captured = capsys.readouterr()
        said.append(captured.out + captured.err)
    names = ["report.html", "run.ipynb", "model/model.json", "model/card.md", "sweep.csv"]
    said += [Path(name).read_text() for name in names]
    found = [text for text in said if any(digest in text for digest in digests(False))]
    assert bool(found) == named_by_a_hash
    own._names.clear()


def test_a_replaced_row_moves_the_coefficients_of_a_classifier_and_nothing_else() -> None:
    """Not in its guarantee, not in its pickle."""
    x, y = np.random.default_rng(0).normal(size=(90, 3)) / 4, np.arange(90) % 3
    moved, other = x.copy(), y.copy()
    moved[7], other[7] = (0.5, -0.5, 0.5), (y[7] + 1) % 3
    for mechanism in ("output-gaussian", "objective-tight", "dp-gd"):
        states = []
        for rows, labels in ((x, y), (moved, other)):
            model = pickle.loads(pickle.dumps(PrivateClassifier(mechanism, data_norm=2.0, random_state=3).fit(rows, labels)))
            states.append({name: repr(value) for name, value in vars(model).items()})
        assert {name for name in states[0] if states[0][name] != states[1][name]} == {"coef_", "intercept_"}
        assert states[0].keys() == states[1].keys()


def test_what_is_computed_without_noise_says_so(tables: Callable[[bool], Path]) -> None:
    """A report is for the person who has the rows, and is marked."""
    tables(False)
    assert main(["report", "mine.csv", *DECLARED, "--mechanism=output-gaussian", "--seeds=2", "--out=report.html"]) == 0
    assert "not private: numbers in this report were computed from the rows without noise" in Path("report.html").read_text()


def draw_badge(name: str) -> None:
    import dpviz
    from dpviz.dashboard.components import guarantee
    from dpviz.experiments.run.setup import calibration_of

    spec = dpviz.RunSpec(name, mechanism="output-gaussian", lam=0.1)
    guarantee.badge(calibration_of(spec), spec.build(), fold=False)


@pytest.mark.parametrize("declared", [0, 1, 2])
def test_every_surface_says_what_was_read_from_the_rows(
    declared: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All, one and none of the ranges of two columns are read; the last is the control."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 9, (200, 2)), columns=["a", "b"]).assign(y=np.arange(200) % 2)
    frame.to_csv("mine.csv", index=False)
    ranges = dict(list({"a": (0, 9), "b": (0, 9)}.items())[:declared])
    sentence = ["proved, given 2 ranges and categories that were read from the rows"]
    sentence = [*sentence, "proved, given 1 range or category that was read from the rows", "proved"][declared]

    spec = dpviz.RunSpec(dpviz.dataset(frame, target="y", ranges=ranges).name, mechanism="output-gaussian", lam=0.1)
    said = {"badge": words.guarantee(calibration_of(spec), spec.build())}
    page = AppTest.from_function(draw_badge, args=(spec.dataset,), default_timeout=LIMIT).run()
    said["page"] = next(text.value for text in page.markdown if "proved" in text.value)
    said["card"] = dpviz.release(spec, ranges_from_data=True).card
    table = ["mine.csv", "--target=y", "--mechanism=output-gaussian", "--lam=0.1"]
    table += [f"--range={name}=0,9" for name in ranges]
    for name, command in {
        "run": ["run", *table, "--seeds=2"],
        "run, JSON": ["run", *table, "--seeds=2", "--json"],
        "calibrate": ["calibrate", *table],
        "release": ["release", *table, "--ranges-from-data", "--out=model"],
    }.items():
        assert main(command) == 0
        said[name] = capsys.readouterr().out
    said["model.json"] = json.loads(Path("model/model.json").read_text())["privacy"]["sentence"]
    x, how = frame[["a", "b"]].to_numpy(float), "from data" if declared == 0 else (0, 9)
    if declared != 1:  # a classifier reads all ranges or none
        guarantee = dpviz.PrivateClassifier("output-gaussian", data_norm=None, ranges=how).fit(x, frame["y"]).guarantee_
        said["classifier"] = str(guarantee)
    plain = {
        name: text.replace("\\", "").replace("\u00a0", " ").replace(" under stated conditions", "") for name, text in said.items()
    }
    assert [name for name, text in plain.items() if sentence not in text] == []
    assert [name for name, text in plain.items() if ("given" in text) != (declared < 2)] == []
