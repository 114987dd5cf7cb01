"""One button makes a report, as `dpviz report` does, whose code runs as it stands; the app releases a model as the shell does."""

import argparse
import io
import re
import shlex
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from support import mostly_long, until
from support_pages import ROOT, addressed, opened, stills
from support_shell import Shell

import dpviz
from dpviz.cli.main import main, parser
from dpviz.common.limits import DEMO
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import recorder
from dpviz.dashboard.frame import headless, links
from dpviz.dashboard.jobs import pool, watching
from dpviz.dashboard.jobs.pool import THREADS
from dpviz.dashboard.one_run import sections
from dpviz.datasets.sources import own
from dpviz.figures import style
from dpviz.figures.style import light_theme
from dpviz.releasing import ReleasedModel
from dpviz.reporting import Chart, Document, Text
from dpviz.reporting.run import settings_of

QUERY = {"dataset": "teaching", "seeds": "2", "mechanism": "output-gaussian"}
LINK = "http://127.0.0.1:8501/{}?dataset=teaching&seeds=2&mechanism=output-gaussian&v=1"


def test_a_report_is_of_the_page_as_it_was_when_it_was_asked_for() -> None:
    kept = recorder.Recorder("A page", badges=["of the page"], of_rows={"x"}, code=[("Python", "its code")])
    kept.parts["slow"] = lambda: kept.clear() or Text("made")  # the page is drawn anew meanwhile
    found = kept.document(dpviz.RunSpec("teaching"), "Teaching")
    assert found.badges == ["of the page"]
    assert ("Python", "its code") in found.repeat
    assert "left out" in str(found.parts[-1])


def made(page: AppTest) -> str:
    spec = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)
    return recorder.get_recorder(page.session_state).html(spec, "Teaching")


def test_a_page_is_written_with_its_charts_tables_and_badges() -> None:
    page = addressed("One_model", **QUERY).run()
    html = made(page)
    body = html.rpartition("</script>")[2] + html.partition("<main>")[2][:3000]
    assert "✓ proved" in body
    assert html.count("<figcaption>") >= 3
    assert "Training accuracy" in html
    page.run()  # what was drawn before is forgotten
    assert made(page).count("<figcaption>") == html.count("<figcaption>")


def test_a_closed_fold_is_not_sent_and_yet_reported() -> None:
    pages = [addressed("One_model", **QUERY).run(), opened("One_model", **QUERY)]
    assert [len(page.get("plotly_chart")) for page in pages] == [0, 3]
    assert [len(stills(page)) for page in pages] == [2, 2]
    assert [len(page.table) for page in pages] == [0, 1]
    assert [len(page.latex) > 0 for page in pages] == [False, True]
    parts = [set(page.session_state["dpviz.recorder"].parts) for page in pages]
    assert parts[0] == parts[1] >= {"attacker", "weights", "gap"}
    code = [page.session_state["dpviz.recorder"].code for page in pages]
    assert code[0] == code[1] != []
    for name in ("attacker", "weights", "gap"):
        waiting, shown = (page.session_state["dpviz.recorder"].parts[name] for page in pages)
        assert not isinstance(waiting, Chart), "a closed fold's picture is not made"
        made_now = waiting()
        assert made_now.words == shown.words
        assert made_now.figure.to_json() == shown.figure.to_json()


#: page -> least number of charts in its report, and what its answer says
ANSWERS = {
    "Story": (3, "at ε = 1 has"),
    "One model": (4, "at ε = 1 has"),
    "Trade-off": (1, "ε = 1"),
    "Groups": (2, "points apart"),
    "Sensitivity": (2, "one row changes"),
    "Person": (0, "oise"),
    "Accounting": (5, "the tightest proof needs noise σ"),
    "Guarantees": (1, "methods: "),
    "Audit": (3, "an attacker guesses"),
    "Claims": (1, "claims"),
    "Data": (2, "rows are trained on"),
    "Lessons": (0, "?"),
}


def test_every_page_is_here() -> None:
    assert set(ANSWERS) == {links.FIRST, *(links.title(path.stem) for path in (ROOT / "pages").glob("*.py"))}


