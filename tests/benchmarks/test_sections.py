"""Commands that renew some sections of a page and keep the others."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import defaults, figures, sections
from dpviz.common.version import engine_version
from dpviz.experiments.sweeps.curves import grid
from dpviz.papers.figures import base, saved
from dpviz.papers.verdict import Outcome


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


def test_numbers_on_the_nearest_set_leave_those_on_the_papers(tmp_path: Path) -> None:
    name = "pidp-1-adult-lr"
    for dataset, lead in (("census-45222", 0.0), ("adult-complete", 0.05), ("census-45222", 0.01)):
        figures.keep(name, panel(lead, dataset), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert set(figures.kept(tmp_path)[name]["dataset"]) == {"adult-complete"}
    own = figures.numbers("chen-1-ipums-br", "data/IPUMS-BR.csv", tmp_path)
    assert own == figures.numbers("chen-1-ipums-br", "ipums-br", tmp_path), "a person's own file is the paper's set"


def test_the_page_names_figures_whose_numbers_were_not_kept() -> None:
    one = saved.FigureVerdict("pidp-1", "text", Outcome.HOLDS, "", "", ("adult-lr",), ("adult-complete",))
    table = panel(0.05)
    assert "Of pidp-1 only the verdicts are" in figures.whole([one], {})
    then = figures.whole([one], {"pidp-1-adult-lr": table.assign(engine="1.2+3"), "pidp-2-adult-lr": table})
    assert "only the verdicts" not in then
    assert "(engine: 1.2+3, not recorded)" in then


def test_a_panel_that_is_computed_later_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, verdicts = tmp_path / "figures.md", tmp_path / "verdicts.json"
    monkeypatch.setattr(figures, "NUMBERS", tmp_path)
    monkeypatch.setattr(figures, "keep", lambda name, table, keep=figures.keep: keep(name, table, tmp_path))
    monkeypatch.setattr(figures, "kept", lambda kept=figures.kept: kept(tmp_path))
    monkeypatch.setattr(saved, "save", lambda found, save=saved.save: save(found, verdicts))
    monkeypatch.setattr(saved, "merged", lambda found, merged=saved.merged: merged(found, verdicts))

    def run(name: str, lead: float) -> None:
        monkeypatch.setattr(figures, "computed", lambda setup: panel(lead, setup.values["dataset"]))
        monkeypatch.setattr(sys, "argv", ["figures", "--panels", name, "--out", str(out), "--save"])
        figures.main()

    run("pidp-1-adult-lr", 0.05)
    run("pidp-2-bank-lr", 0.05)
    first = sections.read(out)
    assert list(first) == ["Whole figures", figures.title("pidp-2-bank-lr"), figures.title("pidp-1-adult-lr")]
    assert {one.panels for one in saved.load(verdicts)} == {("adult-lr", "bank-lr")}, "the numbers of both are kept"
    assert all("| method |" in first[figures.title(name)] for name in ("pidp-2-bank-lr", "pidp-1-adult-lr"))
    run("pidp-1-bank-lr", -0.05)
    then = sections.read(out)
    assert "| method |" in then[figures.title("pidp-1-bank-lr")], "now the first of its figure on the page"
    assert then[figures.title("pidp-2-bank-lr")] == first[figures.title("pidp-2-bank-lr")]
