"""Every page speaks of the run that was chosen, says the same of it as the others, and compares it with a run A that is kept."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest
from support import ONE_OF_EACH_FAMILY, assert_words, mostly_long
from support_pages import ACCOUNTING, PAGES, address, addressed, opened, settled, stills, text

import dpviz
from dpviz.dashboard.components import charts
from dpviz.dashboard.components.recorder import Recorder, get_recorder
from dpviz.dashboard.frame import pinned
from dpviz.dashboard.jobs import cached_runs
from dpviz.experiments.studies import guarantees

pytestmark = pytest.mark.usefixtures("fresh_pool")

#: pages that speak of many methods at the chosen ε, and pages that speak of a run
MANY = ("Trade-off",)
OF_A_RUN = sorted(set(PAGES) - {"Claims", "Lessons"})
#: each page with a method of every second family, beginning with another one than the page before
CASES = [(name, ONE_OF_EACH_FAMILY[(k + shift) % 6]) for k, name in enumerate(OF_A_RUN) for shift in (1, 3, 5)]
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


#: addresses of which each changes the first page's pictures, or those of One model
CHANGES = [
    {},
    *(
        {key: value}
        for key, value in (
            ("epsilon", "0.3"),
            ("seed", "5"),
            ("metric", "balanced-accuracy"),
            ("mechanism", "pidp-sgd"),
            ("lam", "0.1"),
            ("who", "typical"),
            ("trainings", "4"),
            ("bets", "1"),
            ("pinned", "dataset=teaching&seeds=2&epsilon=0.2"),
        )
    ),
]


@pytest.mark.parametrize(("name", "alike"), mostly_long([("", 1), ("One_model", 3)], ("One_model", 3)))
def test_a_picture_that_is_kept_is_the_one_that_would_be_made_anew(name: str, alike: int) -> None:
    def pictures(change: dict[str, str]) -> list[str]:
        return stills(settled(addressed(name, **({"mechanism": "dp-gd"} | change)).run()))

    kept = [pictures(change) for change in CHANGES]
    assert [shown != kept[0] for shown in kept[1:]].count(False) == alike, "the control: addresses change the pictures"
    for change, shown in zip(CHANGES, kept, strict=True):
        charts.still_pictures.clear()
        assert pictures(change) == shown, change


#: page to what it says before the share, and settings of its own
SAID = {
    "": (r"An attacker guesses right at most ([\d.]+)", {}),
    "Accounting": (r"Guesses are right at most ([\d.]+)", {}),
    "Person": (r"right at most ([\d.]+)\s%", {}),
    "Audit": (r"ε = 1 allows up to ([\d.]+)", {"runs": "200"}),
}


@pytest.mark.parametrize("mechanism", mostly_long(["output-gaussian", "dp-gd"], "output-gaussian"))
def test_every_page_has_the_same_bound_on_attacks(mechanism: str) -> None:
    attack = cached_runs.outcome(dpviz.RunSpec("teaching", mechanism=mechanism, epsilon=1.0, seeds=2)).attack
    assert attack is not None
    for name, (pattern, more) in SAID.items():
        page = settled(opened(name, mechanism=mechanism, epsilon="1", **more))
        said = text(page) + "\n".join(str(cell) for table in page.table for cell in table.value.to_numpy().ravel())
        found = re.findall(pattern, said.replace("\u00a0", " "))
        assert found, f"{name or 'the first page'} names no bound"
        assert set(found) == {f"{100 * attack.accuracy:.1f}"}, name


_NOISY = {"dataset": "breast-cancer", "lam": "0.001", "mechanism": "cms-output", "epsilon": "0.01", "seed": "4", "seeds": "3"}
_OTHERS = ("Groups", "Sensitivity", "Accounting")


@pytest.mark.parametrize("page", mostly_long(["Audit", "Person", *_OTHERS]))
def test_every_page_about_one_run_says_the_same(page: str) -> None:
    spec = dpviz.RunSpec("breast-cancer", mechanism="cms-output", epsilon=0.01, seed=4, seeds=3, lam=1e-3)
    run = dpviz.run(spec)
    assert run.accuracy.mean() < run.majority.accuracy, "the note is about a model that is worse than guessing"
    assert_words(text(settled(opened(page, **_NOISY))), "Worse than guessing", "Most is lost to noise, which a larger ε")


def test_the_page_of_guarantees_names_the_methods_and_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: dpviz.list_mechanisms()[name] for name in ("cms-output", "pidp-sgd")}
    monkeypatch.setattr(guarantees, "list_mechanisms", lambda: few)
    assert_words(
        text(settled(opened("Guarantees", **_NOISY))),
        "No more accurate than the majority label",
        "Output perturbation (CMS): Most is lost to noise, which a larger ε",
        absent=("PIDP-SGD: most",),
    )
    assert_words(
        text(settled(opened("Guarantees", **_NOISY, metric="balanced-accuracy"))),
        "No better than the majority label, which has balanced accuracy 50.0",
        absent=("more accurate",),
    )


OF_PAGES = {"Person": {"mechanism": "outpert-gd"}, "": {"model": "mlp-12", "metric": "recall-at-precision-50"}}
KINDS = ("number_input", "text_input", "slider", "select_slider", "selectbox", "radio", "multiselect", "toggle", "checkbox")


def controls(page: AppTest) -> Iterator[Any]:
    for kind in KINDS:
        yield from page.get(kind)


def told(page: AppTest) -> list[str]:
    return [one.key for one in controls(page) if one.proto.set_value]


@pytest.mark.parametrize("name", mostly_long(["", "Trade-off", "Person"], "Person"))
def test_a_page_that_is_drawn_again_tells_nothing_of_its_controls(name: str) -> None:
    page = opened(name, **OF_PAGES.get(name, {}))
    assert told(page)  # the first time, of those that the address sets
    settled(page).run()  # the methods that are drawn follow when all are measured
    assert list(controls(page))
    assert not told(page)


def test_a_run_is_kept_swapped_and_dropped() -> None:
    page = opened("One_model", epsilon="0.5", mechanism="cms-output")
    page.button(key="keep-a").click().run()
    page.select_slider(key="epsilon").set_value(5.0).run()
    assert parse_qs(address(page)["pinned"])["epsilon"] == ["0.5"]
    assert address(page)["epsilon"] == "5.0"
    assert "B against A: accuracy is " in text(page)
    differ = next(t.value for t in page.table if "Settings that differ" in t.value.index).loc["Settings that differ"]
    assert [text.replace("\\", "") for text in differ] == ["Privacy budget ε 0.5", "Privacy budget ε 5"], (
        "defaults are no difference"
    )
    page.button(key="swap").click().run()
    assert page.select_slider(key="epsilon").value == 0.5
    assert parse_qs(address(page)["pinned"])["epsilon"] == ["5.0"]
    page.button(key="drop").click().run()
    assert "pinned" not in page.query_params
    assert "B against A" not in text(page)


A = dpviz.RunSpec("teaching", mechanism="output-gaussian", epsilon=0.5, seeds=2)
#: page, column of its table, what its picture holds
WITH_A = {
    "Accounting": ("", '"name":"A"'),
    "Sensitivity": ("", "A: Output perturbation"),
    "Trade-off": ("Against A", "<b>A</b>"),
    "Groups": ("A: accuracy", '"name":"A"'),
    "Person": ("A", ""),
    "Guarantees": ("Against A", "<b>A</b>"),
    "Audit": ("", "A allows"),
}


def pictures(page: AppTest) -> str:
    """All charts of a page as text."""
    found: list[Any] = [chart.proto.spec or chart.proto.figure.spec for chart in page.get("plotly_chart")]
    return "\n".join(json.dumps(json.loads(spec), separators=(",", ":"), ensure_ascii=False) for spec in found)


@pytest.mark.long
@pytest.mark.parametrize("name", WITH_A)
def test_a_stays_on_every_page(name: str) -> None:
    column, mark = WITH_A[name]
    query = {"mechanism": "output-gaussian", "epsilon": "2", "pinned": pinned.PINNED.write(A)}
    page = settled(settled(opened(name, **query)))  # the ranking chooses the methods of the sweep
    assert "A is Output perturbation (Gaussian) at ε = 0.5" in text(page)
    if column:
        assert any(str(head).replace("\\", "").startswith(column) for table in page.table for head in table.value.columns)
    assert not mark or mark in pictures(page)
    page.button(key="drop").click().run()
    assert "pinned" not in page.query_params
    assert "A is Output" not in text(page)
    page.button(key="keep-a").click().run()
    assert page.query_params["pinned"]


def test_the_map_marks_rows_whose_noise_differs_in_a() -> None:
    a = dpviz.RunSpec("teaching", mechanism="pidp-sgd", epsilon=0.5, seeds=2)
    page = settled(opened("Person", mechanism="output-gaussian", pinned=pinned.PINNED.write(a)))
    assert " differ in A" in pictures(page)
    assert "moves its model most" in text(page)


def test_a_run_on_other_rows_is_named_and_not_drawn() -> None:
    other = dpviz.RunSpec("breast-cancer", mechanism="output-gaussian", epsilon=0.5, seeds=2)
    page = settled(opened("Trade-off", methods="output-gaussian", pinned=pinned.PINNED.write(other)))
    assert "is trained on other rows" in text(page)
    assert all("Against A" not in "".join(map(str, table.value.columns)) for table in page.table)
