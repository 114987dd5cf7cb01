"""Reports: one file that needs nothing else, a notebook that runs, and calls that run as they stand.

Sentences, calls and downloads: pure functions of the dashboard.
"""

import ast
import codecs
import dataclasses
import io
import json
import re
import shlex
import tempfile
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import LIMIT, assert_refused
from support_shell import Shell

import dpviz
from dpviz.cli.main import main, parser
from dpviz.cli.one_run import run_spec
from dpviz.cli.sweep import spec_of
from dpviz.dashboard.components import repeat
from dpviz.dashboard.components.tables import csv
from dpviz.datasets.process.reading import read_table
from dpviz.datasets.sources.uploads import Upload
from dpviz.datasets.table.spec import TableSpec
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.studies.cost import Cost
from dpviz.experiments.sweeps.curves import Needed
from dpviz.figures import style
from dpviz.mechanisms.attack import strongest_attack
from dpviz.models import get_model
from dpviz.privacy.budget import Status
from dpviz.reporting import Document, Table, Text, python_call, render, report_of, shell_call, words
from dpviz.reporting.calls import sweep_shell_call
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


@pytest.mark.long
def test_the_notebook_runs() -> None:
    import nbformat
    from nbconvert.preprocessors import ExecutePreprocessor

    made = nbformat.reads(notebook_of(SPEC), as_version=4)
    ExecutePreprocessor(timeout=int(LIMIT), kernel_name="python3").preprocess(made)
    outputs = [output for cell in made.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("application/vnd.plotly.v1+json" in output.get("data", {}) for output in outputs)


CAL = dpviz.calibrate("dp-gd", n=1000, d=10, epsilon=1.0)
ACCURACY = np.array([0.82, 0.83, 0.81])


COST = Cost(ACCURACY, np.array([0.825, 0.825, 0.825]), 0.829)
ATTACK = strongest_attack(dpviz.list_mechanisms()["dp-gd"](), get_model("logistic").setting(1000, 10, 1e-3), CAL)


def test_headline_has_the_numbers_in_sentences_of_twenty_words() -> None:
    first, second = words.headline("DP-GD at ε = 1", COST, CAL, ATTACK)
    assert first.replace("\u00a0", " ") == (
        "DP-GD at ε = 1 has 82.0 % accuracy; without privacy, 82.9 %: privacy costs 0.9 points."
    )
    assert second.replace("\u00a0", " ") == "An attacker guesses right at most 55.3 % of the time."
    assert sum(any(sign.isalpha() for sign in word) for word in first.split()) <= 20  # beside its numbers


def test_an_attack_is_limited_by_proof_and_never_by_a_claim() -> None:
    claim = dataclasses.replace(CAL, status=Status.CLAIM, proved_budget=None, conditions=())
    nothing = dataclasses.replace(CAL, status=Status.NONE, proved_budget=None, claimed_budget=None)
    assert words.headline("", COST, claim, None)[1] == "No limit on attacks is proved."
    assert words.headline("", COST, nothing, None)[1] == "Nothing limits attacks."


def test_markdown_from_outside_is_harmless() -> None:
    text = words.markdown("![x](http://evil) <b> :red[a] $x$ `c`\n# h")
    for sign in "![]()<>$`:#":
        assert text.count(sign) == text.count("\\" + sign)
    assert "\n" not in text


LINKS = ("www.evil.com", "WWW.evil.com", "https://evil.com", "ftp://e.com", "a@evil.com", "mailto:a@b.com")


@pytest.mark.parametrize("text", [*LINKS, ":material/home:", ":smile:", ":+1:", "::smile::"])
def test_links_and_icons_that_are_written_out_are_none(text: str) -> None:
    shown = words.markdown(f"see {text} now").replace("\\", "")
    assert text not in shown
    assert not re.search(r":[\w+/-]+:", shown)
    assert shown.replace("\u2060", "") == f"see {text} now"


def test_plain_sentences_are_left_as_they_are() -> None:
    assert "\u2060" not in words.markdown("At 12:30 the ratio was 3:1, and ε = 1 (δ = 10⁻⁵): 82.1 %.")


#: signs that a shell, an address, TOML or Python obeys; no NUL and nothing that UTF-8 cannot write
HOSTILE = ("x;touch pwned.csv", "a b&c=d#e.csv", "%2e%2e.csv", "$(id)", "`id`", "-rf", "a'b\"c\\", "😀.csv", "a\nb", "\x7f+%20")
NAMES = st.one_of(
    st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
).map(lambda name: f"data/{name}")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(NAMES)
def test_shell_address_toml_and_python_give_the_same_run_back_for_any_name(name: str) -> None:
    spec = dpviz.RunSpec(name, mechanism="rsgd", epsilon=0.3, params={"epochs": 7, "batch_size": 9}, intercept=False)
    command = shlex.split(repeat.shell_call(spec))
    assert command[:2] == ["dpviz", "run"]
    assert run_spec(parser().parse_args(command[1:])) == spec
    assert dpviz.RunSpec.from_query(repeat.address(spec)) == spec
    call = repeat.python_call(spec).splitlines()[2].removeprefix("result = dpviz.run(").removesuffix(")")
    assert eval(call, {"dpviz": dpviz}) == spec
    sweep = dpviz.SweepSpec(name, mechanisms={"rsgd": {"epochs": 7}}, epsilons=[0.3, 1.0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sweep.toml"
        path.write_text(sweep.to_toml(), encoding="utf-8")
        assert dpviz.SweepSpec.from_toml(path) == sweep
    table = TableSpec(
        name,
        (name,),
        None,
        (name, "a"),
        {name: (0.0, 1.5)},
        {name: ("x", name)},
        (name,),
        {name: name},
        missing_in={name: (name,)},
        proposed=(name,),
    )
    assert TableSpec.from_dict(tomllib.loads(table.to_toml())) == table


#: text -> what stands in a download
FORMULAS = {
    "=1+1": "'=1+1",
    "+a": "'+a",
    "-1+cmd": "'-1+cmd",
    "@SUM(A1)": "'@SUM(A1)",
    "\t=1": "'\t=1",
    " =1": " '=1",
    "＝1": "'＝1",
    "＋1": "'＋1",
    "－1": "'－1",
    "＠a": "'＠a",
    "x;=1+1": "x;'=1+1",
    "x,\n-a": "x,\n'-a",
    "-1": "-1",
    "+1.5e-3": "+1.5e-3",
    " -2 ": " -2 ",
    "1;-1;+2": "1;-1;+2",
    "fine": "fine",
    "a=b": "a=b",
}


def test_downloads_hold_no_formulas() -> None:
    hostile = list(FORMULAS)
    table = pd.DataFrame({"=name": hostile, "n": [-1.5] * len(hostile), "c": pd.Categorical(hostile)})
    saved = csv(table)
    assert saved.startswith(codecs.BOM_UTF8), "a spreadsheet takes it for UTF-8"
    back = pd.read_csv(io.BytesIO(saved), dtype=str, keep_default_na=False)
    assert list(back.columns) == ["'=name", "n", "c"]
    for column in ("'=name", "c"):
        assert list(back[column]) == list(FORMULAS.values())
    assert set(back["n"]) == {"-1.5"}
    assert b'"x;\'=1+1"' in saved, "a program that cuts at semicolons keeps the cell together"


def _tables_with_a_menu(source: str) -> list[ast.Call]:
    """Calls that show a table whose own menu saves it as CSV, without the protection against formulas."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args]
    shown = [node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr in ("dataframe", "data_editor")]
    return [node for node in shown if "escape_formulas(" not in ast.unparse(node.args[0])]


def test_what_a_tables_own_menu_saves_holds_no_formulas() -> None:
    root = Path(words.__file__).parents[2]
    for path in [*(root / "dpviz" / "dashboard").rglob("*.py"), *(root / "pages").glob("*.py"), root / "app.py"]:
        assert not _tables_with_a_menu(path.read_text(encoding="utf-8")), path.name
    assert _tables_with_a_menu("st.dataframe(table)"), "the control"


def test_a_target_beyond_the_non_private_model_is_said_to_be_out_of_reach() -> None:
    missed = Needed("dp-gd", None, False, 0.7, 0.1, 10.0, "proved")
    accuracy, loss = METRICS["accuracy"], METRICS["log-loss"]
    for measure, target, top, out in (
        (accuracy, 0.9, 0.8, True),
        (accuracy, 0.9, 0.95, False),
        (loss, 0.3, 0.4, True),
        (loss, 0.3, 0.2, False),
        (accuracy, 0.9, float("nan"), False),
    ):
        said = words.needed_budget(missed, target, {}, None, measure=measure, top=top)
        assert ("Nor does the non-private model" in said) == out, (measure.id, target, top)
        assert not out or words.metric_value(measure, top) in said
