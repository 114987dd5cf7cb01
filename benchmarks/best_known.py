"""The best proved default beside the best that is known for the same ε: dpviz tuned without privacy, and diffprivlib.

python -m benchmarks.best_known [--sets Adult,Iris] [--draws 10] [--environments FOLDER]

Writes docs/data/best_known.csv, from which the site makes its page; sets that are not measured now stay. What
is chosen (a method, its settings, C) is chosen on a quarter of the training rows; test rows only score what was chosen, trained
on all training rows.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.defaults import write
from benchmarks.peers.environments import Peer, Unavailable, interpreter
from dpviz.common.files import cache_folder
from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput
from dpviz.datasets import Dataset, load_dataset
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.resolve import automatic_lam
from dpviz.mechanisms import Training, get_mechanism, list_mechanisms, rules
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget, row_budget

Floats = NDArray[np.float64]
FILE = Path(__file__).parents[1] / "docs" / "data" / "best_known.csv"

#: names of the issue -> datasets
SETS = {
    "Adult": "adult",
    "Bank": "bank",
    "KDD": "kddcup99-70000",
    "IPUMS-BR": "data/IPUMS-BR.csv",
    "699": "breast-cancer-original",
    "Credit card": "data/creditcard_balanced.csv",
    "Iris": "iris",
}
EPSILONS = (0.1, 1.0, 10.0)
SMALL, SPLITS = 5_000, 20  # rows below which test parts are so small that several splits are averaged
PEER_DEFAULT_C = 1.0
#: diffprivlib's C with `data_norm`, to which rows are stretched: C at norm B is C B^2 at norm 1, so that these are all different
PEER_C_AND_NORM = ((0.01, 1.0), (0.01, 3.0), (1.0, 1.0), (1.0, 3.0), (1.0, 10.0), (100.0, 3.0))


@dataclass(frozen=True)
class Candidate:
    """A way to train: a mechanism, its hyperparameters, λ (0: by the rule) and a row scaling."""

    mechanism: str
    scaling: str = "automatic"
    lam: float = 0.0
    params: tuple[tuple[str, Any], ...] = ()

    @property
    def words(self) -> str:
        more = [f"{k} {v:g}" for k, v in self.params if v]
        more += [f"λ {self.lam:g}"] if self.lam else []
        return ", ".join([self.mechanism, *more, *([] if self.scaling == "automatic" else [self.scaling])])


def defaults() -> list[Candidate]:
    """Every method at its defaults."""
    return [Candidate(name) for name, cls in list_mechanisms().items() if cls.family != "reference"]


def grid(model: str) -> Iterator[Candidate]:
    """Settings that the tuner tries beside the defaults."""
    scalings = ("automatic", "unit", "bound")
    if model != "mlp":
        for scaling in scalings:
            yield from (Candidate("objective-tight", scaling, lam) for lam in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2))
        yield from (Candidate("fukuchi-input", lam=lam) for lam in (1e-4, 1e-3, 1e-2))
        yield from (Candidate("output-gaussian", lam=lam) for lam in (1e-4, 1e-3, 1e-2))
    for scaling in scalings[:2]:
        for clip in (0.1, 1.0):
            for steps in (50, 200, 1000):
                for step in (0.0, 1.0, 10.0) if clip < 1 else (0.0, 1.0):
                    yield Candidate("dp-gd", scaling, params=(("clip_norm", clip), ("steps", steps), ("step_size", step)))
    for rate, epochs, step in ((0.1, 20.0, 0.3), (0.1, 20.0, 1.0), (0.05, 50.0, 0.3), (0.05, 50.0, 1.0)):
        yield Candidate("dp-sgd", params=(("sampling_rate", rate), ("epochs", epochs), ("step_size", step)))


def parts(dataset: Dataset, split: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Row ids: training rows, the quarter of them that candidates are chosen on, and test rows."""
    cut = dataset.split(split)
    order = np.random.default_rng(1_000 + split).permutation(cut.train)
    return cut.train, np.sort(order[: len(order) // 4]), cut.test


def scores(
    dataset: str, model: str, one: Candidate, epsilons: Sequence[float], split: int, draws: int, *, final: bool
) -> Floats | None:
    """(E, S) accuracies of a candidate; None where it refuses, diverges, or its guarantee is not proved.

    Args:
        final: score the test rows after training on all training rows, not the quarter after training on the rest.
    """
    data = load_dataset(dataset, scaling=one.scaling)
    fitted, held, test = parts(data, split)
    held, fitted = (test, fitted) if final else (held, np.setdiff1d(fitted, held))
    rows, against = (Rows(data.X[part], data.y[part]) for part in (fitted, held))
    n, d, made = len(fitted), data.d, get_model(model)
    found = np.empty((len(epsilons), draws))
    groups: dict[float, list[int]] = {}
    try:
        mechanism = get_mechanism(one.mechanism).from_params(dict(one.params))
        if mechanism.refusal(made.setting(n, d, rules.regularisation(n, d))):
            return None
        budgets: list[Budget] = [row_budget(e, None, len(fitted)) for e in epsilons]
        for e, budget in enumerate(budgets):
            groups.setdefault(one.lam or automatic_lam(mechanism, model, n, d, budget), []).append(e)
        for lam, places in groups.items():
            problem = Problem(rows, made, lam)
            calibrations = [mechanism.calibrate(problem.setting, budgets[e]) for e in places]
            if any(c.proved_budget is None or c.proved_budget.epsilon > c.budget.epsilon for c in calibrations):
                return None
            trained = train(mechanism, Training(problem, calibrations, spawn(split, draws), record=False), keep_diverged=True)
            found[places] = trained.accuracy(against)
    except InvalidInput:
        return None
    return found


@dataclass(frozen=True)
class Cell:
    """The choice for one budget: in words, and its mean test accuracy over draws and splits."""

    words: str
    mean: float


def chosen(
    dataset: str, model: str, candidates: Sequence[Candidate], splits: int, draws: int
) -> tuple[dict[Candidate, Floats], Mapping[float, Candidate]]:
    """Each candidate's (E,) mean accuracy on the held-out quarters, and the best one by ε."""
    held: dict[Candidate, Floats] = {}
    for one in candidates:
        each = [scores(dataset, model, one, EPSILONS, split, draws, final=False) for split in range(splits)]
        known = [found.mean(axis=1) for found in each if found is not None]
        if known and len(known) == splits:
            held[one] = np.mean(known, axis=0)
    return held, {e: max(held, key=lambda one, k=k: held[one][k]) for k, e in enumerate(EPSILONS)}


def tested(dataset: str, model: str, best: Mapping[float, Candidate], splits: int, draws: int) -> list[Cell]:
    """The chosen candidates on test rows."""
    cells = []
    for e, one in best.items():
        found = [scores(dataset, model, one, [e], split, draws, final=True) for split in range(splits)]
        cells.append(Cell(one.words, float(np.mean([f for f in found if f is not None]))))
    return cells


@dataclass(frozen=True)
class Option:
    """A way to use diffprivlib's logistic regression: row scaling, `data_norm` (rows are stretched to it) and C."""

    scaling: str
    norm: float
    C: float

    @property
    def words(self) -> str:
        return f"C {self.C:g}, data_norm {self.norm:g}, {self.scaling}"


def peer_scores(
    dataset: str, tasks: Sequence[tuple[Option, float]], split: int, draws: int, python: Path, *, final: bool
) -> Floats:
    """(tasks,) mean accuracies of diffprivlib for an option and an ε each, in its own environment; `final` as for `scores`."""
    found = np.empty(len(tasks))
    for scaling in {option.scaling for option, _ in tasks}:
        data = load_dataset(dataset, scaling=scaling)
        fitted, held, test = parts(data, split)
        held, fitted = (test, fitted) if final else (held, np.setdiff1d(fitted, held))
        here = [k for k, (option, _) in enumerate(tasks) if option.scaling == scaling]
        with tempfile.TemporaryDirectory() as folder:
            arrays = Path(folder) / "arrays.npz"
            np.savez(arrays, x=data.X[fitted], y=data.y[fitted], x_test=data.X[held], y_test=data.y[held])
            with Peer("diffprivlib", python, arrays, 1) as process:
                settings = [(tasks[k][0].norm, tasks[k][0].C, tasks[k][1]) for k in here]
                found[here] = process.ask("scores", settings=settings, draws=draws)["accuracy"]
    return found


def peer_cells(dataset: str, splits: int, draws: int, python: Path) -> tuple[list[Cell], list[Cell]]:
    """diffprivlib at its default C, and at the best C; scalings and norms are chosen in both."""
    options = [Option(s, norm, c) for s in ("automatic", "unit") for c, norm in PEER_C_AND_NORM]

    def mean(tasks: Sequence[tuple[Option, float]], count: int, *, final: bool) -> dict[tuple[Option, float], float]:
        each = [peer_scores(dataset, tasks, split, count, python, final=final) for split in range(splits)]
        return dict(zip(tasks, np.mean(each, axis=0).tolist(), strict=True))

    held = mean([(option, e) for option in options for e in EPSILONS], max(1, draws // 4), final=False)

    def top(among: Sequence[Option], epsilon: float) -> Option:
        return max(among, key=lambda one: held[one, epsilon])

    usual = [option for option in options if option.C == PEER_DEFAULT_C]
    best = [[top(among, e) for e in EPSILONS] for among in (usual, options)]
    found = mean(sorted({task for row in best for task in zip(row, EPSILONS, strict=True)}, key=str), draws, final=True)
    default, tuned = ([Cell(one.words, found[one, e]) for one, e in zip(row, EPSILONS, strict=True)] for row in best)
    return default, tuned


def rows(name: str, model: str, draws: int, python: Path | None) -> pd.DataFrame:
    """The rows of one set, one for each ε; accuracies in per cent.

    Args:
        python: of the environment with diffprivlib, None where there is none.
    """
    dataset = SETS[name]
    splits, fewer = SPLITS if load_dataset(dataset).n < SMALL else 1, max(3, draws // 3)
    own, best = chosen(dataset, model, defaults(), splits, fewer)
    known = own | chosen(dataset, model, list(grid(model)), splits, fewer)[0]
    top = {e: max(known, key=lambda one, k=k: known[one][k]) for k, e in enumerate(EPSILONS)}
    columns = {"default": tested(dataset, model, best, splits, draws), "known": tested(dataset, model, top, splits, draws)}
    if python:
        columns["peer_default"], peer = peer_cells(dataset, splits, draws, python)
        columns["peer_best"] = [Cell(f"diffprivlib, {cell.words}", cell.mean) for cell in peer]
        columns["known"] = [
            max(two, key=lambda cell: cell.mean) for two in zip(columns["known"], columns["peer_best"], strict=True)
        ]
    words = {f"{side}_is": [cell.words for cell in columns[side]] for side in ("default", "known")}
    means = {side: [100 * cell.mean for cell in cells] for side, cells in columns.items()}
    return pd.DataFrame({"set": name, "epsilon": EPSILONS} | means | words)


def main() -> None:
    """Measures set by set, those whose file is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), help="names, with commas")
    parser.add_argument("--model", default="logistic")
    parser.add_argument("--draws", type=int, default=10, help="noise draws of a split")
    parser.add_argument("--environments", type=Path, default=cache_folder() / "peers", help="where diffprivlib is installed")
    given = parser.parse_args()
    try:
        python = interpreter("diffprivlib", given.environments) if given.model == "logistic" else None
    except Unavailable as problem:
        print(problem)
        python = None
    for name in given.sets.split(","):
        try:
            load_dataset(SETS[name])
        except InvalidInput:
            print(f"not here: {name} ({SETS[name]})")
            continue
        table = rows(name, given.model, given.draws, python)
        write(table, FILE, ("set", "epsilon"))
        print(table.to_string(), flush=True)


if __name__ == "__main__":
    main()
