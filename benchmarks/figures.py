"""What the papers say of their figures and what dpviz finds: statement by statement, with settings and differences.

python -m benchmarks.figures [--panels chen-1-adult,ip-4-iris] [--seeds 3] [--points 5] [--out docs/figures.md]

Papers' sets are taken from the folder that DPVIZ_DATA names; a panel whose set is missing is computed on the nearest one.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import dpviz
from dpviz.papers import timing
from dpviz.papers.figures import base
from dpviz.papers.figures.base import Figure, Panel, Setup, Statement
from dpviz.papers.verdict import Outcome, Verdict

WORDS = {Outcome.HOLDS: "shown", Outcome.ONLY_IF: "shown only if", Outcome.FAILS: "not shown", Outcome.CANNOT_TELL: "cannot tell"}
START = """# The papers' figures, statement by statement

Made by `python -m benchmarks.figures`. Each table judges one panel on the dataset that its heading names, with the settings
below it. The page Trade-off computes the same under "Figures of the papers" with 10 noise draws, of which the notes speak.
"""
TIMES = "times"
PANELS = (
    "chen-1-adult",
    "chen-2-adult",
    "chen-1-kddcup99",
    "dbdp-1-adult-lr",
    "dbdp-2-adult-lr",
    "ip-2-adult-lr",
    "ip-3-adult-lr",
    "pidp-1-adult-lr",
    "pidp-2-adult-lr",
    "dbdp-small-breast-cancer",
    "dbdp-small-credit-card",
    "dbdp-small-iris",
    "ip-4-breast-cancer",
    "ip-4-credit-card",
    "ip-4-iris",
    TIMES,
)


def computed(setup: Setup, seeds: int, points: int) -> pd.DataFrame:
    """The sweep of a panel."""
    epsilons = np.geomspace(setup.low, setup.high, points).round(4).tolist()
    return dpviz.sweep(**{**setup.values, "seeds": seeds, "epsilons": epsilons})


def section(name: str, table: pd.DataFrame, setup: Setup, seeds: int) -> str:
    """A panel in Markdown: statements with verdicts, settings, differences."""
    figure, panel = base.panels()[name]
    return "\n".join([*_head(figure, panel, setup, seeds), *_statements(figure, table, setup), *_settings(name, setup)]) + "\n"


def times() -> str:
    """The figure of times in Markdown, on the paper's set where it is on this machine."""
    figure = base.times()
    *_, measured = timing.measure(figure)
    wide = measured.table.pivot_table(index="mechanism", columns="rows", values="seconds", aggfunc="median")
    lines = [f"\n## {figure.source.name}, {figure.number}: processing times\n", *measured.notes, ""]
    lines += _judged(base.judge(figure, measured.table))
    lines += ["", f"| method | {' | '.join(f'{n:,} rows' for n in measured.sizes)} |", f"|---|{'---|' * len(measured.sizes)}"]
    lines += [
        f"| {figure.names[m]} | {' | '.join(f'{s:.2g} s' for s in wide.loc[m])} |" for m in figure.methods if m in wide.index
    ]
    return "\n".join([*lines, "", *(f"- {note}" for note in figure.differs)]) + "\n"


def _head(figure: Figure, panel: Panel, setup: Setup, seeds: int) -> list[str]:
    delta = setup.values["delta"]
    which = "by the rule of public n" if delta is None else f"= {delta:g}"
    return [
        f"\n## {figure.source.name}, {figure.where(panel)}: {panel.title}\n",
        f"On `{setup.values['dataset']}`, {panel.model}, ε from {setup.low:g} to {setup.high:g}, "
        f"δ {which}, λ = {setup.values['lam']:g}, {seeds} noise draws.\n",
    ]


def _statements(figure: Figure, table: pd.DataFrame, setup: Setup) -> list[str]:
    methods: Mapping[str, Mapping[str, object]] = setup.values["mechanisms"]
    return _judged(base.judge(figure, table, methods))


def _judged(judgements: Sequence[tuple[Statement, Verdict]]) -> list[str]:
    lines = ["| the paper says | dpviz | numbers |", "|---|---|---|"]
    for statement, verdict in judgements:
        cells = (statement.text, WORDS[verdict.outcome], verdict.because)
        lines.append(f"| {' | '.join(str(cell).replace('|', '¦') for cell in cells)} |")
    return lines


def _settings(name: str, setup: Setup) -> list[str]:
    lines = ["\n| method | hyperparameter | value or rule | where it comes from |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in base.settings(name)]
    return [*lines, "", *(f"- {note}" for note in setup.notes)]


def main() -> None:
    """Computes the panels one after the other; what is there so far is kept where it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", default=",".join(PANELS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--points", type=int, default=5)
    parser.add_argument("--out", default="docs/figures.md")
    given = parser.parse_args()
    text, known = START, dict[str, pd.DataFrame]()
    for name in given.panels.split(","):
        if name == TIMES:
            text += times()
            continue
        setup = base.setup(name)
        if setup.unavailable:
            continue
        key = repr((setup.values, setup.low, setup.high))
        if key not in known:  # two figures of a paper often show two quantities of the same runs
            known[key] = computed(setup, given.seeds, given.points)
        text += section(name, known[key], setup, given.seeds)
        Path(given.out).write_text(text, encoding="utf-8")
    Path(given.out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
