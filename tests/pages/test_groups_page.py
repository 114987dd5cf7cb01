"""The pages Groups and Guarantees without a browser."""

import pytest
from support import assert_words
from support_pages import opened, settled, text

import dpviz
from dpviz.dashboard.groups.over_epsilon import EPSILONS
from dpviz.experiments.studies import guarantees
from dpviz.experiments.studies.groups import Grouping, report
from dpviz.experiments.studies.releases import releases
from dpviz.mechanisms.attack import Attacker
from dpviz.papers import saved
from dpviz.papers.deployments import DEPLOYMENTS

PAGE = "Groups"


def test_the_sentence_and_the_table_say_what_the_engine_says() -> None:
    page = opened(PAGE, dataset="census-1000", mechanism="output-gaussian", group="region")
    spec = dpviz.RunSpec("census-1000", mechanism="output-gaussian", seeds=2)
    assert 1.0 in EPSILONS
    found = report(releases(spec, (1.0,)), Grouping("region"))
    here = found.draws.groupby("group")["accuracy"].mean()[found.compared]
    said = text(page).replace("\u00a0", " ")
    assert f"{100 * here.min():.1f} % for “{here.idxmin()}”" in said
    shown = round(100 * here.max(), 1) - round(100 * here.min(), 1)
    assert_words(
        said,
        f"{shown:.1f} points apart",  # the sentence adds up
        f"{100 * found.baseline_gap('non-private'):.1f} without privacy",
    )
    table = next(t.value for t in page.table if "Test rows" in t.value.columns)
    assert table["Test rows"].astype(int).sum() == 200
    assert len(page.get("plotly_chart")) == 6
    assert "No ε covers them" in said


def test_a_moved_threshold_changes_the_matrix_and_warns() -> None:
    page = opened(PAGE, dataset="census-1000", group="age", cuts="30,50")
    assert not page.warning
    before = page.table[-1].value
    page.number_input(key="own.threshold").set_value(0.8).run()
    assert "not covered by ε" in page.warning[0].value
    assert not before.equals(page.table[-1].value)
    groups = next(t.value for t in page.table if "Test rows" in t.value.columns)
    assert list(groups.index) == ["below 30", "30 to 50", "50 or more"]
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


def test_a_tolerated_attacker_gives_every_method_its_own_epsilon() -> None:
    page = settled(settled(opened("Guarantees", seed="7", attacker="tpr=0.05@fpr=0.01")))
    spec = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, seed=7)
    found = guarantees.guarantees(spec, Attacker.parse("tpr=0.05@fpr=0.01"))
    own = {one.spec.mechanism: one for one in found}
    allowed = f"up to ε = {own['dp-gd'].spec.epsilon:.2f} no attacker does better than one who finds 5 % at 1 % false alarms"
    assert allowed in text(page)
    column = page.table[0].value.filter(like="Proved").iloc[:, 0]
    shown = {str(name).replace("\\", ""): value for name, value in column.items()}
    gd, output = (float(str(shown[dpviz.list_mechanisms()[name].label])) for name in ("dp-gd", "output-gaussian"))
    assert gd == pytest.approx(own["dp-gd"].spec.epsilon, rel=0.01)
    assert output == pytest.approx(own["output-gaussian"].spec.epsilon, rel=0.01)
    assert "nothing is proved about DBDP-ERM, so" in text(page).replace("\\", "")
    better = dpviz.run(own["dp-gd"].spec).accuracy.mean()
    assert f"{100 * better:.1f}" in page.table[0].value["Accuracy"]["DP-GD"]
    assert any("attacker=Attacker" in code.value for code in page.code), "the call that repeats the table"


def test_published_deployments_are_ordered_and_sourced() -> None:
    assert [one.epsilon for one in DEPLOYMENTS] == sorted(one.epsilon for one in DEPLOYMENTS)
    assert all(one.source.startswith("https://") and one.delta < 1e-5 for one in DEPLOYMENTS)
