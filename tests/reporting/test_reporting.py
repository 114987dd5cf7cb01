"""Reports: one file that needs nothing else, a notebook that runs, and calls that run as they stand."""

import dataclasses
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import LIMIT, assert_refused
from support_shell import Shell

import dpviz
from dpviz.cli.main import main, parser
from dpviz.cli.sweep import spec_of
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.sources.uploads import Upload
from dpviz.datasets.table.spec import TableSpec
from dpviz.figures import style
from dpviz.reporting import Chart, Document, Table, Text, python_call, render, report_of, shell_call
from dpviz.reporting.calls import sweep_call, sweep_shell_call
from dpviz.reporting.notebook import notebook_of

SPEC = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=3)


def table(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"it's age": rng.normal(40, 10, 60), "kind": rng.choice(["a", "b"], 60), "y": np.arange(60) % 2})
    frame.to_csv(folder / "my table.csv", index=False)
    return folder / "my table.csv"


@pytest.mark.parametrize("checked", [True, False])  # the app does not have plotly check its figures
def test_one_file_holds_everything_and_asks_for_nothing(checked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "CHECKED", checked)
    html = render(report_of(SPEC, link="http://127.0.0.1:8501/?dataset=teaching"))
    assert re.findall(r"<[^>]*\s(?:src|href|action)=", html) == [], "what would make a browser ask for something"
    assert "<script" not in html
    assert len(html.encode()) < 2_000_000
    parts = "not private|✓ proved|dpviz.run(dpviz.RunSpec(|dpviz run --dataset=teaching --mechanism=output-gaussian|Balle"
    for part in (*parts.split("|"), "default-src 'none'", "at ε = 1 has"):
        assert part in html.replace("&#39;", "'")
    assert html.count("<figcaption>") == 6


def test_a_report_shows_scores_and_says_which_rows_they_are_from() -> None:
    made = report_of(SPEC)
    result = dpviz.run(SPEC)
    test = result.setup.test
    charts = {one.words: one for one in made.parts if isinstance(one, Chart)}
    (roc,) = (one for message, one in charts.items() if message.startswith("ROC curve on 80 test rows"))
    (calibration,) = (one for message, one in charts.items() if message.startswith("Calibration curve on 80 test rows"))
    (matrix,) = (one for one in made.parts if isinstance(one, Table) and one.caption.startswith("Confusion matrix"))
    values = matrix.frame.set_index("what")["private"]
    labels = result.setup.dataset.label_names
    counts = [float(values[f"{a}, called {b}"]) for a in labels for b in labels]
    assert sum(counts) == len(test.y) == 80
    assert values["Accuracy"] == f"{100 * result.accuracy.mean():.1f} %"
    area = np.trapezoid(roc.table.query("model == 'private'")["mean"], np.linspace(0, 1, 101))
    assert np.isclose(area, result.metrics["roc_auc"].mean(), atol=0.02)
    shares = calibration.table.query("model == 'private'")
    assert np.isclose((shares["observed"] * shares["rows"]).sum() / shares["rows"].sum(), (test.y > 0).mean(), atol=0.1)
    released = report_of(dataclasses.replace(SPEC, mechanism="majority"))
    assert not [one for one in released.parts if isinstance(one, Chart) and "ROC" in one.words], "a label has no scores"


def test_a_report_speaks_the_metric_that_is_asked_for() -> None:
    made = report_of(SPEC, metric="log-loss")
    values = dpviz.run(SPEC).metrics["log_loss"]
    assert f"log loss of {values.mean():.3f}; " in made.sentence
    assert_refused(report_of, SPEC, metric="auc")


@pytest.mark.parametrize(("model", "mechanism"), [("logistic", "kst-objective"), ("mlp", "dp-gd"), ("logistic", "majority")])
def test_a_report_has_the_guarantee_of_its_run_and_weights_of_linear_models_only(model: str, mechanism: str) -> None:
    spec = dpviz.RunSpec("teaching", model=model, mechanism=mechanism, seeds=2)
    parts, cal = report_of(spec).parts, dpviz.run(spec).calibration
    (guarantee,) = (part.frame for part in parts if isinstance(part, Table) and "claimed" in set(part.frame.get("what", ())))
    rows = guarantee.set_index("what")["value"]
    assert rows["claimed"] == str(cal.claimed_budget or "nothing")
    assert rows["proved"].startswith(str(cal.proved_budget or "nothing"))
    assert rows["noise"] == cal.noise_text
    headings = [part.text for part in parts if isinstance(part, Text) and part.heading]
    assert ("Weights" in headings) == (model == "logistic" and mechanism != "majority")


