"""The first page without a browser: five scenes, presented one by one, moved by itself and by keys."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st
import support_pages
from streamlit.testing.v1 import AppTest
from support import ONE_OF_EACH_FAMILY, mostly_long
from support_pages import address, settled, stills, text

import dpviz
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.story import playing
from dpviz.experiments.studies import decision_boundary, inspected, story

opened = partial(support_pages.opened, "")
DATA = ("teaching", "breast-cancer", "iris", "census-1000")
CASES = list(zip(DATA * 2, ONE_OF_EACH_FAMILY, strict=False))


def scenes(page: AppTest) -> list[str]:
    return [one.value for one in page.header]


@pytest.mark.parametrize(("dataset", "mechanism"), mostly_long(CASES, *CASES[:1]))
def test_five_scenes_show_the_run_of_the_sidebar(dataset: str, mechanism: str) -> None:
    page = settled(opened(dataset=dataset, mechanism=mechanism))
    assert not page.error
    assert scenes(page) == ["The line moves", "What it costs", "One person leaves", "Someone bets", "Twice"]
    proved = dpviz.run(dpviz.RunSpec(dataset, mechanism=mechanism, seeds=2)).calibration.proved_budget is not None
    assert len(stills(page)) == 3 + 2 * proved, "where nothing is proved nothing adds up and no bet is limited"


def test_the_person_of_the_story_is_retrained_without_and_is_the_same_in_the_bet() -> None:
    said = text(settled(opened(bets="true")))
    spec = dpviz.RunSpec("teaching", seeds=2)
    gone = story.departure(spec, dpviz.run(spec).theta)
    influence = inspected.row_influence(dpviz.RunSpec("teaching", seeds=2))
    assert gone.row_id == inspected.inspect(dpviz.RunSpec("teaching", seeds=2)).row_ids[influence.frame()["rank"].idxmin()]
    exact = influence.leave_one_out([inspected.inspect(dpviz.RunSpec("teaching", seeds=2)).at(gone.row_id)]).norm[0]
    assert gone.moved == pytest.approx(exact)
    assert f"Row {gone.row_id} moves the model by **{exact:.3g}**" in said
    assert "400 models this attacker is right" in said
    assert "another" not in said
    other = settled(opened(who="typical"))
    assert f"Row {gone.row_id} " not in text(other)


def test_scenes_never_show_another_tables_person(monkeypatch: pytest.MonkeyPatch) -> None:
    page = settled(opened())
    monkeypatch.setattr(tasks, "PATIENCE", 0.0)  # the page is drawn before the new results are there
    page.selectbox(key="dataset").set_value("breast-cancer").run()
    assert not page.exception
    assert not settled(page).exception


def test_the_best_bet_is_right_as_often_as_it_says() -> None:
    for accuracy in (0.5, 0.553, 0.9, 1.0):
        cloud = story.best_bet(accuracy)
        assert np.mean((cloud["u"] > 0) == (cloud["side"] == 1)) == pytest.approx(accuracy, abs=1e-3)


def test_twice_is_the_ledgers_composition() -> None:
    page = settled(opened(trainings="2"))
    assert "2 trainings cost ε = 1.47 together" in text(page)
    page.select_slider(key="own.trainings").set_value(3).run()
    assert address(page)["trainings"] == "3"
    assert "3 trainings cost ε = 1.83 together" in text(settled(page))


def test_a_method_that_puts_noise_on_rows_is_one_button_away_and_its_rows_are_marked() -> None:
    page = settled(opened())
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
    page = opened(present="1")
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
    page = opened(seeds="1", epsilon="0.5")
    page.button(key="play").click().run()
    assert shown == list(playing.MARKS)
    assert addresses == {"0.5"}, "each address would be a step of Back"
    assert address(page)["epsilon"] == "10.0"
