"""The app releases a model with the questions of the shell, and never what the shell refuses."""

import argparse
import io
import threading
import zipfile
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from support_pages import addressed

from dpviz.cli.main import parser
from dpviz.common.limits import DEMO
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.jobs.pool import THREADS
from dpviz.dashboard.one_run import publishing
from dpviz.releasing import ReleasedModel


def page(**query: str) -> AppTest:
    made = addressed("One_model", **({"mechanism": "output-gaussian", "v": "1"} | query))
    made.session_state["fold-release"] = True
    return made.run()


def click(made: AppTest, *boxes: str) -> AppTest:
    for name, label in publishing.SWITCHES.items():
        next(box for box in made.checkbox if box.label == label).set_value(name in boxes)
    (button,) = (one for one in made.button if one.label.startswith("Train a model"))
    button.click().run()
    assert not made.exception
    return made


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
    assert publishing.SWITCHES["i-know-this-is-not-proved"] in said, "the control, and not the shell's switch"
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

    monkeypatch.setattr(publishing, "release", refuse)
    made = page()
    (commands,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    switches = {
        text[2:]
        for action in commands.choices["release"]._actions
        if isinstance(action, argparse._StoreTrueAction)
        for text in action.option_strings
        if text.startswith("--") and text not in ("--json", "--quiet")
    }
    assert set(publishing.SWITCHES) == switches - {"private-ranges"}
    click(made, *switches)
    click(made)
    names = ("all_rows", "ranges_from_data", "unproved")
    assert [[how[name] for name in names] for how in given] == [[True] * 3, [False] * 3]
    assert "observed.release" not in made.session_state
    assert all(one.pop("thread").startswith(THREADS) for one in given)


def test_private_ranges_are_released_by_the_shell() -> None:
    made = page(dataset="census-2000", ranges="private")
    assert not [one for one in made.button if one.label.startswith("Train a model")]
    assert any("dpviz release table.csv" in one.value for one in [*made.caption, *made.markdown])


def test_a_demonstration_releases_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEMO, "1")
    made = page()
    assert not [one for one in made.button if one.label.startswith("Train a model")]
    assert any("releases no model" in one.value for one in [*made.caption, *made.markdown])
