"""Releasing a model: fresh noise of the declared scale, a file without pickle, a card, predictions for new rows."""

import dataclasses
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support import LIMIT, assert_refused, assert_words, mostly_long
from support_shell import Shell

import dpviz
from dpviz.cli.main import main
from dpviz.datasets.sources import own
from dpviz.privacy.budget import Budget
from dpviz.releasing import ReleasedModel
from dpviz.releasing.grid import EXACT
from dpviz.releasing.training import _require_proof

FAST = dpviz.RunSpec("census-100", mechanism="output-gaussian", lam=0.1)


def drawn(family: str, size: int, source: random.Random) -> np.ndarray:
    draws, one = EXACT[family](size, source)
    return np.array([draw / one for draw in draws])


@pytest.mark.parametrize("family", EXACT)
@pytest.mark.parametrize("size", mostly_long([1, 3, 12], 3))
def test_the_exact_sampler_has_the_declared_distribution(family: str, size: int) -> None:
    """Lengths and coordinates against closed forms; 5 % less noise fails."""
    source, count = random.Random(size), 4000 if size < 10 else 1000
    draws = np.array([drawn(family, size, source) for _ in range(count)])
    lengths = np.linalg.norm(draws, axis=1)
    law = stats.chi(size) if family == "gaussian" else stats.gamma(size)
    assert stats.kstest(lengths, law.cdf).pvalue > 0.001
    if count * size >= 4000:  # directions are uniform: no coordinate is larger than another, and signs are fair
        unit = draws / lengths[:, None]
        assert np.abs(unit.mean(axis=0)).max() < 5 / np.sqrt(count)
        assert np.abs((unit**2).mean(axis=0) * size - 1).max() < 5 * np.sqrt(2 / count) + 1e-12
    many = np.linalg.norm(np.array([drawn(family, size, source) for _ in range(8000)]), axis=1) if size == 3 else lengths
    if size == 3:
        assert stats.kstest(0.95 * many, law.cdf).pvalue < 0.001  # the control


@pytest.mark.long
def test_many_releases_have_the_declared_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences of 100 pairs, from the operating system's generator replaced by a repeatable one; 5 % less noise is seen."""
    source = random.Random(5)
    monkeypatch.setattr(random, "SystemRandom", lambda: source)
    made = [dpviz.release(FAST) for _ in range(200)]
    scale = made[0].calibration.noise_scale
    theta = np.array([one.model.theta for one in made])
    square = ((theta[::2] - theta[1::2]) ** 2).sum(axis=1) / (2 * scale**2)
    law = stats.chi2(square.size * theta.shape[1])
    assert 0.01 < law.cdf(square.sum()) < 0.99
    assert law.cdf(0.95**2 * square.sum()) < 0.01  # the control


def test_the_noise_lies_around_the_minimiser() -> None:
    made = dpviz.release(dpviz.RunSpec("census-100", mechanism="output-gaussian", lam=0.1, epsilon=200.0))
    np.testing.assert_allclose(
        made.model.theta, dpviz.setup_for(made.spec).problem.optimum, atol=6 * made.calibration.noise_scale
    )


def test_the_file_says_what_is_guaranteed(tmp_path: Path) -> None:
    made = dpviz.release(FAST, tried=1)
    folder = tmp_path / "model"
    made.save(folder)
    if os.name == "posix":
        assert [path.stat().st_mode & 0o077 for path in folder.iterdir()] == [0, 0], "for their owner, until they are published"
    delta = made.calibration.budget.delta
    assert dpviz.load_model(folder).privacy == {
        "dpviz": dpviz.__version__,
        "mechanism": "output-gaussian",
        "hyperparameters": {"refined": False, "lam": 0.1, "class_weight": 1.0},
        "claimed": {"epsilon": 1.0, "delta": delta},
        "proved": {"epsilon": 1.0, "delta": delta},
        "status": "proved",
        "sentence": "proved",
        "relation": "replace-one",
        "unit": "one row",
        "conditions": [],
        "accountant": made.calibration.accountant,
        "rows": 80,
        "hardened_sampler": True,
        "grid": made.grid,
    }
    assert 0 < delta < 1 / 80


