"""Checks of what papers say: each can come out either way. And the presets that they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest

import dpviz
from dpviz.experiments.sweep import SweepSpec
from dpviz.models import MODELS
from dpviz.papers.figures import base, statements


def table(quantity: str = "accuracy", **means: Sequence[float]) -> pd.DataFrame:
    rows = [
        {
            "mechanism": name,
            "epsilon": 10.0**k,
            "seed": 0,
            "accuracy": 0.5,
            "optimality_gap": 0.1,
            "objective": 0.5,
            "expected_accuracy": float("nan"),
            "status": "proved",
            "neighbouring": "replace-one",
            "claimed_epsilon": 1.0,
            "proved_epsilon": 1.0,
            "non_private_accuracy": 0.9,
            "majority_accuracy": 0.6,
            quantity: value,
        }
        for name, values in means.items()
        for k, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


FLAT = [0.6, 0.7, 0.8, 0.9]
CASES: list[tuple[statements.Statement, Mapping[str, object], Mapping[str, object]]] = [
    (statements.rises("", ["a"]), {"a": FLAT}, {"a": [0.6, 0.7, 0.65, 0.9]}),
    (statements.rises("", ["a"]), {"a": [0.6, 0.595, 0.7, 0.9]}, {"a": [0.6, 0.595, 0.59, 0.585]}),
    (
        statements.rises("", ["a"], "optimality_gap"),
        {"quantity": "optimality_gap", "a": [1, 0.1, 0.12, 0.01]},
        {"quantity": "optimality_gap", "a": [1, 0.01, 0.1, 0.005]},
    ),
    (
        statements.competitive("", "a", ["b", "c"]),
        {"a": FLAT, "b": [0.609, 0.5, 0.5, 0.5]},
        {"a": FLAT, "b": [0.62, 0.5, 0.5, 0.5]},
    ),
    (statements.better_than("", "a", "b"), {"a": FLAT, "b": [0.6, 0.7, 0.8, 0.89]}, {"a": FLAT, "b": [0.6, 0.7, 0.8, 0.91]}),
    (
        statements.better_than("", "a", "b", "optimality_gap"),
        {"quantity": "optimality_gap", "a": [0.1], "b": [0.2]},
        {"quantity": "optimality_gap", "a": [0.2], "b": [0.1]},
    ),
    (statements.similar("", "a", ["b", "c"]), {"a": FLAT, "b": [0, 0, 0, 0], "c": FLAT}, {"a": FLAT, "b": [0.5, 0.6, 0.7, 0.8]}),
    (
        statements.similar("", "a", ["b"], "optimality_gap"),
        {"quantity": "optimality_gap", "a": [0.1, 0.1], "b": [0.19, 0.06]},
        {"quantity": "optimality_gap", "a": [0.1, 0.1], "b": [0.3, 0.3]},
    ),
    (
        statements.grows_apart("", "a", "b"),
        {"a": FLAT, "b": [0.6, 0.7, 0.7, 0.7]},
        {"a": FLAT, "b": [0.5, 0.6, 0.79, 0.89]},
    ),
    (statements.grows_apart("", "a", "b"), {"a": FLAT, "b": [0.6, 0.7, 0.7, 0.7]}, {"a": FLAT, "b": [0.8, 0.8, 0.81, 0.91]}),
    (statements.close_at_start("", "a", "b"), {"a": FLAT, "b": [0.595, 0, 0, 0]}, {"a": FLAT, "b": [0.58, 0.9, 0.9, 0.9]}),
    (
        statements.almost_zero("", "a"),
        {"quantity": "optimality_gap", "a": [1, 0.009]},
        {"quantity": "optimality_gap", "a": [0.001, 0.02]},
    ),
    (
        statements.competitive("", "a", ["b", "c"], "objective"),
        {"quantity": "objective", "a": [0.509, 0.4], "b": [0.5, 0.5], "c": [0.6, 0.5]},
        {"quantity": "objective", "a": [0.511, 0.4], "b": [0.5, 0.5], "c": [0.6, 0.5]},
    ),
    (statements.fluctuates("", ["a"]), {"a": [0.6, 0.8, 0.6, 0.9]}, {"a": FLAT}),
    (statements.fluctuates("", ["a", "b"]), {"a": FLAT, "b": [0.6, 0.8, 0.6, 0.9]}, {"a": FLAT, "b": FLAT}),
    (statements.surges("", "a"), {"a": [0.6, 0.6, 0.895, 0.9]}, {"a": FLAT}),
    (statements.surges("", "a"), {"a": [0.2, 0.7, 0.71, 0.9]}, {"a": [0.1, 0.6, 0.8, 0.9]}),
]


@pytest.mark.parametrize(("one", "yes", "no"), CASES)
def test_checks_can_come_out_either_way(
    one: statements.Statement, yes: Mapping[str, Sequence[float]], no: Mapping[str, Sequence[float]]
) -> None:
    assert one.check(table(**yes)).shown is True
    verdict = one.check(table(**no))
    assert verdict.shown is False
    assert verdict.why
    assert one.check(table(other=FLAT)).shown is None
    assert one.check(pd.DataFrame()).shown is None


def test_checks_of_times() -> None:
    def times(**seconds: float) -> pd.DataFrame:
        rows = [(m, n, s * n) for m, s in seconds.items() for n in (1, 2)]
        return pd.DataFrame(rows, columns=["mechanism", "rows", "seconds"])

    assert statements.fastest("", "a").check(times(a=1, b=2)).shown is True
    assert statements.fastest("", "a").check(times(a=3, b=2)).shown is False
    assert statements.as_fast("", "a", "b").check(times(a=3, b=2)).shown is True
    assert statements.as_fast("", "a", "b").check(times(a=5, b=2)).shown is False
    assert statements.as_fast("", "a", "b").check(times(a=5)).shown is None
    assert statements.fastest("", "a").check(times(b=5)).shown is None


@pytest.mark.parametrize("name", base.panels())
def test_every_panel_can_be_set_up(name: str) -> None:
    figure, panel = base.panels()[name]
    setup = base.setup(name)
    assert bool(setup.unavailable) == (panel.model not in MODELS)
    if setup.unavailable:
        assert panel.model in setup.unavailable, "the reason is said"
        return
    spec = SweepSpec(epsilons=[setup.low, setup.high], **setup.values)
    assert len(spec.named) >= 2
    assert set(figure.names) == set(figure.methods)
    assert figure.statements
    assert figure.section
    if spec.dataset != panel.dataset:
        assert any(panel.dataset in note for note in setup.notes), "what was replaced is said"
    assert spec.model == panel.model, "never another model under the figure's name"
    for mechanism in set(figure.methods) - set(spec.named):
        assert any(figure.names[mechanism] in note for note in setup.notes)


def test_the_papers_figures_are_all_there() -> None:
    assert [f.id for f in base.figures()] == [
        "chen-1",
        "chen-2",
        "dbdp-1",
        "dbdp-2",
        "dbdp-small",
        "ip-2",
        "ip-3",
        "ip-4",
        "pidp-1",
        "pidp-2",
    ]
    chen, panel = base.panels()["chen-1-adult"]
    assert (chen.lam, panel.delta, chen.methods["rsgd-ar"]["batch_size"]) == (1e-3, 1e-8, 4000)
    assert all(f.low == 0.01 for f in base.figures())
    assert [f.high for f in base.figures()] == [10, 10, 7, 7, 7, 0.25, 0.25, 0.25, 3, 3]
    assert {cell.spec.dataset for cell in base.times().cells()} == {f"census-{n}" for n in range(50_000, 250_001, 50_000)}
    with pytest.raises(dpviz.InvalidInput, match="unknown figure"):
        base.setup("chen-9")


def test_verdicts_are_computed_from_a_sweep() -> None:
    figure, _ = base.panels()["ip-4-iris"]
    setup = base.setup("ip-4-iris")
    values = setup.values | {"mechanisms": {"dp-gd": {}, "input-perturbation": {}}, "seeds": 3}
    found = base.judge(figure, dpviz.run_sweep(SweepSpec(epsilons=[0.1, 1.0], **values)))
    assert {verdict.shown for _, verdict in found} >= {None}
    assert any(verdict.shown is not None for _, verdict in found)


def test_a_figure_becomes_available_with_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "dbdp-1-adult-mlp"
    monkeypatch.setitem(MODELS, "mlp", MODELS["logistic"])
    setup = base.setup(name)
    assert not setup.unavailable
    assert setup.values["model"] == "mlp"
    monkeypatch.delitem(MODELS, "mlp")
    assert "mlp" in base.setup(name).unavailable


def test_a_table_in_the_data_folder_is_taken_for_the_papers_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_DATA", str(tmp_path))
    rows = "\n".join(f"{k},{'yes' if k % 3 else 'no'}" for k in range(200))
    (tmp_path / "bank.csv").write_text(f"age,label\n{rows}\n")
    setup = base.setup("chen-1-bank")
    assert setup.values["dataset"] == "data/bank.csv"
    assert any("200" in note for note in setup.notes), "that it has other rows is said"
