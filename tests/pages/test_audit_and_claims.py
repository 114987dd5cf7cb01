"""The pages Audit and Claims without a browser, with membership attacks on ordinary rows and their pictures."""

import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from support import assert_words, mostly_long, until
from support_jobs import released
from support_pages import PAGES, addressed, opened, settled, text, with_open_folds

import dpviz
from dpviz.auditing import runs as audit_runs
from dpviz.auditing import survey
from dpviz.auditing.attacks.base import list_attacks
from dpviz.dashboard.claims import views
from dpviz.dashboard.jobs import pool
from dpviz.dashboard.jobs.job import State
from dpviz.figures import membership as pictures
from dpviz.figures.style import THEMES
from dpviz.papers import saved
from dpviz.papers.claims import Outcome, claims_of, list_claims


@pytest.fixture(autouse=True)
def _small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_runs, "ROWS", 60)
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))


def metrics(page: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in page.metric}


@pytest.mark.parametrize("name", mostly_long(["One_model", "Trade-off", "Sensitivity", "Person", "Accounting"], "One_model"))
def test_each_page_with_an_epsilon_links_to_audit_and_claims(name: str) -> None:
    page = with_open_folds(addressed("", mechanism="rsgd-ar", points="2", methods="rsgd-ar"))
    page.switch_page(str(PAGES[name])).run()
    labels = [link.proto.label for link in page.get("page_link")]
    assert any(label.startswith("Attack ") for label in labels)
    assert any("claims of papers about it" in label for label in labels)


def test_a_wrong_claim_is_red_in_words_and_sign() -> None:
    page = settled(opened("Audit", mechanism="dbdp-pi", runs="200", pair="worst-case"))
    shown = metrics(page)
    assert (shown["Claimed ε"], shown["Proved ε"]) == ("1", "none")
    assert float(shown["Audited ε, at least"]) > 1
    assert float(shown["Most with 200 models"]) > float(shown["Audited ε, at least"])
    assert "claim exceeded" in text(page)
    assert any("✗" in (m.delta or "") for m in page.metric)


def test_a_right_claim_is_never_verified() -> None:
    page = settled(opened("Audit", mechanism="output-gaussian", runs="200", pair="worst-case"))
    said = text(page)
    assert_words(said, "no violation found", "Under an assumption", absent=("verified",))
    assert "ε = 1 allows up to 55.3" in said.replace("\xa0", " ")  # the same number as on the first page
    assert metrics(page)["Proved ε"] == "1"


def test_a_method_that_releases_a_label_has_no_canaries() -> None:
    page = settled(opened("Audit", mechanism="majority", runs="200", canaries="100"))
    assert any("one label" in error.value for error in page.error)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"pair": "label-flip", "row": "999999"}, "is not among the 320 training rows"),
        ({"pair": "everyone"}, "**Which row is attacked**"),
        ({"pair": "label-flip", "row": "x"}, "**Row**"),
    ],
)
def test_bad_rows_and_pairs_are_explained(query: dict[str, str], words: str) -> None:
    page = settled(opened("Audit", mechanism="output-gaussian", runs="200", **query))
    assert any(words in warning.value for warning in page.warning)


def test_the_board_attacks_all(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: dpviz.list_mechanisms()[name] for name in ("output-gaussian", "dbdp-pi", "majority")}
    monkeypatch.setattr(survey, "list_mechanisms", lambda: few)
    page = opened("Audit", mechanism="output-gaussian", runs="200")
    next(b for b in page.button if b.label == "Audit them all").click().run()
    said = text(settled(page))
    told = "3 mechanisms attacked; claim exceeded: DBDP-ERM, performance improving."
    assert f"{told} For the others that claim anything: no violation found." in said


def test_the_board_shows_what_there_is_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def two(*_: object, **__: object) -> Iterator[survey.Surveyed]:
        yield survey.Surveyed("dbdp", "DBDP-ERM", 1.0, math.nan, 2.0, math.nan, "claim exceeded", "the audit")
        assert go_on.wait(60)
        yield survey.Surveyed("dp-gd", "DP-GD", 1.0, 1.0, 0.5)

    monkeypatch.setattr(survey, "survey", two)
    page = opened("Audit", mechanism="dp-gd", runs="200", epsilon="0.7")
    next(b for b in page.button if b.label == "Audit them all").click().run()
    board = next(job for job in pool.pool().jobs() if job.key.startswith("board") and "0.7" in job.key)
    until(lambda: bool(board.results), "the first audit")
    assert "1 mechanism attacked" in text(page.run())
    go_on.set()
    assert "2 mechanisms attacked" in text(settled(page))


def test_saved_verdicts_are_shown_at_once_and_tested_again_on_request() -> None:
    page = opened("Claims", mechanism="dbdp", about="mechanism", claim="dbdp-noise-rate")
    kept, claims = saved.load(), claims_of("dbdp")
    assert f"Of {len(claims)} claims, " in text(page)
    assert f"{kept.day.day} {kept.day:%B %Y}" in text(page) if kept.day else False
    assert kept.findings["dbdp-noise-rate"].verdict.because in text(page)
    next(b for b in page.button if b.key == "test-dbdp-noise-rate").click().run()
    page = settled(page)
    assert "1 tested again in this session" in text(page)
    again = opened("Claims", mechanism="dbdp", about="mechanism")
    assert "1 tested again in this session" in text(again)