def test_one_label_for_everybody_is_released_as_such() -> None:
    spec = dpviz.RunSpec("census-100", mechanism="majority", params={"private": True}, epsilon=50.0)
    made = dpviz.release(spec)
    again = ReleasedModel.from_json(made.model.to_json())
    labels = dpviz.setup_for(spec).problem.rows.y
    assert made.model.constant_label == again.constant_label == np.sign(labels.sum())
    assert set(again.predict(dpviz.load_dataset("census-100").frame)) == {made.model.classes[int(labels.sum() > 0)]}
    assert made.model.privacy["proved"] == {"epsilon": 50.0, "delta": 0.0}


@pytest.mark.parametrize(
    ("tried", "said"),
    [(None, "Not stated"), (1, "no other setting was tried"), (2, "add up to (ε = 2,"), (9, "add up to (ε = 9,")],
)
def test_the_card_adds_up_what_was_tried(tried: int | None, said: str) -> None:
    assert said in dpviz.release(FAST, tried=tried).card


def test_the_file_holds_no_seed_and_loads_again(tmp_path: Path) -> None:
    made = dpviz.release(FAST, tried=3)
    made.save(tmp_path / "model")
    text = (tmp_path / "model" / "model.json").read_text()
    assert "seed" not in text
    listed = {"format", "model", "classes", "constant", "constant_label", "encoder", "privacy", "theta"}
    assert json.loads(text).keys() == listed, "what is new there must be in docs/threats.md, with its guarantee"
    loaded = dpviz.load_model(tmp_path / "model")
    frame = dpviz.load_dataset("census-100").frame
    np.testing.assert_array_equal(loaded.predict(frame), made.model.predict(frame))
    earlier = {key: value for key, value in json.loads(text).items() if key != "constant"} | {"intercept": True}
    assert (ReleasedModel.from_json(json.dumps(earlier)).constant, loaded.constant) == (1.0, 0.5), "rows were (x, 1)/sqrt 2"
    card = (tmp_path / "model" / "card.md").read_text()
    parts = (
        "## Model\n|## Data\n|## Privacy\n|## Method\n|ε = 1|replace-one|3 settings were tried|Haney et al. 2022|"
        "multiples of 2^-|80 rows|Balle|λ|- refined = False|- row_scaling = centred|Claimed: |Accountant: "
        "|no row was looked at for them|Audit"
    )
    for part in (*parts.split("|"), f"dpviz {dpviz.__version__}"):
        assert part in card
    assert_refused(made.save, tmp_path / "model", match="is there already")


@pytest.mark.parametrize("name", ["teaching", "census-100", "iris"])
@pytest.mark.parametrize("scaling", ["unit", "clip", "bound", "largest"])
def test_new_rows_are_encoded_as_the_training_rows_were(name: str, scaling: str) -> None:
    data = dpviz.load_dataset(name, scaling=scaling, intercept=False)
    assert data.encoder.names == data.feature_names
    np.testing.assert_allclose(data.encoder.rows(own.table(data.frame)), data.X, atol=1e-12)


def test_own_tables_are_encoded_as_the_training_rows_were() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 10, 50), "kind": rng.choice(["a", "b"], 50), "y": np.arange(50) % 2})
    frame.loc[3, "age"], frame.loc[4, "kind"] = np.nan, None
    how = {"missing": "default", "defaults": {"age": 40.0, "kind": "none"}, "ranges": {"age": (20, 60)}}
    data = dpviz.dataset(frame, target="y", **how)  # type: ignore[arg-type]
    np.testing.assert_allclose(data.encoder.rows(own.table(frame)), data.X[:, :-1] * np.sqrt(2), atol=1e-12)
    divided = dpviz.dataset(frame[["age"]].fillna(0), frame["y"], data_norm=50.0)
    np.testing.assert_allclose(divided.encoder.rows(own.table(frame[["age"]].fillna(0))), divided.X[:, :-1] * np.sqrt(2))


@pytest.mark.parametrize("intercept", [True, False])
def test_scores_are_those_of_the_encoded_rows(intercept: bool) -> None:
    model = dpviz.release(dataclasses.replace(FAST, intercept=intercept)).model
    data = dpviz.load_dataset("census-100", intercept=intercept, scaling="automatic")
    scores = model.scores(data.frame)
    np.testing.assert_allclose(scores, data.X @ model.theta, atol=1e-12)
    assert model.predict(data.frame).tolist() == [model.classes[int(score >= 0)] for score in scores]


