"""Verdicts on whole figures: all panels together, by the statement's own scope, and what is kept of them."""

from pathlib import Path

import numpy as np
import pandas as pd

from dpviz.papers.figures import base, saved
from dpviz.papers.verdict import Outcome

FIGURE = base.panels()["pidp-1-adult-lr"][0]
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
    return next(one for one in saved.whole(FIGURE, tables) if one.text == AHEAD)


def test_a_sentence_about_most_datasets_is_judged_on_all_panels() -> None:
    found = ahead(adult_lr=0.05, bank_lr=0.05, kddcup99_lr=-0.05)
    assert found.outcome is Outcome.ONLY_IF, "the figure's start is not public"
    assert found.panels == ("kddcup99-lr", "adult-lr", "bank-lr"), "in the order of the figure"
    assert found.datasets == ("kddcup99_lr", "adult_lr", "bank_lr")
    assert found.because.startswith("Fails in 1 of 3, holds in 2 of 3.")
    assert ahead(adult_lr=0.05, bank_lr=-0.05, kddcup99_lr=-0.05).outcome is Outcome.FAILS
    assert ahead(adult_lr=-0.05).outcome is Outcome.CANNOT_TELL, "one dataset refutes nothing about most"
    assert saved.whole(FIGURE, {"dbdp-1-adult-lr": panel("adult", 0.1)}) == []


def test_verdicts_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.json"
    verdicts = saved.whole(FIGURE, {"pidp-1-adult-lr": panel("adult", 0.05)})
    saved.save([*verdicts, saved.FigureVerdict("pidp-1", "gone", Outcome.HOLDS, "", "", (), ())], path)
    assert saved.load(path) == tuple(verdicts)
    assert len(verdicts) == len(FIGURE.statements)
    assert saved.load(tmp_path / "none") == ()


def test_the_kept_ones_are_of_figures_that_are_there() -> None:
    for one in saved.load():
        figure = next(figure for figure in base.figures() if figure.id == one.figure)
        assert set(one.panels) <= {name for name, panel in figure.panels.items() if not panel.instead}
        assert len(one.panels) == len(one.datasets) > 0
        assert bool(one.condition) == (one.outcome is Outcome.ONLY_IF)