def written(name: str, query: dict[str, str]) -> recorder.Recorder:
    """What `dpviz report` writes of a page."""
    return headless.record_page(ROOT / "app.py", headless.page_of(ROOT / "app.py", name), query)


def runs_as_it_stands(document: Document) -> None:
    for language, code in document.repeat:
        if language == "Python":
            exec(code, {})
        else:
            assert main(shlex.split(code)[1:]) == 0, code


def charts_in_light_colours(found: recorder.Recorder) -> dict[str, str]:
    parts = {key: part() if callable(part) else part for key, part in found.parts.items()}
    return {key: light_theme(part.figure).to_json() for key, part in parts.items() if isinstance(part, Chart)}


@pytest.mark.parametrize("name", mostly_long(ANSWERS, "Guarantees"))
def test_the_shell_writes_what_a_page_shows_in_light_colours_and_its_code_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    charts, said = ANSWERS[name]
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watching, "TOGETHER", 0.0)
    # work ends between a drawing and the first look at it
    monkeypatch.setattr(AppTest, "run", lambda page, draw=AppTest.run: (draw(page), until(lambda: not pool.pool().busy)))
    found = written(name, QUERY)
    document = found.document(*found.run)
    html = found.html(*found.run)
    assert said in document.sentence
    assert document.badges
    assert html.count("<figcaption>") >= charts
    assert not any(
        word in re.sub(r"<script.*?</script>", "", html, flags=re.S) for word in ("Traceback", "could not be computed")
    )
    runs_as_it_stands(document)
    monkeypatch.setattr("dpviz.dashboard.frame.page.THEMES", {"light": style.DARK, "dark": style.DARK})
    assert charts_in_light_colours(written(name, QUERY)) == charts_in_light_colours(found)