def test_unseen_categories_and_values_out_of_range_are_said() -> None:
    made = dpviz.release(FAST)
    frame = dpviz.load_dataset("census-100").frame.head(3).astype({"region": object})
    frame.loc[0, "region"], frame.loc[1, "age"] = "the moon", 500
    said: list[str] = []
    assert set(made.model.predict(frame, said)) <= set(made.model.classes)
    assert len(said) == 2
    for change, field in (({"age": "old"}, "age"), ({"age": np.nan}, "age")):
        assert_refused(made.model.predict, frame.assign(**change), field=field)
    assert_refused(made.model.predict, frame.drop(columns="age"), match="is missing")


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        (dpviz.RunSpec("census-100", mechanism="pidp-sgd"), "no proof"),
        (dpviz.RunSpec("census-100", mechanism="non-private"), "no privacy is promised"),
        (dpviz.RunSpec("census-100", mechanism="bolt-on-psgd", params={"noise": "classical"}, epsilon=30.0), "is proved"),
        (dpviz.RunSpec("iris", mechanism="output-gaussian"), "read from the rows"),
    ],
)
def test_what_is_not_proved_or_was_read_from_the_rows_needs_a_switch(spec: dpviz.RunSpec, match: str) -> None:
    assert_refused(dpviz.release, spec, match=match)
    made = dpviz.release(spec, unproved=True, ranges_from_data=True)
    assert made.hardened == (spec.mechanism in ("bolt-on-psgd", "output-gaussian"))
    assert ("drawn exactly with whole numbers" in made.card) == made.hardened
    noisy = made.calibration.noise_scale > 0
    assert ("The result is rounded to a public grid" in made.card) == (noisy and not made.hardened)
    assert ("No noise is added" in made.card) != noisy
    if spec.dataset == "iris":
        assert "Read from the rows" in made.card


@pytest.mark.parametrize("model", ["svm", "mlp-3"])
def test_other_models_are_released_too(model: str) -> None:
    made = dpviz.release(dpviz.RunSpec("census-100", model=model, mechanism="dp-gd", params={"steps": 2}))
    again = ReleasedModel.from_json(made.model.to_json())
    frame = dpviz.load_dataset("census-100").frame
    np.testing.assert_array_equal(again.scores(frame), made.model.scores(frame))


def test_damaged_files_are_refused_in_words() -> None:
    good = json.loads(dpviz.release(FAST).model.to_json())
    damages: list[dict[str, object]] = [
        {"format": "x"},
        {"theta": [1.0]},
        {"theta": ["a"] * len(good["theta"])},
        {"classes": ["one"]},
        {"encoder": {}},
        {"encoder": {**good["encoder"], "columns": [{"name": "a", "kind": "number"}]}},
        {"encoder": {**good["encoder"], "scaling": "x"}},
        {"model": "forest"},
        {"constant": 2},
        {"constant": None, "intercept": 2},
        {"constant": 0},
        {"theta": [1e308] * len(good["theta"])},
        {"theta": [float("nan")] * len(good["theta"])},
        {"theta": [True] * len(good["theta"])},
        {"classes": ["same", "same"]},
        {"classes": ["a", "b" * 100_000]},
        {"classes": ["a", "\ud800"]},
        {"privacy": {"sentence": "\udcff"}},
        {"constant_label": 5},
        {"constant_label": "x"},
        {"encoder": {**good["encoder"], "largest": 1e308, "scaling": "largest"}},
        {"encoder": {**good["encoder"], "largest": 0.0, "scaling": "largest"}},
    ]
    number = next(k for k, column in enumerate(good["encoder"]["columns"]) if column["kind"] == "number")
    texts = next(k for k, column in enumerate(good["encoder"]["columns"]) if column["kind"] == "categories")
    for place, change in (
        (number, {"low": 2.0, "high": 1.0}),
        (number, {"high": 1e308}),
        (number, {"high": "x"}),
        (number, {"levels": ["a"]}),
        (number, {"default": "a"}),
        (number, {"name": ""}),
        (number, {"name": "a\x1b[2J"}),
        (number, {"name": good["encoder"]["columns"][texts]["name"]}),
        (texts, {"levels": ["x", "x"]}),
        (texts, {"levels": "xy"}),
        (texts, {"levels": [f"{k}" for k in range(200_000)]}),
        (texts, {"levels": [1, 2]}),
    ):
        columns = [column | (change if k == place else {}) for k, column in enumerate(good["encoder"]["columns"])]
        damages.append({"encoder": {**good["encoder"], "columns": columns}})
    for damage in damages:
        assert_refused(ReleasedModel.from_json, json.dumps(good | damage))
    for text in ("", "[]", "[" * 100_000, "{", json.dumps(good)[:-1] + ', "x": ' + "9" * 5000 + "}"):
        assert_refused(ReleasedModel.from_json, text)


