"""The papers' statements on their figures beside the findings of dpviz: statement by statement, with settings and differences.

python -m benchmarks.figures [--panels chen-1-adult,ip-4-iris] [--out docs/figures.md] [--save]

All panels, the small ones first, with the draws and points of the page Trade-off. What was computed is kept with the app's
cells, so that the command resumes where it was stopped. Papers' sets are taken from the folder that DPVIZ_DATA names; a panel
whose set is missing is computed on the nearest one. Panels that the page in --out has and that are not computed now are kept, and
with --save so are the numbers of each panel (in benchmarks/panels): the verdict on a whole figure is of all panels with numbers.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

import dpviz
from benchmarks import sections
from dpviz.common.digits import three
from dpviz.common.version import engine_version
from dpviz.experiments.sweeps.curves import grid
from dpviz.experiments.sweeps.store import CellStore
from dpviz.papers import sets, timing
from dpviz.papers.figures import base, saved
from dpviz.papers.figures.base import Figure, Setup, Statement
from dpviz.papers.verdict import Outcome, Verdict

WORDS = {Outcome.HOLDS: "shown", Outcome.ONLY_IF: "shown only if", Outcome.FAILS: "not shown", Outcome.CANNOT_TELL: "cannot tell"}
START = """# The papers' figures, statement by statement

Made by `python -m benchmarks.figures --save`, with the noise draws and points of the page Trade-off ("Figures of the papers").
First the verdicts on whole figures, over all panels that were computed, which the page Paper claims shows too. Then each panel,
judged on the dataset that its heading names; the settings of a figure stand below its first panel. The panels of IPUMS-BR are
older than today's automatic steps of linear models (27 November 2026).
"""
TIMES = "times"
NUMBERS = Path(__file__).with_name("panels")
#: columns of a sweep that statements are judged by
COLUMNS = ["mechanism", "epsilon", "seed", "accuracy", "expected_accuracy", "objective", "optimality_gap"]
COLUMNS += ["dataset", "model", "majority_accuracy", "non_private_accuracy"]
ENGINE = "engine"  # the version that computed the numbers


def panels() -> list[str]:
    """All panels, those that take least first, and the figure of times."""

    def size(name: str) -> float:
        _, panel = base.panels()[name]
        return panel.rows * (1000 if panel.model == "mlp" else 1)

    return [*sorted(base.panels(), key=size), TIMES]


def computed(setup: Setup) -> pd.DataFrame:
    """The sweep of a panel; cells that were computed before are read."""
    return dpviz.sweep(**setup.values, epsilons=grid(setup.low, setup.high, setup.points), store=CellStore.personal())


def numbers(name: str, dataset: str, folder: Path = NUMBERS) -> Path:
    """The file with a panel's numbers on a set; two figures of a paper often show two quantities of the same runs."""
    figure, panel = base.panels()[name]
    own = {dataset: dataset}  # a person's file stands for the set that it is called like
    known = (one for one in (panel.dataset, *panel.nearest) if one == dataset or sets.uploaded(one, own))
    return folder / f"{figure.paper}-{next(known, panel.dataset)}-{panel.model}.csv.gz"


def kept(folder: Path = NUMBERS) -> dict[str, pd.DataFrame]:
    """Panels whose numbers are kept, those on the paper's set before those on the nearest one."""
    tables = {}
    for name, (_, panel) in base.panels().items():
        files = [numbers(name, dataset, folder) for dataset in (panel.dataset, *panel.nearest)]
        file = next((file for file in files if file.is_file()), None)
        if file is not None:
            tables[name] = pd.read_csv(file)
    return tables


def keep(name: str, table: pd.DataFrame, folder: Path = NUMBERS) -> None:
    """Writes a panel's numbers with the engine's version, the same bytes for the same numbers."""
    file, packed = numbers(name, table["dataset"].iloc[0], folder), {"method": "gzip", "mtime": 1}
    noted = table[COLUMNS].assign(**{ENGINE: engine_version()})
    noted.to_csv(file, index=False, float_format="%.7g", compression=packed)


