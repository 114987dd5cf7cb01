"""Every page speaks of the run that was chosen: its answer and its pictures declare what they drew, and name it."""

import pytest
from support import ONE_OF_EACH_FAMILY, mostly_long
from support_pages import ACCOUNTING, PAGES, opened, settled

import dpviz
from dpviz.dashboard.components.recorder import Recorder, get_recorder

pytestmark = pytest.mark.usefixtures("fresh_pool")

#: pages that speak of many methods at the chosen ε, and pages that speak of a run
MANY = ("Trade-off",)
OF_A_RUN = sorted(set(PAGES) - {"Claims", "Lessons"})
#: each page with a method of every second family, beginning with another one than the page before
CASES = [(name, ONE_OF_EACH_FAMILY[(k + shift) % 6]) for k, name in enumerate(OF_A_RUN) for shift in (0, 2, 4)]
QUERY = {"dataset": "iris", "epsilon": "0.7", "seeds": "2", "runs": "200", "methods": "dp-gd", "points": "2"}


def drawn(name: str, **query: str) -> Recorder:
    page = settled(opened(name, **(QUERY | query)))
    assert not page.error
    return get_recorder(page.session_state)


@pytest.mark.parametrize(("name", "mechanism"), mostly_long(CASES, *CASES[::3]))
def test_answers_and_pictures_are_about_the_run_of_the_sidebar(name: str, mechanism: str) -> None:
    found = drawn(name, mechanism=mechanism)
    chosen = dpviz.resolve(dpviz.RunSpec("iris", mechanism=mechanism, epsilon=0.7, seeds=2)).key()
    assert "headline" in found.drew
    wrong = [part for part, run in found.drew.items() if dpviz.resolve(run).key() != chosen]
    assert not wrong, f"these show another run: {wrong}"
    assert found.run is not None
    labels = {key: cls.label for key, cls in dpviz.list_mechanisms().items()}
    said = " ".join([found.answers[0], found.document(*found.run).subject])
    assert labels[mechanism] in found.document(*found.run).subject
    assert "ε = 0.7" in said
    if name not in (*MANY, "Data"):
        assert labels[mechanism] in found.answers[0]
        longer = [label for label in labels.values() if labels[mechanism] in label]
        others = {label for label in labels.values() if label in said and label not in longer and label not in labels[mechanism]}
        assert not others, f"the answer names {others}"


def test_another_method_is_shown_where_it_is_asked_for_and_is_named() -> None:
    """The control: such a page declares and names the other method."""
    found = drawn(ACCOUNTING, mechanism="pidp-sgd", compare="dp-sgd")
    assert {run.mechanism for run in found.drew.values()} == {"dp-sgd"}
    assert found.run[0].mechanism == "pidp-sgd"
    document = found.document(*found.run)
    assert found.answers[0].startswith("DP-SGD at ε = 0.7")
    assert document.subject.startswith("DP-SGD on ")
    assert ("Mechanism", "DP-SGD · gradient") in document.settings
