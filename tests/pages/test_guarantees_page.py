"""The page of guarantees without a browser."""

import pytest
from support_pages import opened, settled, text

import dpviz
from dpviz.experiments.studies import guarantees
from dpviz.mechanisms.attack import Attacker
from dpviz.papers import saved
from dpviz.papers.deployments import DEPLOYMENTS

_FEW = ("majority", "output-gaussian", "dp-gd", "dbdp-pi", "dbdp")


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: dpviz.list_mechanisms()[name] for name in _FEW}
    monkeypatch.setattr(guarantees, "list_mechanisms", lambda: few)


def test_the_table_says_what_is_proved_claimed_and_refuted_and_can_be_sorted() -> None:
    page = settled(opened("Guarantees", seed="7"))
    assert "4 methods: 2 proved, 1 paper's claim, 1 refuted by audit." in text(page)
    assert "DP-GD at ε = 1: ✓ proved: ε = 1, δ = 10⁻⁵" in text(page), "in the words of the badge"
    found = page.table[0].value
    shown = {name.replace("\\", ""): str(status).replace("\\", "") for name, status in found["Status"].items()}
    assert shown["DBDP-ERM, performance improving"].startswith("✗ refuted by audit")
    assert shown["DP-GD"] == "✓ proved"
    assert set(saved.refuted()) >= {"dbdp-pi"}
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
    for code in page.code:
        if "attacker=Attacker" in code.value:
            break
    else:
        pytest.fail("the call that repeats the table names the attacker")


def test_published_deployments_are_ordered_and_sourced() -> None:
    assert [one.epsilon for one in DEPLOYMENTS] == sorted(one.epsilon for one in DEPLOYMENTS)
    assert all(one.source.startswith("https://") and one.delta < 1e-5 for one in DEPLOYMENTS)