def title(name: str) -> str:
    """The heading of a panel's section."""
    if name == TIMES:
        return f"{base.times().source.name}, {base.times().number}: processing times"
    figure, panel = base.panels()[name]
    also = f", {panel.model}" if panel.instead else ""  # a supplement's panels of two figures would have one heading
    return f"{figure.source.name}, {figure.where(panel)}: {panel.title}{also}"


def origins(verdicts: Sequence[saved.FigureVerdict], tables: Mapping[str, pd.DataFrame]) -> str:
    """Sentences on the numbers behind the verdicts: the engine that computed them, and figures whose numbers were not kept."""
    engines = {str(engine) for table in tables.values() for engine in table.get(ENGINE, pd.Series(["not recorded"])).unique()}
    without = {one.figure: None for one in verdicts if not all(f"{one.figure}-{panel}" in tables for panel in one.panels)}
    lines = [f"Numbers of {len(tables)} panels are kept in `benchmarks/panels` (engine: {', '.join(sorted(engines))})."]
    lines += [f"Of {', '.join(without)} only the verdicts are: they are older than the files of numbers."] if without else []
    return "\n".join(lines)


def whole(verdicts: Sequence[saved.FigureVerdict], tables: Mapping[str, pd.DataFrame]) -> str:
    """The verdicts on whole figures in Markdown, given the numbers that are kept."""
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
    lines += ["", origins(verdicts, tables)]
    return "\n".join(lines) + "\n"


def section(name: str, table: pd.DataFrame, setup: Setup, first: str) -> str:
    """A panel in Markdown: statements with verdicts, settings, differences.

    Args:
        first: the figure's panel that has the settings, which are those of all its panels.
    """
    figure, _ = base.panels()[name]
    listed = _settings(name) if name == first else [f"\nMethods and settings: as for {base.panels()[first][1].title} above."]
    notes = ["", *(f"- {note}" for note in setup.notes)]
    return "\n".join([*_head(name, setup), *_statements(figure, table, setup), *listed, *notes]) + "\n"


def first_on(page: Mapping[str, str], name: str) -> str:
    """The first panel on a page of the figure of this one, which has the settings."""
    figure, _ = base.panels()[name]
    return next(one for one in panels() if one != TIMES and base.panels()[one][0] is figure and title(one) in page)


def times() -> str:
    """The figure of times in Markdown, on the paper's set where it is on this machine."""
    figure = base.times()
    *_, measured = timing.measure(figure)
    wide = measured.table.pivot_table(index="mechanism", columns="rows", values="seconds", aggfunc="median")
    lines = [f"{sections.START}{title(TIMES)}\n", *measured.notes, ""]
    lines += _judged(base.judge(figure, measured.table))
    lines += ["", f"| method | {' | '.join(f'{n:,} rows' for n in measured.sizes)} |", f"|---|{'---|' * len(measured.sizes)}"]
    lines += [
        f"| {method.name} | {' | '.join(f'{s:.2g} s' for s in wide.loc[m])} |"
        for m, method in figure.methods.items()
        if m in wide.index
    ]
    return "\n".join([*lines, "", *(f"- {note}" for note in figure.differs)]) + "\n"


def _head(name: str, setup: Setup) -> list[str]:
    _, panel = base.panels()[name]
    delta = setup.values["delta"]
    which = "by the rule of public n" if delta is None else f"= {three(delta)}"
    return [
        f"{sections.START}{title(name)}\n",
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
    page, known = sections.read(Path(given.out)), dict[str, pd.DataFrame]()
    tables = kept() if given.save else {}
    for name in given.panels.split(","):
        if name == TIMES:
            page[title(name)] = times()
        elif not (setup := base.setup(name)).unavailable:
            key = repr((setup.values, setup.low, setup.high))
            known[key] = table = known[key] if key in known else computed(setup)
            page[title(name)] = section(name, table, setup, first_on(page | {title(name): ""}, name))
            tables[name] = table
            if given.save:
                keep(name, table)
                tables |= kept()
        verdicts = saved.merged([one for figure in base.figures() for one in saved.whole(figure, tables)])
        if given.save:
            saved.save(verdicts)
        there = [page[title(one)] for one in panels() if title(one) in page]
        Path(given.out).write_text(START + whole(verdicts, kept()) + "".join(there), encoding="utf-8")
        print(name, flush=True)


if __name__ == "__main__":
    main()
