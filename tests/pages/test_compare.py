"""Compare: a run is kept as A, B moves on; both are in the address."""

import dataclasses
from urllib.parse import parse_qs

from support_pages import address, opened, text

import dpviz
from dpviz.dashboard.jobs import cached_runs
from dpviz.dashboard.one_run import compare


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


def test_differences_have_the_sign_of_b_minus_a() -> None:
    spec = dpviz.RunSpec("teaching", mechanism="cms-output", seeds=2, epsilon=0.1)
    strong, weak = (cached_runs.outcome(s) for s in (spec, dataclasses.replace(spec, epsilon=10.0)))
    gain = 100 * (weak.accuracy.mean() - strong.accuracy.mean())
    assert gain > 0
    assert f"accuracy is {gain:.1f} points higher" in compare.sentence(strong, weak)
    assert "points more often" in compare.sentence(strong, weak)
    assert f"accuracy is {gain:.1f} points lower" in compare.sentence(weak, strong)
    assert "accuracy is the same; the bound on attacks is the same" in compare.sentence(weak, weak)