def test_a_link_gives_its_page(tmp_path: Path, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    out, link = tmp_path / "a.html", LINK.format("Sensitivity") + "&over=lam"
    assert main(["report", link, "--out", str(out)]) == 0
    text = out.read_text()
    assert " over regularisation λ, logarithmic" in text, "what the link says beside the run"
    assert "<h1>How far can one row move what is released?</h1>" in text
    assert link.replace("&", "&amp;") in text
    assert capsys.readouterr().err == ""
    assert "there is no page 'nothing'" in shell.refused(["report", LINK.format("Nothing"), "--out", str(tmp_path / "b.html")])


def test_single_rows_only_where_asked_for(tmp_path: Path) -> None:
    shown = {}
    for rows in ((), ("--rows",)):
        out = tmp_path / "a.html"
        assert main(["report", LINK.format("Person"), *rows, "--out", str(out), "--overwrite"]) == 0
        shown[bool(rows)] = out.read_text()
    named = re.compile(r'class="sentence">[^<]*Row \d+ ')
    assert named.search(shown[True])
    assert "Why exposed" in shown[True]
    assert not named.search(shown[False])
    assert "Why exposed" not in shown[False]
    assert "single real rows are left out" in shown[False]
    assert shown[True].count("<figcaption>") > shown[False].count("<figcaption>")


@pytest.mark.long
@pytest.mark.parametrize("name", [links.FIRST, "Trade-off", "Audit"])  # calls of a run, a sweep and an audit
def test_code_about_a_table_of_ones_own_names_the_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and values hold what shells and Python would obey."""
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age, kinds = rng.integers(18, 90, 300).astype(float), ["a|b", "tech", "none; rm"]
    label = np.where((age > 55) | (rng.random(300) < 0.3), "yes", "no")
    frame = pd.DataFrame({"it's age, years": age, 'job "x" $HOME': rng.choice(kinds, 300), "left out": age, "y": label})
    frame.to_csv("my table.csv", index=False)
    rows = own.from_file(
        Path("my table.csv"),
        target="y",
        positive=["yes"],
        columns=["it's age, years", 'job "x" $HOME'],
        ranges={"it's age, years": [18, 90]},
        categories={'job "x" $HOME': kinds},
    )
    query = QUERY | {"dataset": own.hold(rows)}
    found = written(name, query)
    document = found.document(*found.run)
    assert not any(query["dataset"] in code for _, code in document.repeat)
    runs_as_it_stands(document)


def test_settings_say_what_automatic_hyperparameters_are() -> None:
    settings = dict(settings_of(dpviz.RunSpec("teaching", mechanism="rsgd-ar")))
    knobs = dpviz.list_mechanisms()["rsgd-ar"].knobs()
    assert all(float(str(settings[knobs[name].label])) > 0 for name in ("epochs", "batch_size", "step_size"))
    assert settings["Failure probability δ"] == "1e-05"
    assert float(str(settings["Regularisation λ"])) > 0, "the λ of the rule"


def page(**query: str) -> AppTest:
    made = addressed("One_model", **({"mechanism": "output-gaussian", "v": "1"} | query))
    made.session_state["fold-release"] = True
    return made.run()


def click(made: AppTest, *boxes: str) -> AppTest:
    for name, label in sections.SWITCHES.items():
        next(box for box in made.checkbox if box.label == label).set_value(name in boxes)
    (button,) = (one for one in made.button if one.label.startswith("Train a model"))
    return button.click().run()


def released(made: AppTest) -> tuple[ReleasedModel, str]:
    content, _ = made.session_state["observed.release"].results[-1]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return ReleasedModel.from_json(archive.read("model.json")), archive.read("card.md").decode()


def test_each_click_gives_another_model_and_no_seed_of_the_address_is_used() -> None:
    first, card = released(click(page(seed="5")))
    second, _ = released(click(page(seed="5")))
    assert "proved" in str(first.privacy["status"])
    assert "Gaussian" in card
    assert not np.array_equal(first.theta, second.theta), "a model from a seed gives its noise back"


def test_what_the_shell_refuses_is_refused_until_its_switch_is_set() -> None:
    claimed = page(mechanism="non-private")
    click(claimed)
    (said,) = (one.value for one in claimed.error)
    assert "no proof" in said
    assert sections.SWITCHES["i-know-this-is-not-proved"].lower() in said, "the control, and not the shell's switch"
    assert "observed.release" not in claimed.session_state
    (said,) = (one.value for one in click(claimed, "i-know-this-is-not-proved").success)
    assert "proved: nothing" in said
    claimed.query_params["epsilon"] = "2"
    assert not claimed.run().success, "a model of another run is not offered"


def test_the_app_asks_what_the_shell_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its switches are those of `dpviz release`, and they reach the same function; the rest is the shell's."""
    given: list[dict[str, Any]] = []

    def refuse(spec: Any, **how: Any) -> None:
        given.append(how | {"thread": threading.current_thread().name})
        raise InvalidInput("x", "refused", "No.")

    monkeypatch.setattr(sections, "release", refuse)
    made = page()
    (commands,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    switches = {
        text[2:]
        for action in commands.choices["release"]._actions
        if isinstance(action, argparse._StoreTrueAction)
        for text in action.option_strings
        if text.startswith("--") and text not in ("--json", "--quiet")
    }
    assert set(sections.SWITCHES) == switches - {"private-ranges"}
    click(made, *switches)
    click(made)
    names = ("all_rows", "ranges_from_data", "unproved")
    assert [[how[name] for name in names] for how in given] == [[True] * 3, [False] * 3]
    assert "observed.release" not in made.session_state
    assert all(one.pop("thread").startswith(THREADS) for one in given)


@pytest.mark.parametrize(
    ("demo", "query", "said"),
    [("0", {"dataset": "census-2000", "ranges": "private"}, "dpviz release table.csv"), ("1", {}, "releases no model")],
)
def test_private_ranges_are_released_by_the_shell_and_a_demonstration_releases_nothing(
    demo: str, query: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEMO, demo)
    made = page(**query)
    assert not [one for one in made.button if one.label.startswith("Train a model")]
    assert any(said in one.value for one in [*made.caption, *made.markdown])
