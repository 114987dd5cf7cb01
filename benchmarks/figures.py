"""The papers' statements on their figures beside the findings of dpviz: statement by statement, with settings and differences.

python -m benchmarks.figures [--panels chen-1-adult,ip-4-iris] [--out docs/figures.md] [--save]

All panels, the small ones first, with the draws and points of the page Trade-off. What was computed is kept with the app's
cells, so that the command resumes where it was stopped. Papers' sets are taken from the folder that DPVIZ_DATA names; a panel
whose set is missing is computed on the nearest one.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

import dpviz
from dpviz.experiments.sweeps.curves import grid
from dpviz.experiments.sweeps.store import CellStore
from dpviz.papers import timing
from dpviz.papers.figures import base, saved
from dpviz.papers.figures.base import Figure, Panel, Setup, Statement
from dpviz.papers.verdict import Outcome, Verdict

WORDS = {Outcome.HOLDS: "shown", Outcome.ONLY_IF: "shown only if", Outcome.FAILS: "not shown", Outcome.CANNOT_TELL: "cannot tell"}
START = """# The papers' figures, statement by statement

Made by `python -m benchmarks.figures --save`, with the noise draws and points of the page Trade-off ("Figures of the papers").
First the verdicts on whole figures, over all panels that were computed, which the page Paper claims shows too. Then each panel,
judged on the dataset that its heading names; the settings of a figure stand below its first panel.
"""
TIMES = "times"


def panels() -> list[str]:
    """All panels, those that take least first, and the figure of times."""

    def size(name: str) -> float:
        _, panel = base.panels()[name]
        return panel.rows * (1000 if panel.model == "mlp" else 1)

    return [*sorted(base.panels(), key=size), TIMES]


def computed(setup: Setup) -> pd.DataFrame:
    """The sweep of a panel; cells that were computed before are read."""
    return dpviz.sweep(**setup.values, epsilons=grid(setup.low, setup.high, setup.points), store=CellStore.personal())


def whole(verdicts: Sequence[saved.FigureVerdict]) -> str:
    """The verdicts on whole figures in Markdown."""
    figures = {figure.id: figure for figure in base.figures()}
    lines = ["\n## Whole figures\n", "| figure | the paper says | dpviz | panels | numbers |", "|---|---|---|---|---|"]
    for one in verdicts:
        figure = figures[one.figure]
        of = sum(not panel.instead for panel in figure.panels.values())
        place, done = f"{figure.source.name}, {figure.number}", f"{len(one.panels)} of {of}"
        cells = (place, one.text, WORDS[one.outcome], done, one.because)
        lines.append(f"| {' | '.join(str(cell).replace('|', '¦') for cell in cells)} |")
    done = {(one.figure, panel) for one in verdicts for panel in one.panels}
    left = [
        f"{figure.id}-{name}"
        for figure in figures.values()
        for name, panel in figure.panels.items()
        if not panel.instead and (figure.id, name) not in done
    ]
    lines += ["", f"Not computed: {', '.join(left)}."] if left else []
    return "\n".join(lines) + "\n"


def section(name: str, table: pd.DataFrame, setup: Setup, first: str) -> str:
    """A panel in Markdown: statements with verdicts, settings, differences.

    Args:
        first: the figure's panel that has the settings, which are those of all its panels.
    """
    figure, panel = base.panels()[name]
    listed = _settings(name) if name == first else [f"\nMethods and settings: as for {base.panels()[first][1].title} above."]
    notes = ["", *(f"- {note}" for note in setup.notes)]
    return "\n".join([*_head(figure, panel, setup), *_statements(figure, table, setup), *listed, *notes]) + "\n"


def times() -> str:
    """The figure of times in Markdown, on the paper's set where it is on this machine."""
    figure = base.times()
    *_, measured = timing.measure(figure)
    wide = measured.table.pivot_table(index="mechanism", columns="rows", values="seconds", aggfunc="median")
    lines = [f"\n## {figure.source.name}, {figure.number}: processing times\n", *measured.notes, ""]
    lines += _judged(base.judge(figure, measured.table))
    lines += ["", f"| method | {' | '.join(f'{n:,} rows' for n in measured.sizes)} |", f"|---|{'---|' * len(measured.sizes)}"]
    lines += [
        f"| {method.name} | {' | '.join(f'{s:.2g} s' for s in wide.loc[m])} |"
        for m, method in figure.methods.items()
        if m in wide.index
    ]
    return "\n".join([*lines, "", *(f"- {note}" for note in figure.differs)]) + "\n"


def _head(figure: Figure, panel: Panel, setup: Setup) -> list[str]:
    delta = setup.values["delta"]
    which = "by the rule of public n" if delta is None else f"= {delta:g}"
    return [
        f"\n## {figure.source.name}, {figure.where(panel)}: {panel.title}\n",
        f"On `{setup.values['dataset']}`, {panel.model}, ε from {setup.low:g} to {setup.high:g}, "
        f"δ {which}, λ = {setup.values['lam']:g}, {setup.values['seeds']} noise draws.\n",
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


def _settings(name: str) -> list[str]:
    lines = ["\n| method | hyperparameter | value or rule | where it comes from |", "|---|---|---|---|"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in base.settings(name))]


def main() -> None:
    """Computes the panels one after the other; what is there so far is written after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", default=",".join(panels()))
    parser.add_argument("--out", default="docs/figures.md")
    parser.add_argument("--save", action="store_true", help="keep the verdicts on whole figures for the page Paper claims")
    given = parser.parse_args()
    sections, tables, known = dict[str, str](), dict[str, pd.DataFrame](), dict[str, pd.DataFrame]()
    first = dict[str, str]()
    for name in given.panels.split(","):
        if name == TIMES:
            sections[name] = times()
        elif not (setup := base.setup(name)).unavailable:
            key = repr((setup.values, setup.low, setup.high))
            if key not in known:  # two figures of a paper often show two quantities of the same runs
                known[key] = computed(setup)
            tables[name] = known[key]
            sections[name] = section(name, tables[name], setup, first.setdefault(base.panels()[name][0].id, name))
        verdicts = [one for figure in base.figures() for one in saved.whole(figure, tables)]
        if given.save:
            saved.save(verdicts)
        Path(given.out).write_text(START + whole(verdicts) + "".join(sections.values()), encoding="utf-8")
        print(name, flush=True)


if __name__ == "__main__":
    main()
