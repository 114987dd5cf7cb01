"""Lessons: every link opens its page, every answer is the engine's, and the page says so."""

import dataclasses
import threading

import pytest
from streamlit.testing.v1 import AppTest
from support import LIMIT
from support_pages import PAGES, ROOT, Page, opened, settled, text

import dpviz
from dpviz.dashboard.components.lessons import LESSONS, Lesson
from dpviz.dashboard.frame import links
from dpviz.dashboard.jobs.pool import THREADS
from dpviz.dashboard.lessons import view
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
    more = dataclasses.replace(lesson.spec, epsilon=2.0)
    assert not lesson.measure(more).accepts(55.3)


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
    for key, value in lesson.address().items():
        page.query_params[key] = value
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
    assert f"✗ **Not yet.** Hint: {BY_ID['sensitivity'].hint}" in text(page)
    assert "10 times" not in text(page), "the solution is left to a second try"
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
    page = Page(ROOT / "app.py", default_timeout=LIMIT)
    page.query_params["dataset"] = "teaching"
    page.run().switch_page("pages/93_Lessons.py")
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
    assert any(w.value.startswith("**Answers**") for w in opened("Lessons", given="nothing", lesson="attack").warning)


def test_a_page_that_a_lesson_opened_asks_its_question_and_does_not_answer_it() -> None:
    lesson = BY_ID["sensitivity"]
    page = opened("Sensitivity", mechanism="output-gaussian", task=lesson.id)
    assert lesson.question in text(page)
    assert "with ten times the rows" not in text(page)
    assert "with ten times the rows" in text(opened("Sensitivity", mechanism="output-gaussian")), "the control"


@pytest.mark.long
def test_the_sheet_holds_every_lesson_with_the_engines_answers() -> None:
    page = Page(ROOT / "app.py", default_timeout=LIMIT)
    page.query_params["dataset"] = "teaching"
    page.run().switch_page("pages/93_Lessons.py")
    page.query_params["lesson"] = "sheet"
    page = settled(page.run())
    assert [s.value for s in page.subheader] == [f"{k}. {lesson.title}" for k, lesson in enumerate(LESSONS, 1)]
    for lesson in LESSONS:
        found = lesson.measure(lesson.spec)
        accepts_itself_and_no_other(lesson, found)
        shown = view.sentence(lesson, found).replace("\u00a0", " ")
        assert f"Answer: **{shown}**." in text(page)
