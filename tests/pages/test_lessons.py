"""Lessons, whose answers are the engine's, and the first page, whose five scenes are moved by itself and by keys."""

import dataclasses
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st
import support_pages
from streamlit.testing.v1 import AppTest
from support import LIMIT, ONE_OF_EACH_FAMILY, assert_words, mostly_long
from support_pages import PAGES, ROOT, Page, address, addressed, opened, settled, stills, text

import dpviz
from dpviz.dashboard.components.lessons import LESSONS, Lesson
from dpviz.dashboard.frame import links
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.pool import THREADS
from dpviz.dashboard.lessons import view
from dpviz.dashboard.story import playing
from dpviz.experiments.studies import decision_boundary, inspected, story
from dpviz.experiments.studies.answers import Answer

BY_ID = {lesson.id: lesson for lesson in LESSONS}


def same_run(address: dict[str, str], spec: dpviz.RunSpec) -> bool:
    """Whether an address stands for a run; knobs at their default may be left out of it."""
    read = dpviz.RunSpec.from_query(address)
    return read.build() == spec.build() and dataclasses.replace(read, params={}) == dataclasses.replace(spec, params={})


def test_there_is_a_lesson_for_each_question_and_each_leads_to_a_page() -> None:
    assert len(BY_ID) == len(LESSONS) == 10
    titles = {links.FIRST, *(name.replace("_", " ") for name in PAGES)}
    for lesson in LESSONS:
        assert lesson.page in titles
        assert same_run(lesson.address(), lesson.spec)
        assert lesson.hint
        assert lesson.spec.dataset in dpviz.list_datasets() or lesson.spec.dataset.startswith("census-")


def test_a_wrong_answer_is_noticed() -> None:
    lesson = BY_ID["attack"]
    found = lesson.measure(lesson.spec)
    assert found.accepts(55.3)
    assert not found.accepts(55.9)
    assert not found.accepts(73.1)
    assert not lesson.measure(dataclasses.replace(lesson.spec, epsilon=2.0)).accepts(55.3)


def accepts_itself_and_no_other(lesson: Lesson, found: Answer) -> None:
    assert found.accepts(found.value)
    if isinstance(found.value, float):
        assert found.low <= found.value <= found.high
        assert not found.accepts(found.value * 1.5 + 1)
    else:
        assert set(found.right) < set(lesson.options)
    assert found.evidence["value"].notna().all()


@pytest.mark.parametrize("name", ["attack", "sensitivity", "proved", "tolerated"])
def test_the_engines_answer_accepts_itself_and_no_other(name: str) -> None:
    accepts_itself_and_no_other(BY_ID[name], BY_ID[name].measure(BY_ID[name].spec))


def _page(lesson: Lesson) -> AppTest:
    stem = lesson.page.replace(" ", "_")
    page = Page(PAGES.get(stem, ROOT / "app.py"), default_timeout=LIMIT)
    page.query_params.update(lesson.address())
    return page.run()


#: one lesson of each page
OPENED = sorted({lesson.page: lesson.id for lesson in LESSONS}.values())


@pytest.mark.long
@pytest.mark.parametrize("name", OPENED)
def test_a_link_opens_its_page(name: str) -> None:
    lesson = BY_ID[name]
    page = _page(lesson)
    assert not page.error
    assert [w.value for w in page.warning if w.value.startswith("**")] == []  # bad values in the address
    address = {k: v if isinstance(v, str) else v[-1] for k, v in page.query_params.items()}
    assert same_run(address, lesson.spec)


def test_a_wrong_answer_gets_a_hint_and_a_right_one_the_reason() -> None:
    page = opened("Lessons", lesson="sensitivity")
    page.number_input(key="given-sensitivity").set_value(2.0)
    next(b for b in page.button if b.label == "Check my answer").click().run()
    assert_words(
        text(page),
        f"✗ **Not yet.** Hint: {BY_ID['sensitivity'].hint}",
        absent=("10 times",),  # the solution is left to a second try
    )
    page.number_input(key="given-sensitivity").set_value(10.0)
    next(b for b in page.button if b.label == "Check my answer").click().run()
    assert "✓ **Right.** The answer is **10 times" in text(page)
    assert page.query_params["given"] in ("sensitivity:10", ["sensitivity:10"])
    next(b for b in page.button if b.label.startswith("Next lesson")).click().run()
    assert page.query_params["lesson"] in ("bounds", ["bounds"])


