"""The pages Audit and Paper claims without a browser."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from support import LIMIT, ONE_OF_EACH_FAMILY, mostly_long, until
from support_pages import settled

import dpviz
from dpviz.auditing import survey
from dpviz.auditing.scores import SCORES
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.audit import attack
from dpviz.dashboard.claims import cards
from dpviz.dashboard.work import pool as jobs
from dpviz.dashboard.work.tasks import Task
from dpviz.papers.claims import list_claims

PAGES = Path(__file__).parents[2] / "pages"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack, "ROWS", 60)


def opened(name: str, **query: str) -> AppTest:
    page = AppTest.from_file(str(next(PAGES.glob(f"*{name}.py"))), default_timeout=LIMIT)
    for key, value in ({"dataset": "teaching", "seeds": "2"} | query).items():
        page.query_params[key] = value
    page.run()
    assert not page.exception
    return page


def words(page: AppTest) -> str:
    return " ".join(m.value for m in [*page.markdown, *page.caption]).replace("\\", "")


def metrics(page: AppTest) -> dict[str, str]:
    return {m.label: m.value for m in page.metric}


def test_a_wrong_claim_is_red_in_words_and_sign() -> None:
    page = settled(opened("Audit", mechanism="dbdp-pi", runs="200"))
    shown = metrics(page)
    assert shown["Claimed ε"] == "1"
    assert shown["Proved ε"] == "none"
    assert float(shown["Audited ε, at least"]) > 1
    assert float(shown["Ceiling for N = 200"]) > float(shown["Audited ε, at least"])
    assert "claim exceeded" in words(page)
    assert any("✗" in (m.delta or "") for m in page.metric)


def test_a_right_claim_is_never_verified() -> None:
    page = settled(opened("Audit", mechanism="output-gaussian", runs="200"))
    said = words(page)
    assert "no violation found" in said
    assert "verified" not in said
    assert "Under an assumption" in said
    assert metrics(page)["Proved ε"] == "1"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"pair": "most-influential"}, "moves the model most"),
        ({"pair": "label-flip"}, "label flipped"),
        ({"pair": "two-rows"}, "replaced by a copy of row"),
    ],
)
def test_pairs_from_the_data(query: dict[str, str], expected: str) -> None:
    page = settled(opened("Audit", mechanism="output-gaussian", runs="200", **query))
    assert expected in words(page)
    assert page.query_params["pair"] in (query["pair"], [query["pair"]])


def test_bad_rows_and_pairs_are_explained() -> None:
    page = settled(opened("Audit", mechanism="output-gaussian", runs="200", pair="label-flip", row="999999"))
    assert "is not among the 320 training rows" in page.warning[0].value
    page = opened("Audit", mechanism="output-gaussian", runs="200", pair="everyone")
    assert any(w.value.startswith("**pair**") for w in page.warning)
    page = settled(opened("Audit", mechanism="output-gaussian", runs="200", pair="label-flip", row="x"))
    assert any(w.value.startswith("**row**") for w in page.warning)


#: attacks take hundreds of trainings, and what is asked here does not depend on their length
SHORT = {f"{name}.epochs": "2" for name in ("dp-sgd", "dp-lssgd", "bassily-sgd")}


@pytest.mark.parametrize("mechanism", mostly_long(dpviz.list_mechanisms(), *ONE_OF_EACH_FAMILY))
def test_every_mechanism_can_be_attacked(mechanism: str) -> None:
    page = settled(opened("Audit", mechanism=mechanism, runs="200", **SHORT))
    assert not page.error
    assert metrics(page)


def test_the_board_attacks_all(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: dpviz.list_mechanisms()[name] for name in ("output-gaussian", "dbdp-pi", "input-perturbation", "majority")}
    monkeypatch.setattr(survey, "list_mechanisms", lambda: few)
    page = opened("Audit", mechanism="output-gaussian", runs="200")
    next(b for b in page.button if b.label == "Audit them all").click().run()
    said = words(settled(page))
    told = "4 mechanisms attacked; claim exceeded: DBDP-ERM, performance improving, Input perturbation (Kang)."
    assert f"{told} For the others that claim anything: no violation found." in said


def test_claims_are_tested_on_request_and_kept() -> None:
    page = opened("Paper_claims", mechanism="dbdp", about="mechanism")
    assert "Not tested yet." in words(page)
    next(b for b in page.button if b.key == "test-dbdp-noise-rate").click().run()
    page = settled(page)
    assert "1 fails" in words(page)
    again = opened("Paper_claims", mechanism="dbdp", about="mechanism")
    assert "tested now: 1" in words(again)


def test_all_claims_have_a_card_and_bad_filters_are_reported() -> None:
    page = opened("Paper_claims")
    assert len(page.header) == len(list_claims())
    page = opened("Paper_claims", about="nobody")
    assert any(w.value.startswith("**about**") for w in page.warning)
    page = opened("Paper_claims", mechanism="song-sgd", about="mechanism")
    assert page.info


@pytest.mark.parametrize("name", [c.id for c in list_claims().values() if c.id in ("numerical-tighter", "dbdp-pi-private")])
def test_pictures_of_findings(name: str) -> None:
    claim = list_claims()[name]
    cards.submit([claim], False, 0)
    page = settled(opened("Paper_claims", about=claim.paper))
    page.toggle(key=f"show-{name}").set_value(True).run()
    assert not page.exception
    assert f"dpviz claims {name}" in " ".join(c.value for c in page.code)


def _later(results: list[int]) -> Callable[[Any], Any]:
    def work(monitor: Any) -> Any:
        for k, r in enumerate(results):
            monitor(k / len(results))
            yield r

    return work


def _endless(monitor: Any) -> Any:
    while True:
        time.sleep(0.002)
        monitor(0.5)
        yield 1


def test_tasks_stream_cancel_fail_and_are_done_once() -> None:
    pool = jobs.Pool()
    done = pool.submit(Task("a", _later([1, 2, 3]), keep_all=True, series="one"))
    assert pool.submit(Task("a", _later([9]))) is done
    slow = pool.submit(Task("b", _endless, series="one"))

    def broken(monitor: Any) -> Any:
        yield 1
        raise InvalidInput("field", "is wrong", "Change it.")

    bad = pool.submit(Task("c", broken, series="one"))
    queued = pool.submit(Task("d", _later([1]), series="one"))
    assert pool.position(queued) >= 2, "one after the other"
    pool.cancel(queued)
    until(lambda: bool(slow.results))
    pool.cancel(slow)
    until(lambda: bad.over and slow.over)
    assert (done.state, done.results) == ("done", [1, 2, 3])
    assert slow.state == "cancelled"
    assert slow.results == [1]
    assert (bad.state, bad.problem) == ("failed", ("field: is wrong", "Change it."))
    assert (queued.state, queued.results) == ("cancelled", [])
    pool.remove(queued)
    again = pool.submit(Task("d", _later([5])))
    assert again is not queued
    assert again.wait(LIMIT)
    assert again.results == [5]


def test_the_picture_of_a_share_that_stays_ends_at_all_of_it() -> None:
    page = opened("Paper_claims", about="mechanism", mechanism="pidp-sgd")
    page.button(key="test-pidp-fewer-noised").click().run()
    page = settled(page)
    page.toggle(key="show-pidp-fewer-noised").set_value(True).run()
    assert not page.exception
    said = "\n".join(c.value for c in page.caption).replace("\\", "")
    assert "census-10000: rows that receive noise, %." in said
    assert "standard deviation" not in said  # nothing was drawn at random
    layout = json.loads(page.get("plotly_chart")[0].proto.spec)["layout"]
    assert layout["yaxis"]["range"] == [0, 103]


def test_attackers_are_named_in_words() -> None:
    for score, said in SCORES.items():
        assert said in attack.attacker_words(score)
        assert said in attack.attacker_words(f"{score} (with its setting)")
