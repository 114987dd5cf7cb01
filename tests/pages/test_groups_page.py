"""The pages Groups and Guarantees without a browser."""

import pytest
from support import assert_words
from support_pages import opened, settled, text

import dpviz
from dpviz.dashboard.groups import over_epsilon
from dpviz.experiments.studies import guarantees
from dpviz.papers import saved
from dpviz.papers.deployments import DEPLOYMENTS

PAGE = "Groups"


def test_a_moved_threshold_changes_the_matrix_and_warns() -> None:
    page = opened(PAGE, dataset="census-1000", group="age", cuts="30,50")
    assert not page.warning
    before = page.table[-1].value
    page.number_input(key="own.threshold").set_value(0.8).run()
    assert "not covered by ε" in page.warning[0].value
    assert not before.equals(page.table[-1].value)
    groups = next(t.value for t in page.table if "Test rows" in t.value.columns)
    assert list(groups.index) == ["below 30", "30 to 50", "50 or more"]
    assert over_epsilon._apart("accuracy", 1e-4) == "0.0 points", "a gap is a number, also where it is none"
    page.selectbox(key="own.of").set_value("mean_score").run()
    assert_words(text(page), "mean score is −", "Largest minus smallest mean score")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"mechanism": "majority"}, "no scores here"),
        ({"dataset": "iris", "group": "species"}, "Choose another column"),
        ({"dataset": "census-1000", "group": "region", "cuts": "3"}, "holds text and cannot be cut"),
        ({"cuts": "3,2"}, "**Cut a number at**"),
    ],
)
def test_what_cannot_be_shown_is_said(query: dict[str, str], words: str) -> None:
    page = opened(PAGE, **query)
    assert words in " ".join(said.value for said in (*page.info, *page.error, *page.warning))


_FEW = ("majority", "output-gaussian", "dp-gd", "dbdp-pi", "dbdp")


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: dpviz.list_mechanisms()[name] for name in _FEW}
    monkeypatch.setattr(guarantees, "list_mechanisms", lambda: few)


def test_the_table_says_what_is_proved_claimed_and_refuted_and_can_be_sorted() -> None:
    page = settled(opened("Guarantees", seed="7"))
    assert_words(
        text(page),
        "4 methods: 2 proved, 1 paper's claim, 1 refuted by audit.",
        "DP-GD at ε = 1: ✓ proved: ε = 1, δ = 10⁻⁵",  # in the words of the badge
    )
    found = page.table[0].value
    shown = {name.replace("\\", ""): str(status).replace("\\", "") for name, status in found["Status"].items()}
    assert shown["DBDP-ERM, performance improving"].startswith("✗ refuted by audit")
    assert shown["DP-GD"] == "✓ proved"
    assert set(saved.refutations()) >= {"dbdp-pi"}
    best = dpviz.run(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, seed=7)).accuracy.mean()
    assert f"{100 * best:.1f}" in found["Accuracy"]["DP-GD"]
    page.selectbox(key="own.metric").set_value("log-loss").run()
    loss = dpviz.run(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, seed=7)).metrics["log_loss"].mean()
    assert f"{loss:.3f}" in page.table[0].value["Log loss"]["DP-GD"], "no method is trained again for another metric"
    by_name = settled(opened("Guarantees", seed="7", order="name")).table[0].value
    assert [name.lower() for name in by_name.index] == sorted(name.lower() for name in by_name.index)


def test_published_deployments_are_ordered_and_sourced() -> None:
    assert [one.epsilon for one in DEPLOYMENTS] == sorted(one.epsilon for one in DEPLOYMENTS)
    assert all(one.source.startswith("https://") and one.delta < 1e-5 for one in DEPLOYMENTS)