@pytest.mark.usefixtures("fresh_pool")  # another test may have asked for the same answer
def test_answers_are_computed_by_jobs_and_stay_while_other_pages_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def measure(spec: dpviz.RunSpec) -> Answer:
        threads.append(threading.current_thread().name)
        return usual(spec)

    lesson = view.BY_ID["sensitivity"]
    usual = lesson.measure
    monkeypatch.setitem(lesson.__dict__, "measure", measure)
    page = addressed("").run().switch_page("pages/93_Lessons.py")
    page.query_params["lesson"] = "sensitivity"
    page.run()
    page.number_input(key="given-sensitivity").set_value(10.0)
    next(b for b in page.button if b.label == "Check my answer").click().run()
    assert "✓ **Right.**" in text(page)
    assert "1 of 10 answered, 1 right" in page.get("progress")[0].proto.text, "counted at the same click"
    page.switch_page("app.py").run().switch_page("pages/93_Lessons.py").run()
    assert "1 of 10 answered, 1 right" in page.get("progress")[0].proto.text
    assert [name.startswith(THREADS) for name in threads] == [True]


def test_a_link_hands_in_answers_and_bad_ones_are_reported() -> None:
    page = opened("Lessons", given="sensitivity:3,proved:pidp-sgd", lesson="attack")
    table = next(t.value for t in page.table if "Right" in t.value)
    assert list(table["Right"]) == ["not checked"] * 2
    next(b for b in page.button if b.label == "Check them all").click().run()
    table = next(t.value for t in page.table if "Right" in t.value)
    assert list(table["Right"]) == ["✗", "✓"]
    progress = page.get("progress")[0].proto
    assert (progress.value, progress.text) == (20, "2 of 10 answered, 1 right")
    marks = [option[0] for option in page.run().radio(key="own.lesson").options]
    assert [marks[k] for k, lesson in enumerate(LESSONS) if lesson.id in ("sensitivity", "proved")] == ["·", "✓"]
    assert sum(mark in "·✓" for mark in marks) == 2
    assert any(w.value.startswith("**Answers**") for w in opened("Lessons", given="nothing", lesson="attack").warning)


def test_a_page_that_a_lesson_opened_asks_its_question_and_does_not_answer_it() -> None:
    lesson = BY_ID["sensitivity"]
    page = opened("Sensitivity", mechanism="output-gaussian", task=lesson.id)
    assert lesson.question in text(page)
    assert "with ten times the rows" not in text(page)
    assert "with ten times the rows" in text(opened("Sensitivity", mechanism="output-gaussian")), "the control"


@pytest.mark.long
def test_the_sheet_holds_every_lesson_with_the_engines_answers() -> None:
    page = addressed("").run().switch_page("pages/93_Lessons.py")
    page.query_params["lesson"] = "sheet"
    page = settled(page.run())
    assert [s.value for s in page.subheader] == [f"{k}. {lesson.title}" for k, lesson in enumerate(LESSONS, 1)]
    for lesson in LESSONS:
        found = lesson.measure(lesson.spec)
        accepts_itself_and_no_other(lesson, found)
        shown = view.sentence(lesson, found).replace("\u00a0", " ")
        assert f"Answer: **{shown}**." in text(page)


story_page = partial(support_pages.opened, "")
DATA = ("teaching", "breast-cancer", "iris", "census-1000")
STORIES = list(zip(DATA * 2, ONE_OF_EACH_FAMILY, strict=False))


def scenes(page: AppTest) -> list[str]:
    return [one.value for one in page.header]


