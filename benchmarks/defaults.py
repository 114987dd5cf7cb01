"""Quality of methods at their automatic hyperparameters: accuracy without noise and at a few budgets, as a table.

python -m benchmarks.defaults [--pairs breast-cancer:logistic,iris:mlp] [--methods dp-gd,nsgd] [--epsilons 0.1,1,10] [--seeds 3]

Writes docs/data/defaults.csv, from which the site makes its page; rows that are not measured now stay. Adult, Bank and KDDCup99
are measured where DPVIZ_DATA names a folder with their files.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

import dpviz
from dpviz.experiments.run.run import run_epsilons
from dpviz.experiments.studies.cost import split_cost
from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model

FILE = Path(__file__).parents[1] / "docs" / "data" / "defaults.csv"
KEYS = ["dataset", "model", "method", "epsilon"]
#: datasets with the file that they need in the data folder
PUBLISHED = {"data/adult.data": "adult.data", "bank": "bank-full.csv", "kddcup99-70000": "kddcup.data_10_percent.gz"}


def methods(model: str) -> list[str]:
    """Ids of the methods that can train a model, without the references."""
    setting = get_model(model).setting(1000, 5, 1e-3)
    return [name for name, cls in list_mechanisms().items() if cls.family != "reference" and cls.refusal(setting) is None]


def measured(dataset: str, model: str, mechanism: str, epsilons: Sequence[float], seeds: int) -> pd.DataFrame:
    """One row per budget: epsilon, mean, spread (standard deviation), training, non_private and majority, all shares."""
    spec = dpviz.RunSpec(dataset=dataset, model=model, mechanism=mechanism, seeds=seeds)
    runs = run_epsilons(spec, list(epsilons), instances=False)
    cost = split_cost(runs[-1])
    return pd.DataFrame(
        {
            "epsilon": epsilons,
            "mean": [r.accuracy.mean() for r in runs],
            "spread": [r.accuracy.std() for r in runs],
            "training": cost.training,
            "non_private": runs[0].non_private.accuracy,
            "majority": runs[0].majority.accuracy,
        }
    )


def published() -> list[str]:
    """Published datasets whose files are in the data folder."""
    folder = Path(os.environ.get("DPVIZ_DATA", "data"))
    return [name for name, file in PUBLISHED.items() if (folder / file).is_file()]


def pairs() -> list[tuple[str, str]]:
    """Datasets with models: the bundled ones, a synthetic census, and published files in the data folder."""
    linear = ["breast-cancer", "iris", "digits", "census-20000", *published()]
    networks = ["breast-cancer", "iris", "teaching", "census-20000", *published()]
    return [(d, m) for m in ("logistic", "svm") for d in linear] + [(d, "mlp") for d in networks]


def write(table: pd.DataFrame, file: Path, keys: Sequence[str]) -> None:
    """Writes rows in the place of those with the same keys; numbers with one digit after the point."""
    before = pd.read_csv(file, dtype=str) if file.is_file() else pd.DataFrame()
    rows = table.assign(**{c: table[c].map("{:.1f}".format) for c in table if table[c].dtype == float and c not in keys})
    rows = rows.assign(epsilon=table["epsilon"].map("{:g}".format))
    pd.concat([before, rows]).drop_duplicates(list(keys), keep="last").to_csv(file, index=False)


def main() -> None:
    """Measures pair by pair; what is there so far is kept where it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", default=",".join(f"{d}:{m}" for d, m in pairs()), help="dataset:model, with commas")
    parser.add_argument("--methods", default="", help="methods to measure, all by default")
    parser.add_argument("--epsilons", default="0.1,1,10")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    epsilons = [float(e) for e in given.epsilons.split(",")]
    for pair in given.pairs.split(","):
        dataset, _, model = pair.rpartition(":")
        for name in given.methods.split(",") if given.methods else methods(model):
            shares = measured(dataset, model, name, epsilons, given.seeds)
            percent = 100 * shares.drop(columns="epsilon")
            table = pd.concat([shares["epsilon"], percent], axis=1).assign(dataset=dataset, model=model, method=name)
            write(table[[*KEYS, *percent]], FILE, KEYS)


if __name__ == "__main__":
    main()
