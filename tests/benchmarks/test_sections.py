"""Commands that renew some sections of a page and keep the others."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import defaults, figures, sections
from dpviz.common.version import engine_version
from dpviz.experiments.sweeps.curves import grid
from dpviz.papers.figures import base, saved


def test_all_sections_of_the_committed_pages_are_found() -> None:
    docs = Path(figures.__file__).parents[1] / "docs"
    page = (docs / "figures.md").read_text("utf-8")
    found = sections.read(docs / "figures.md")
    assert len(found) == page.count("\n## ")
    assert set(found) <= {figures.title(name) for name in figures.panels()} | {"Whole figures"}
    tables = {defaults.title(d, m) for d, m in defaults.pairs(every=True)}
    assert len(tables & set(sections.read(docs / "defaults.md"))) >= 12


def test_tables_stand_in_the_order_of_the_page_whatever_was_made_last() -> None:
    page = {name: name for name in ("iris, mlp", "iris, svm", "What calibrated", "data/adult.data, logistic", "iris, logistic")}
    order = ["What calibrated", "iris, logistic", "data/adult.data, logistic", "iris, svm", "iris, mlp"]
    assert defaults.in_order(page) == order


def test_methods_without_a_line_on_the_page_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = pd.DataFrame({"mean": [0.5], "spread": [0.0], "training": [0.0]})
    monkeypatch.setattr(defaults, "measured", lambda dataset, model, name, *rest: measured)
    whole = defaults.section("iris", "logistic", [1.0], 1, ["dp-gd"], "")
    lines = [line for line in whole.splitlines() if "50.0 ± 0.0" in line]
    assert len(lines) == len(defaults.methods("logistic"))
    kept = defaults.section("iris", "logistic", [1.0], 1, ["dp-gd"], "\n".join(lines).replace("50.0", "60.0"))
    assert [line for line in kept.splitlines() if "50.0 ± 0.0" in line] == ["| dp-gd | 50.0 ± 0.0 | 0.0 |"]


def panel(lead: float, dataset: str = "d") -> pd.DataFrame:
    """A sweep of the figure's methods in which PIDP-SGD is ahead by `lead`."""
    figure, rng = base.panels()["pidp-1-adult-lr"][0], np.random.default_rng(0)
    rows = [
        (m, e, s, 0.7 + 0.01 * k + lead * (m == "pidp-sgd") + 1e-4 * rng.standard_normal())
        for m in figure.methods
        for k, e in enumerate(grid(0.01, 3.0, 3))
        for s in range(4)
    ]
    table = pd.DataFrame(rows, columns=["mechanism", "epsilon", "seed", "accuracy"])
    fixed = {"expected_accuracy": float("nan"), "optimality_gap": 0.1, "objective": 0.5, "non_private_accuracy": 0.95}
    return table.assign(dataset=dataset, model="logistic", majority_accuracy=0.6, **fixed)


def test_kept_numbers_give_the_verdicts_of_the_whole_table(tmp_path: Path) -> None:
    name, table = "pidp-1-adult-lr", panel(0.05)
    figure, _ = base.panels()[name]
    figures.keep(name, table.assign(other="not kept"), tmp_path)
    first = figures.numbers(name, "d", tmp_path).read_bytes()
    kept = figures.kept(tmp_path)
    assert set(kept) == {name, "pidp-2-adult-lr"}, "both figures show quantities of the same runs"
    assert saved.whole(figure, kept) == saved.whole(figure, {name: table})
    figures.keep(name, kept[name], tmp_path)
    assert figures.numbers(name, "d", tmp_path).read_bytes() == first
    assert set(kept[name]["engine"]) == {engine_version()}