@pytest.mark.parametrize(("dataset", "mechanism"), mostly_long(STORIES, STORIES[1]))
def test_five_scenes_show_the_run_of_the_sidebar(dataset: str, mechanism: str) -> None:
    page = settled(story_page(dataset=dataset, mechanism=mechanism))
    assert not page.error
    assert scenes(page) == ["The line moves", "What it costs", "One person leaves", "Someone bets", "Twice"]
    proved = dpviz.run(dpviz.RunSpec(dataset, mechanism=mechanism, seeds=2)).calibration.proved_budget is not None
    assert ("nothing can be added up" in text(page)) == (not proved)
    assert len(stills(page)) == 3 + 2 * proved, "where nothing is proved nothing adds up and no bet is limited"


def test_scenes_never_show_another_tables_person(monkeypatch: pytest.MonkeyPatch) -> None:
    page = settled(story_page())
    monkeypatch.setattr(tasks, "PATIENCE", 0.0)  # the page is drawn before the new results are there
    page.selectbox(key="dataset").set_value("breast-cancer").run()
    settled(page)


def test_the_best_bet_is_right_as_often_as_it_says() -> None:
    for accuracy in (0.5, 0.553, 0.9, 1.0):
        cloud = story.best_bet(accuracy)
        assert np.mean((cloud["u"] > 0) == (cloud["side"] == 1)) == pytest.approx(accuracy, abs=1e-3)


def test_a_method_that_puts_noise_on_rows_is_one_button_away_and_its_rows_are_marked() -> None:
    page = settled(story_page())
    assert "Diamonds" not in text(page)
    page.button(key="noising").click().run()
    page = settled(page)
    run = inspected.inspect(dpviz.RunSpec.from_query(address(page)))
    assert run.ever is not None
    assert f"Diamonds: {int(run.ever.sum())} of {len(run.ever)} rows received noise" in text(page)
    assert not [one for one in page.button if one.key == "noising"]


def test_the_plane_of_any_table_is_the_pair_that_separates_best() -> None:
    spec = dpviz.RunSpec("breast-cancer", seeds=2)
    drawn = decision_boundary.plane_of(spec, 2, 31)
    assert drawn.view.names == ("worst radius", "worst concave points")
    made = dpviz.run(spec)
    scores = drawn.scores(made.non_private.theta[None])[0]
    x, y = ((drawn.view.points[:, k] - axis[0]) / (axis[1] - axis[0]) for k, axis in enumerate(drawn.axes))
    at = (1 - x - y) * scores[0, 0] + x * scores[0, 1] + y * scores[1, 0]  # affine on the grid of two by two
    assert np.mean((at > 0) == (drawn.labels > 0)) > 0.9
    apart = decision_boundary.separation(np.c_[drawn.labels, -drawn.labels, np.ones(len(x))], drawn.labels)
    assert not apart.any(), "columns without spread within classes separate nothing that can be measured"


def test_presenter_mode_shows_one_scene_and_keys_that_move_epsilon_and_the_scene() -> None:
    page = story_page(present="1")
    assert scenes(page) == ["The line moves"]
    page.button(key="weaker").click().run()
    assert page.select_slider(key="epsilon").value == 1.12
    page.button(key="stronger").click().run()
    page.button(key="stronger").click().run()
    assert page.select_slider(key="epsilon").value == 0.9
    page.button(key="scene-next").click().run()
    assert (scenes(page), address(page)["scene"]) == (["What it costs"], "2")
    page.button(key="present-switch").click().run()
    assert "present" not in page.query_params
    assert len(scenes(page)) == 5


def test_play_shows_each_epsilon_up_to_the_weakest_in_one_address_and_lets_jobs_work(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, addresses = list[float](), set[str]()

    def pause(seconds: float) -> None:
        shown.append(st.session_state["epsilon"])
        addresses.add(str(st.query_params.get("epsilon")))

    monkeypatch.setattr(playing, "MARKS", playing.MARKS[-3:])
    monkeypatch.setattr(playing, "time", SimpleNamespace(sleep=pause))
    page = story_page(seeds="1", epsilon="0.5")
    page.button(key="play").click().run()
    assert shown == list(playing.MARKS)
    assert addresses == {"0.5"}, "each address would be a step of Back"
    assert address(page)["epsilon"] == "10.0"
