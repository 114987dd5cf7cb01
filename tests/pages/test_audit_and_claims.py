"""The pages Audit and Claims without a browser."""

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from support import until
from support_pages import PAGES, addressed, opened, settled, text, with_open_folds

import dpviz
from dpviz.auditing import runs as audit_runs
from dpviz.auditing import survey
from dpviz.dashboard.audit import attack
from dpviz.dashboard.jobs import pool
from dpviz.papers import saved
from dpviz.papers.claims import claims_of, list_claims


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_runs, "ROWS", 60)


def metrics(page: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in page.metric}


def test_each_page_with_an_epsilon_links_to_audit_and_claims() -> None:
    page = with_open_folds(addressed("", mechanism="rsgd-ar", points="2", methods="rsgd-ar")).run()
    for name in ("One_model", "Trade-off", "Sensitivity", "Person", "Accounting"):
        page.switch_page(str(PAGES[name])).run()
        labels = [link.proto.label for link in page.get("page_link")]
        assert any(label.startswith("Attack ") for label in labels), name
        assert any("claims of papers about it" in label for label in labels), name


def test_a_wrong_claim_is_red_in_words_and_sign() -> None:
    page = settled(opened("Audit", mechanism="dbdp-pi", runs="200", pair="worst-case"))
    shown = metrics(page)
    assert shown["Claimed ε"] == "1"
    assert shown["Proved ε"] == "none"
    assert float(shown["Audited ε, at least"]) > 1
    assert float(shown["Most that 200 models can show"]) > float(shown["Audited ε, at least"])
    assert "claim exceeded" in text(page)
    assert any("✗" in (m.delta or "") for m in page.metric)


def test_a_right_claim_is_never_verified() -> None:
    page = settled(opened("Audit", mechanism="output-gaussian", runs="200", pair="worst-case"))
    said = text(page)
    assert "no violation found" in said
    assert "verified" not in said
    assert "Under an assumption" in said
    assert "ε = 1 allows up to 55.3" in said.replace("\xa0", " ")  # the same number as on the first page
    assert metrics(page)["Proved ε"] == "1"


def test_more_right_guesses_than_are_allowed_are_set_beside_chance() -> None:
    spec = dpviz.RunSpec(dataset="teaching", mechanism="output-gaussian", epsilon=1.0, seeds=1)
    result = dpviz.audit_run(spec, runs=40)
    pair: Any = SimpleNamespace(asks="which row was there")
    for allowed, within in ((result.guessed_right - 0.01, True), (result.guessed_right + 0.01, False)):
        said = " ".join(attack.sentence(replace(result, allowed=allowed), pair, spec, over=True))
        assert ("inside its confidence limits" in said) == within


@pytest.mark.long
def test_one_training_with_canaries_answers_in_a_sentence() -> None:
    page = settled(opened("Audit", mechanism="pidp-sgd", runs="200", canaries="300"))
    said = text(page).replace("\xa0", " ")
    assert "Of 300 canaries in one training the attacker guessed" in said
    assert "the claim is ε = 1, δ = 10⁻⁵: claim exceeded." in said
    assert "expected to detect noise below" in said
    code = next(block.value for block in page.code if "one_run_of" in block.value)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["result"].verdict == "claim exceeded"
    assert f"ε is at least {names['result'].epsilon_lower:.3g}" in said
    majority = settled(opened("Audit", mechanism="majority", runs="200", canaries="100"))
    assert any("one label" in error.value for error in majority.error)
    assert not any("one_run_of" in block.value for block in settled(opened("Audit", mechanism="dp-gd", runs="200")).code)


def test_bad_rows_and_pairs_are_explained() -> None:
    page = settled(opened("Audit", mechanism="output-gaussian", runs="200", pair="label-flip", row="999999"))
    assert "is not among the 320 training rows" in page.warning[0].value
    page = opened("Audit", mechanism="output-gaussian", runs="200", pair="everyone")
    assert any(w.value.startswith("**Which row is attacked**") for w in page.warning)
    page = settled(opened("Audit", mechanism="output-gaussian", runs="200", pair="label-flip", row="x"))
    assert any(w.value.startswith("**Row**") for w in page.warning)


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


def test_verdicts_of_an_earlier_version_are_called_that(monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"by version {dpviz.__version__}." in text(opened("Claims", about="kang-ip"))
    monkeypatch.setattr("dpviz.dashboard.claims.views.__version__", "9.0.0")
    page = opened("Claims", about="kang-ip")
    assert f"by version {dpviz.__version__}; test them again below" in text(page)
    assert "Test it again" in [b.label for b in page.button]


def test_all_claims_stand_in_the_tables_and_bad_filters_are_reported() -> None:
    page = opened("Claims")
    # a browser sends the text of an option: of two with one text it would open the wrong one
    options = next(box for box in page.selectbox if box.label == "Claim").options
    assert len(options) == len(set(options)) == len(list_claims())
    assert sum(len(t.value) for t in page.table) == len(list_claims())
    assert not any("not tested" in str(v) for t in page.table for v in t.value.to_numpy().ravel())
    page = opened("Claims", about="nobody")
    assert any(w.value.startswith("**Claims**") for w in page.warning)
    page = opened("Claims", mechanism="song-sgd", about="mechanism")
    assert page.info


@pytest.mark.long
def test_whole_figures_have_verdicts_too() -> None:
    page = opened("Claims", about="kang-ip")
    closed = len(page.table)
    page.session_state["whole-figures"] = True
    page.run()
    kept = [one for one in saved.load().figures if one.figure.startswith("ip-")]
    assert len(page.table) == closed + 1
    table = page.table[-1].value
    assert len(table) == len(kept) > 0
    assert [verdict[2:] for verdict in table["Verdict"]] == [one.verdict.headline for one in kept]


def test_pictures_of_findings() -> None:
    page = opened("Claims", claim="dbdp-pi-private")
    page.session_state["claim-details"] = True
    page.run()
    assert "dpviz list claims --test dbdp-pi-private" in " ".join(c.value for c in page.code)
    assert len(page.get("plotly_chart")) > 1
