"""The rows that all race on: Adult where it is on this machine, else a synthetic census of the same size."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpviz.common.validate import InvalidInput
from dpviz.datasets.table.spec import TableSpec
from dpviz.experiments.run.setup import Setup, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import list_mechanisms

ADULT_ROWS = 48_842
_GAPS = dict.fromkeys(("workclass", "occupation", "native-country"), "?")


@dataclass(frozen=True)
class Track:
    """The rows and labels that are raced on.

    Attributes:
        dataset: catalogue name.
        words: what it is, for the table's head.
        setup: split and problem, with the arrays derived from rows made.
        arrays: an npz file with x, y, x_test and y_test, for the peers.
    """

    dataset: str
    words: str
    setup: Setup
    arrays: Path


def track(folder: Path | None, work: Path, rows: int = ADULT_ROWS) -> Track:
    """The rows, ready to race on.

    Args:
        folder: has adult.data and adult.test; None takes the census.
        work: an empty folder for files.
        rows: of the census.

    Raises:
        InvalidInput: a file is not there or is not what it should be.
    """
    name = f"census-{rows}" if folder is None else _adult(folder, work)
    spec = RunSpec(dataset=name, lam=1e-3, row_scaling="unit")  # as in the papers, and as for all peers
    found = setup_for(spec)
    train, test = found.problem.rows, found.test
    _ = train.signed_rows, train.signed_rows32, train.norms  # made once for all runs, so they count for none
    arrays = work / "rows.npz"
    np.savez(arrays, x=train.X, y=train.y, x_test=test.X, y_test=test.y)
    what = "Adult (UCI), all rows, gaps as a category" if folder else "synthetic census, because no folder with Adult was given"
    words = f"{what}: {len(train):,} training rows, {train.X.shape[1] - 1} features and a constant; {len(test):,} test rows"
    return Track(name, words, found, arrays)


def those_that_fit(dataset: str) -> list[str]:
    """Mechanisms that train logistic regression on a dataset."""
    setting = setup_for(RunSpec(dataset=dataset, mechanism="majority")).problem.setting
    return [name for name, cls in list_mechanisms().items() if cls.refusal(setting) is None]


def _adult(folder: Path, work: Path) -> str:
    """Puts both parts of Adult into a data folder as one table, and makes it the data folder of this process."""
    lines: list[str] = []
    for name in ("adult.data", "adult.test"):
        try:
            text = (folder / name).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise InvalidInput(
                "--data", f"{name} cannot be read in {folder} ({error.strerror})", "Name a folder with adult.data and adult.test."
            ) from error
        if "income" not in text[0]:
            raise InvalidInput(
                "--data", f"{name} has no header line", "Its first line must name the columns; the last is income."
            )
        lines += [line for line in (text if not lines else text[1:]) if line.strip()]
    if len(lines) != ADULT_ROWS + 1:
        raise InvalidInput(
            "--data",
            f"both files together have {len(lines) - 1:,} rows, not {ADULT_ROWS:,}",
            "Use UCI's own files, with a header.",
        )
    (work / "adult.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.utime(work / "adult.csv", (long_ago := time.time() - 3600, long_ago))  # a file that has just changed is read twice
    spec = TableSpec("income", (">50K",), defaults=_GAPS)
    (work / "adult.toml").write_text(spec.to_toml(), encoding="utf-8")
    os.environ["DPVIZ_DATA"] = str(work)
    return "data/adult.csv"
