"""The numbers of the papers' figures: computes panels, keeps their numbers, and saves the verdicts on whole figures.

python -m benchmarks.figures [--panels chen-1-adult,ip-4-iris]

All panels, the small ones first, with the draws and points of the page Trade-off. What was computed is kept with the app's
cells, so that the command resumes where it was stopped. Papers' sets are taken from the folder that DPVIZ_DATA names; a panel
whose set is missing is computed on the nearest one. Numbers are kept in benchmarks/panels: the verdict on a whole figure is of
all panels with numbers, and the site makes its page from them.
"""

import argparse
from pathlib import Path

import pandas as pd

import dpviz
from dpviz.common.version import engine_version
from dpviz.experiments.sweeps.cells import CellStore
from dpviz.experiments.sweeps.curves import grid
from dpviz.papers import saved, sets
from dpviz.papers.figures import networks
from dpviz.papers.figures.catalogue import FIGURES, PANELS, Setup, setup

NUMBERS = Path(__file__).with_name("panels")
#: columns of a sweep that statements are judged by
COLUMNS = ["mechanism", "epsilon", "seed", "accuracy", "expected_accuracy", "objective", "optimality_gap"]
COLUMNS += ["dataset", "model", "majority_accuracy", "non_private_accuracy", "split"]
ENGINE = "engine"  # the version that computed the numbers


def panels() -> list[str]:
    """All panels, those that take least first."""

    def size(name: str) -> float:
        _, panel = PANELS[name]
        return panel.rows * (1000 if panel.model == "mlp" else 1)

    return sorted(PANELS, key=size)


def compute(panel: Setup) -> pd.DataFrame:
    """The sweep of a panel, with noise of its own for each method and split; cells that were computed before are read."""
    epsilons, store = grid(panel.figure.low, panel.figure.high, panel.figure.points), CellStore.personal()
    shared = dict(panel.values, epsilons=epsilons)
    methods = shared.pop("mechanisms")
    tables = [
        dpviz.sweep(**shared, mechanisms={name: knobs}, split_seed=split, seed=1000 * k + split, store=store).assign(split=split)
        for split in range(panel.splits)
        for k, (name, knobs) in enumerate(methods.items())
    ]
    return pd.concat([*tables, *networks.measure(panel, epsilons)], ignore_index=True)


def numbers(name: str, dataset: str, folder: Path = NUMBERS) -> Path:
    """The file with a panel's numbers on a set; two figures of a paper often show two quantities of the same runs."""
    figure, panel = PANELS[name]
    # a person's file stands for the set that it is called like
    known = (one for one in (panel.dataset, *panel.nearest) if one == dataset or sets.uploaded_names(one, {dataset: dataset}))
    return folder / f"{figure.paper}-{next(known, panel.dataset)}-{panel.model}.csv.gz"


def kept(folder: Path = NUMBERS) -> dict[str, pd.DataFrame]:
    """Panels whose numbers are kept, those on the paper's set before those on the nearest one."""
    tables = {}
    for name, (_, panel) in PANELS.items():
        files = (numbers(name, dataset, folder) for dataset in (panel.dataset, *panel.nearest))
        if file := next((file for file in files if file.is_file()), None):
            tables[name] = pd.read_csv(file)
    return tables


def keep(name: str, table: pd.DataFrame, folder: Path = NUMBERS) -> None:
    """Writes a panel's numbers with the engine's version, the same bytes for the same numbers."""
    file, packed = numbers(name, table["dataset"].iloc[0], folder), {"method": "gzip", "mtime": 1}
    noted = table.reindex(columns=COLUMNS).assign(**{ENGINE: engine_version()})
    noted.to_csv(file, index=False, float_format="%.5g", compression=packed)


def main() -> None:
    """Computes the panels one after the other; what is there so far is written after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", default=",".join(panels()))
    tables: dict[str, pd.DataFrame] = {}
    for name in parser.parse_args().panels.split(","):
        panel = setup(name)
        key = repr((panel.values, panel.figure.low, panel.figure.high))
        tables[key] = tables[key] if key in tables else compute(panel)
        keep(name, tables[key])
        known = kept()
        new = [one for figure in FIGURES for one in saved.judge_whole(figure, known)]
        saved.save_figures(saved.merge(new, saved.load().figures))
        print(name, flush=True)


if __name__ == "__main__":
    main()