def test_tests_of_claims_can_be_cancelled(monkeypatch: pytest.MonkeyPatch, fresh_pool: None) -> None:
    go = threading.Event()
    monkeypatch.setattr(views, "check", lambda *name, monitor, **how: next(released(go)(monitor)))
    page = opened("Claims").button(key="test-all").click().run()
    assert not any(job.over for job in pool.pool().jobs())
    page.button(key="cancel-tests").click().run()
    assert {job.state for job in pool.pool().jobs()} == {State.CANCELLED}


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ([Outcome.HOLDS], "Of this one claim, 1 holds."),
        ([Outcome.FAILS] * 2, "Of 2 claims, 2 fail."),
        ([Outcome.FAILS, None, *[Outcome.HOLDS] * 2], "Of 4 claims, 2 hold and 1 fails."),
        ([*[Outcome.BETTER] * 2, Outcome.UNDECIDED, Outcome.HOLDS], "Of 4 claims, 1 holds, 2 are surpassed and 1 is undecided."),
        ([None, None], "Of 2 claims, none was tested yet: test them below."),
    ],
)
def test_outcomes_are_counted_in_words(outcomes: list[Outcome | None], said: str) -> None:
    assert views.sentence(outcomes) == said


def test_all_claims_stand_in_the_tables_and_bad_filters_are_reported() -> None:
    page = addressed("Claims").run()
    # a browser sends the text of an option: of two with one text it would open the wrong one
    options = next(box for box in page.selectbox if box.label == "Claim").options
    assert len(options) == len(set(options)) == len(list_claims())
    assert sum(len(t.value) for t in page.table) == len(list_claims())
    assert not any("not tested" in str(v) for t in page.table for v in t.value.to_numpy().ravel())
    page = opened("Claims", about="nobody")
    assert any(w.value.startswith("**Claims**") for w in page.warning)
    page = opened("Claims", mechanism="cms-output", about="mechanism")
    assert page.info


ASKED = {"dataset": "iris", "mechanism": "dp-gd", "attacked": "ordinary", "shadows": "64", "dp-gd.steps": "5"}


def pressed(page: AppTest, label: str) -> AppTest:
    next(button for button in page.button if button.label == label).click()
    page.run()
    return settled(page)


@pytest.mark.long
def test_the_page_says_what_the_engine_finds_and_explains_it_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_attacks()["quantile-regression"], "most_targets", 16)  # each takes a regression
    page = settled(opened("Audit", **ASKED))
    said = text(page)
    names: dict[str, Any] = {}
    exec(next(block.value for block in page.code if "attack_run" in block.value), names)
    found = names["found"]
    assert found.spec == dpviz.RunSpec("iris", mechanism="dp-gd", seeds=found.spec.seeds, params={"steps": 5})
    assert found.sentence(run="DP-GD at ε = 1") in said
    assert "safe" not in said.lower()
    assert "Which row is attacked" not in [box.label for box in page.selectbox]
    numbers, exposed = page.table[0].value, page.table[1].value
    assert len(numbers) == 5
    assert list(map(str, exposed.index[:3])) == list(map(str, found.rows.index[:3]))
    assert "label" in str(exposed.iloc[0])


@pytest.mark.long
def test_influence_and_other_epsilons_are_compared_on_request() -> None:
    page = settled(opened("Audit", **ASKED))
    page = pressed(page, "Compare the rows")
    assert "Rank correlation of influence" in text(page)
    page = pressed(page, "Attack at other ε")
    assert "members at ε = 0.1 and" in text(page)


def test_a_method_that_releases_a_label_is_refused_in_words() -> None:
    page = settled(opened("Audit", dataset="iris", mechanism="majority", attacked="ordinary", shadows="64"))
    assert any("releases one label" in error.value for error in page.error)


def test_curves_are_drawn_on_logarithmic_axes_and_stay_inside() -> None:
    alarms = np.geomspace(0.001, 1, 30)
    found = np.minimum(1, 3 * alarms)
    points = pd.DataFrame({"false_alarms": alarms, "detections": found, "low": found / 2, "high": np.minimum(1, 2 * found)})
    best, none = pictures.Roc("Best", points), pictures.Roc("Nothing", points.assign(detections=0.0, low=0.0, high=0.0))
    fig = pictures.roc(best, [none], THEMES["light"], allowed=(alarms, np.minimum(1, 5 * alarms)), without=best)
    by_name = {trace.name: trace for trace in fig.data if trace.name}
    assert by_name["Best, 95 % limits"].x[0] == pytest.approx(-1)
    assert by_name["Best, 95 % limits"].y[0] == pytest.approx(np.log10(0.3))
    assert by_name["allowed by the guarantee"].y[0] == pytest.approx(np.log10(0.5))
    assert len(by_name["the other attacks"].x) == 0
    assert all(np.isfinite(np.asarray(trace.y, float)).all() for trace in fig.data)