def test_a_large_file_is_counted_before_it_is_read_one_by_one() -> None:
    good = json.loads(dpviz.release(FAST).model.to_json())
    column, most = {**good["encoder"]["columns"][0], "kind": "categories"}, 100_000
    changes: list[tuple[dict[str, object], str]] = [
        ({"theta": ["x"] * 1000}, "has 1,000 numbers"),
        ({"encoder": {**good["encoder"], "columns": ["x"] * (most + 1)}}, "the limit is 100,000"),
        ({"encoder": {**good["encoder"], "columns": [column | {"levels": ["x"] * (most + 1)}]}}, "the limit is 100,000"),
    ]
    for change, said in changes:
        assert_refused(ReleasedModel.from_json, json.dumps(good | change), match=said)


KILLED = """
import os, sys
from dpviz.cli.main import main
from dpviz.common import files
write = files.write
files.write = lambda path, *rest, **how: os._exit(9) if path.name == "model.json" else write(path, *rest, **how)
main(sys.argv[1:])
"""


@pytest.mark.long
def test_a_release_that_was_killed_while_it_was_written_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    shell(["ledger", "spent.toml", "--limit", "3", "--delta", "1e-6"])
    words = (
        "release --dataset=census-100 --mechanism=output-gaussian --lam=0.1 --delta=1e-7 --ledger=spent.toml --out=model".split()
    )
    paths = {"PYTHONPATH": str(Path(dpviz.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", KILLED, *words], env=os.environ | paths, timeout=LIMIT).returncode == 9
    assert len(list(tmp_path.glob(".part-*.model"))) == 1, "the control"
    shell(words)
    assert {path.name for path in tmp_path.iterdir()} - {"spent.toml.lock"} == {"model", "spent.toml"}
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"model.json", "card.md"}
    assert len(dpviz.Ledger("spent.toml").entries()) == 2, "that of the killed one, too"


def test_each_try_counts_and_equal_values_count_once(tmp_path: Path, shell: Shell) -> None:
    words = "release --dataset=teaching --mechanism=output-gaussian --mean-runs=2 --json --out".split()
    for name, tries in {"a": ["lam=.1", "lam=.2"], "b": ["lam=0.1,0.1", "lam=0.10,.2"]}.items():
        assert shell.json([*words, str(tmp_path / name), *(f"--try={one}" for one in tries)])["searched"] == 2


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: dpviz.load_model(3), "path"),  # type: ignore[arg-type]
        (lambda: dpviz.Ledger(3), "path"),  # type: ignore[arg-type]
        (lambda: dpviz.Ledger.create("x.toml", table="t", limit=3), "limit"),  # type: ignore[arg-type]
        (lambda: dpviz.Ledger.create("x.toml", table="t", limit=Budget(1, 1e-6), relation="r"), "relation"),  # type: ignore[arg-type]
        (lambda: dpviz.release(FAST, ledger=3), "ledger"),  # type: ignore[arg-type]
        (lambda: dpviz.private_search(FAST, {"lam": [0.1]}, ledger="l.toml"), "ledger"),  # type: ignore[arg-type]
        (lambda: dpviz.private_search(FAST, 3), "values"),  # type: ignore[arg-type]
    ],
)
def test_an_argument_of_another_kind_is_one_clear_error(call: Callable[[], object], field: str) -> None:
    assert_refused(call, match=f"^{field}: must be a")


