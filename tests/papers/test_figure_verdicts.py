"""Verdicts on whole figures: all panels together, by the statement's own scope, and what is kept of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import figures
from dpviz.common.version import engine_version
from dpviz.papers import saved
from dpviz.papers.figures import catalogue
from dpviz.papers.verdict import Outcome

FIGURE = catalogue.PANELS["pidp-1-adult-lr"][0]
ONE_AND_TWO = (("adult-lr",), ("adult-lr", "bank-lr"))
AHEAD = "PIDP-SGD raises the accuracy on most datasets."


def panel(dataset: str, lead: float) -> pd.DataFrame:
    """A sweep in which PIDP-SGD is ahead of all others by `lead`."""
    epsilons, rng = (0.01, 0.1, 3.0), np.random.default_rng(0)
    rows = [
        (m, e, s, 0.7 + 0.05 * k + lead * (m == "pidp-sgd") + 1e-4 * rng.standard_normal())
        for m in FIGURE.methods
        for k, e in enumerate(epsilons)
        for s in range(5)
    ]
    table = pd.DataFrame(rows, columns=["mechanism", "epsilon", "seed", "accuracy"])
    fixed = {"expected_accuracy": np.nan, "optimality_gap": 0.1, "objective": 0.5, "non_private_accuracy": 0.95}
    return table.assign(dataset=dataset, model="logistic", majority_accuracy=0.6, **fixed)


def ahead(**leads: float) -> saved.FigureVerdict:
    tables = {f"pidp-1-{name.replace('_', '-')}": panel(name, lead) for name, lead in leads.items()}
    return next(one for one in saved.judge_whole(FIGURE, tables) if one.text == AHEAD)


def test_a_sentence_about_most_datasets_is_judged_on_all_panels() -> None:
    found = ahead(adult_lr=0.05, bank_lr=0.05, kddcup99_lr=-0.05)
    assert found.verdict.outcome is Outcome.ONLY_IF, "the figure's start is not public"
    assert found.panels == ("kddcup99-lr", "adult-lr", "bank-lr"), "in the order of the figure"
    assert found.datasets == ("kddcup99_lr", "adult_lr", "bank_lr")
    assert found.verdict.because.startswith("Fails in 1 of 3, holds in 2 of 3.")
    assert ahead(adult_lr=0.05, bank_lr=-0.05, kddcup99_lr=-0.05).verdict.outcome is Outcome.FAILS
    assert ahead(adult_lr=-0.05).verdict.outcome is Outcome.CANNOT_TELL, "one dataset refutes nothing about most"
    assert saved.judge_whole(FIGURE, {"dbdp-1-adult-lr": panel("adult", 0.1)}) == []


def test_each_kind_of_verdict_is_saved_without_the_other(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.json"
    verdicts = saved.judge_whole(FIGURE, {"pidp-1-adult-lr": panel("adult", 0.05)})
    finding = next(iter(saved.load().findings.values()))
    saved.save_figures([*verdicts, replace(verdicts[0], text="gone")], path)
    saved.save_claims([finding], path)
    for _ in range(2):
        kept = saved.load(path)
        assert [(one.text, one.verdict.headline, one.panels) for one in kept.figures] == [
            (one.text, one.verdict.headline, one.panels) for one in verdicts
        ]
        assert set(kept.findings) == {finding.claim.id}
        saved.save_figures(kept.figures, path)
    assert len(verdicts) == len(FIGURE.statements)


def test_verdicts_on_more_panels_stay() -> None:
    few, many = (saved.judge_whole(FIGURE, {f"pidp-1-{name}": panel(name, 0.05) for name in names}) for names in ONE_AND_TWO)
    assert saved.merge(few, many) == saved.merge(many, few) == many


def test_the_kept_ones_are_of_figures_that_are_there() -> None:
    for one in saved.load().figures:
        figure = next(figure for figure in catalogue.FIGURES if figure.id == one.figure)
        assert set(one.panels) <= {name for name, panel in figure.panels.items() if not panel.instead}
        assert len(one.panels) == len(one.datasets) > 0
        assert bool(one.verdict.condition) == (one.verdict.outcome is Outcome.ONLY_IF)


def test_kept_numbers_give_the_verdicts_of_the_whole_table(tmp_path: Path) -> None:
    name, table = "pidp-1-adult-lr", panel("d", 0.05)
    figures.keep(name, table.assign(other="not kept"), tmp_path)
    first = figures.numbers(name, "d", tmp_path).read_bytes()
    kept = figures.kept(tmp_path)
    assert set(kept) == {name, "pidp-2-adult-lr"}, "both figures show quantities of the same runs"
    of_kept, of_all = (saved.judge_whole(FIGURE, tables) for tables in (kept, {name: table}))
    assert [one.verdict.because for one in of_kept] == [one.verdict.because for one in of_all]
    figures.keep(name, kept[name], tmp_path)
    assert figures.numbers(name, "d", tmp_path).read_bytes() == first
    assert set(kept[name]["engine"]) == {engine_version()}