def test_text_from_outside_stays_text() -> None:
    evil = "<script>alert(1)</script>"
    html = render(Document(evil, evil, [evil], [Table(evil, pd.DataFrame({evil: [evil]}))], [(evil, evil)], [(evil, evil)], evil))
    assert "<script" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 10, "every one of them is shown"


def test_calls_run_as_they_stand(shell: Shell) -> None:
    names: dict[str, object] = {}
    exec(python_call(SPEC), names)
    assert isinstance(names["result"], dpviz.Result)
    assert f"{names['result'].accuracy.mean():.4f}" in shell(shlex.split(shell_call(SPEC))[1:])


@pytest.mark.long
def test_calls_about_an_upload_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    path = table(tmp_path)
    spec = TableSpec("y", positive=("1",), ranges={"it's age": (0.0, 100.0)}, categories={"kind": ("a", "b")})
    upload = Upload(read_table(path.read_bytes()), spec, path.name)
    run = dpviz.RunSpec(upload.name, mechanism="output-gaussian", seeds=2)
    monkeypatch.chdir(tmp_path)
    call = python_call(run)
    assert upload.name not in call
    names: dict[str, object] = {}
    exec(call, names)
    result = names["result"]
    assert isinstance(result, dpviz.Result)
    np.testing.assert_array_equal(result.accuracy, dpviz.run(run).accuracy)
    assert f"{result.accuracy.mean():.4f}" in shell(shlex.split(shell_call(run))[1:])
    exec(python_call(result.spec), again := {})
    np.testing.assert_array_equal(again["result"].accuracy, result.accuracy)  # rows from a file name it too


def test_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = "http://127.0.0.1:8501/?dataset=teaching&mechanism=output-gaussian&seeds=2"
    assert main(["report", link, "--out", str(tmp_path / "a.html")]) == 0
    page = (tmp_path / "a.html").read_text()
    assert link.replace("&", "&amp;") in page
    assert "single real rows are left out" in page  # a whole link stands for its page, the first one too
    assert main(["report", "?" + link.partition("?")[2], "--out", str(tmp_path / "run.html")]) == 0
    assert "single real rows are left out" not in (tmp_path / "run.html").read_text()
    assert main(["report", link, "--out", str(tmp_path / "a.ipynb")]) == 0
    assert json.loads((tmp_path / "a.ipynb").read_text())["nbformat"] == 4
    assert main(["report", link, "--out", str(tmp_path / "a.pdf")]) == 2


def test_the_call_of_a_sweep_gives_the_same_sweep() -> None:
    knobs = {"dp-gd": {"steps": 7, "clip_norm": 0.5}, "output-gaussian": {"refined": True}}
    sweep = dpviz.SweepSpec(
        dataset="census-100",
        model="svm",
        mechanisms=knobs,
        epsilons=[0.1, 1 / 3],
        seeds=3,
        delta=1e-4,
        lam=0.02,
        split_seed=1,
        seed=2,
        intercept=False,
        row_scaling="clip",
        folds=5,
        metrics=["recall-at-precision=0.6"],
    )
    options = parser().parse_args(shlex.split(sweep_shell_call(sweep))[1:])
    again = spec_of(options)
    assert dataclasses.replace(again, metrics=sweep.metrics) == sweep
    assert options.metric == list(sweep.metrics)


def test_the_same_run_gives_the_same_notebook() -> None:
    assert notebook_of(SPEC) == notebook_of(SPEC)


@pytest.mark.long
def test_the_notebook_runs() -> None:
    import nbformat
    from nbconvert.preprocessors import ExecutePreprocessor

    made = nbformat.reads(notebook_of(SPEC), as_version=4)
    ExecutePreprocessor(timeout=int(LIMIT), kernel_name="python3").preprocess(made)
    outputs = [output for cell in made.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("application/vnd.plotly.v1+json" in output.get("data", {}) for output in outputs)


def test_a_method_without_a_model_has_a_report_too() -> None:
    assert report_of(dpviz.RunSpec("teaching", mechanism="majority", seeds=2)).badges[0].startswith("✗")
    assert_refused(report_of, dpviz.RunSpec("nowhere"))


def test_a_sweep_from_python_names_what_differs_from_the_default() -> None:
    knobs = dpviz.list_mechanisms()["dp-gd"].defaults()
    sweep = dpviz.SweepSpec("teaching", mechanisms={"dp-gd": knobs | {"steps": 7}, "cms-output": {}}, epsilons=(1.0,))
    assert "mechanisms={'dp-gd': {'steps': 7}, 'cms-output': {}}" in sweep_call(sweep)
