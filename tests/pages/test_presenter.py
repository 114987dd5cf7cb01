"""Presenter mode, ε moved by itself and by keys, and training step by step."""

from functools import partial
from types import SimpleNamespace

import pytest
import streamlit as st
import support_pages
from support_pages import text

from dpviz.dashboard.frame import page
from dpviz.dashboard.jobs import page_priority
from dpviz.dashboard.one_run import playing

opened = partial(support_pages.opened, "")


def test_presenter_mode_shows_the_sentence_one_picture_and_keys_that_move_epsilon() -> None:
    page = opened(present="1")
    assert " is right " in text(page)
    assert len(support_pages.stills(page)) == 1
    assert [e.label for e in page.expander] == ["More settings, compare, report"]
    page.button(key="weaker").click().run()
    assert page.select_slider(key="epsilon").value == 1.12
    page.button(key="stronger").click().run()
    page.button(key="stronger").click().run()
    assert page.select_slider(key="epsilon").value == 0.9
    page.button(key="present-switch").click().run()
    assert "present" not in page.query_params
    assert len(support_pages.stills(page)) > 1


@pytest.mark.long
def test_play_ends_at_the_weakest_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "PAUSE", 0.0)
    page = opened(present="1", epsilon="0.5", seeds="1")
    page.button(key="play").click().run()
    assert page.select_slider(key="epsilon").value == playing.MARKS[-1] == 10
    page.button(key="stronger").click().run()
    assert page.select_slider(key="epsilon").value == 9


def test_play_skips_no_epsilon_where_the_page_is_drawn_anew_before_its_end_and_lets_jobs_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marks, shown, tops = playing.MARKS[:3], list[float](), []

    def top_first() -> None:
        tops.append(1)
        if len(tops) == 3:  # as where a job below has just ended
            st.rerun()

    def pause(seconds: float) -> None:
        assert not page_priority.page_waits(), "the job of the run would step aside"
        shown.append(st.session_state["epsilon"])

    monkeypatch.setattr(playing, "MARKS", marks)
    monkeypatch.setattr(page, "top_first", top_first)
    monkeypatch.setattr(playing, "time", SimpleNamespace(sleep=pause))
    opened(seeds="1").button(key="play").click().run()
    assert shown == list(marks)


def test_training_is_shown_step_by_step_where_the_steps_are_public() -> None:
    page = opened(training="1", metric="roc-auc")
    assert "Training in " in text(page)
    assert "The mean test ROC AUC is 50.0" in text(page), "before the first step all scores are equal"
    page = opened(training="1", mechanism="output-gaussian")
    assert any("no public steps to show" in i.value for i in page.info)
