"""The page of guarantees without a browser."""

from __future__ import annotations

import pytest
from support_pages import opened, settled, text

import dpviz
from dpviz.experiments.studies import guarantees
from dpviz.papers import saved

_FEW = ("majority", "output-gaussian", "dp-gd", "dbdp-pi", "dbdp")


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: dpviz.list_mechanisms()[name] for name in _FEW}
    monkeypatch.setattr(guarantees, "list_mechanisms", lambda: few)


def test_the_table_says_what_is_proved_claimed_and_refuted_and_can_be_sorted() -> None:
    page = settled(opened("Guarantees", seed="7"))
    assert "2 of 4 methods are proved, 1 is only claimed, audits refute 1." in text(page)
    found = page.table[0].value
    shown = {name.replace("\\", ""): str(status).replace("\\", "") for name, status in found["Status"].items()}
    assert shown["DBDP-ERM, performance improving"].startswith("✗ refuted by audit")
    assert shown["DP-GD"] == "✓ proved"
    assert set(saved.refuted()) >= {"dbdp-pi"}
    best = dpviz.run(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, seed=7)).accuracy.mean()
    assert f"{100 * best:.1f}" in found["Accuracy"]["DP-GD"]
    page.selectbox(key="own.metric").set_value("log-loss").run()
    assert not page.exception
    loss = dpviz.run(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, seed=7)).metrics["log_loss"].mean()
    assert f"{loss:.3f}" in page.table[0].value["Log loss"]["DP-GD"], "no method is trained again for another metric"
    by_name = settled(opened("Guarantees", seed="7", order="name")).table[0].value
    assert [name.lower() for name in by_name.index] == sorted(name.lower() for name in by_name.index)