def test_from_the_shell(tmp_path: Path, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model"
    link = "http://127.0.0.1:8501/?dataset=census-100&mechanism=output-gaussian&lam=0.1"
    assert "proved: (ε = 5" in shell(["release", link, "--epsilon", "5", "--out", str(out), "--audit", "40", "--tried", "2"])
    assert "40 models were trained on each of two synthetic neighbouring datasets" in (out / "card.md").read_text()
    frame = dpviz.load_dataset("census-100").frame.iloc[:4, :-1]
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert len(shell(["predict", str(out), str(tmp_path / "new.csv")]).splitlines()) == 5
    (tmp_path / "wide.csv").write_bytes((tmp_path / "new.csv").read_bytes().replace(b",", b"|").decode().encode("utf-16-le"))
    wide = ["predict", str(out), str(tmp_path / "wide.csv")]
    assert len(shell([*wide, "--encoding=utf-16", "--delimiter=vertical bar"]).splitlines()) == 5
    for wrong_words in ("--encoding=klingon", "--encoding=koi8_r", "--delimiter=comma"):
        shell.refused([*wide, wrong_words])
    frame.astype({"region": object, "age": object}).assign(region="the moon", age=500).to_csv(tmp_path / "odd.csv", index=False)
    assert main(["predict", str(out), str(tmp_path / "odd.csv")]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 5
    assert_words(said.err, "region", "age")
    for wrong in (frame.drop(columns="age"), frame.assign(age="old")):
        wrong.to_csv(tmp_path / "odd.csv", index=False)
        assert shell.refused(["predict", str(out), str(tmp_path / "odd.csv")]).startswith("dpviz: age: ")
    assert main(["release", link, "--out", str(out)]) == 2
    assert main(["predict", str(tmp_path), str(tmp_path / "new.csv")]) == 2
    assert main(["release", "--dataset=census-100", "--mechanism=pidp-sgd", f"--out={tmp_path / 'other'}"]) == 2
    assert not (tmp_path / "other").exists()


def test_the_card_names_what_automatic_hyperparameters_became() -> None:
    made = dpviz.release(dpviz.RunSpec("census-100", mechanism="dp-gd", lam=0.1))
    setting = dpviz.setup_for(made.spec).problem.setting
    steps = made.spec.build().value("steps", setting, made.calibration.budget)
    assert steps > 0
    assert f"- steps = {steps}\n" in made.card


def test_the_card_says_what_is_proved_and_under_which_conditions() -> None:
    """Not what was asked for, where that is another number."""
    classical = dpviz.RunSpec("census-100", mechanism="bolt-on-psgd", params={"noise": "classical"}, epsilon=30.0)
    made = dpviz.release(classical, unproved=True)
    assert made.calibration.proved_budget != made.calibration.budget
    assert f"- Proved: {made.calibration.proved_budget} (proved)." in made.card
    assert made.model.privacy["proved"]["epsilon"] == made.calibration.proved_budget.epsilon
    conditional = dpviz.release(dpviz.RunSpec("census-100", mechanism="objective-tight", lam=0.1))
    assert conditional.calibration.conditions
    assert all(f"- Only if: {condition}." in conditional.card for condition in conditional.calibration.conditions)
    worse = dataclasses.replace(made.calibration, proved_budget=dpviz.Budget(1.0, 1e-3))
    assert_refused(_require_proof, worse, dpviz.Budget(1.0, 1e-5), match="is proved")


_TEXTS = pd.Series(["\ud800", "b"] * 30, dtype=object)


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            lambda name=name: dpviz.release(FAST, **{name: "no"})
            for name in ("all_rows", "unproved", "ranges_from_data", "tried")
        ),
        lambda: dpviz.private_search(FAST, {"lam": [0.1]}, private_ranges=np.ones(2)),
        lambda: dpviz.private_search(FAST, {"lam": 5}),
        lambda: dpviz.dataset(pd.DataFrame({"a": _TEXTS, "y": np.arange(60) % 2}), target="y"),
        lambda: dpviz.dataset(pd.DataFrame({"a": range(60), "y": _TEXTS}), target="y"),
        lambda: dpviz.dataset(pd.DataFrame({"a": [10**400] * 60, "y": np.arange(60) % 2}), target="y"),
        lambda: dpviz.dataset(pd.DataFrame(np.eye(60)[:, :3], columns=["a", "a", "y"]), target="y"),
        lambda: dpviz.release(FAST).model.predict(pd.DataFrame({"a": _TEXTS})),
    ],
)
def test_what_cannot_be_used_is_one_error(wrong: Callable[[], object]) -> None:
    assert_refused(wrong)
