"""Causes of each method's loss of accuracy, as a table: accuracy = non-private - training - noise.

python -m benchmarks.cost [--datasets teaching,breast-cancer] [--model logistic] [--epsilon 1] [--seeds 10]

Writes docs/data/cost.csv, from which the site makes its page; tables that are not made now stay. Adult is part of it where
DPVIZ_DATA names a folder with adult.data.
"""

import argparse

import pandas as pd

import dpviz
from benchmarks.defaults import FILE, KEYS, methods, published, write
from dpviz.experiments.studies.cost import split_cost

BUNDLED = ("teaching", "breast-cancer", "iris", "wine", "digits", "census-20000")
ADULT = "data/adult.data"


def datasets() -> list[str]:
    """The bundled sets, a synthetic census, and Adult where it is in the data folder."""
    return [*BUNDLED, *(name for name in published() if name == ADULT)]


def parts(dataset: str, epsilon: float, seeds: int, model: str = "logistic") -> pd.DataFrame:
    """One row per method: accuracy, non_private, training and noise in per cent; exact over the noise where that is known."""
    rows = []
    for mechanism in methods(model):
        spec = dpviz.RunSpec(dataset, model=model, mechanism=mechanism, epsilon=epsilon, seeds=seeds)
        result = dpviz.run(spec)
        cost = split_cost(result)
        shares = [round(100 * share, 1) + 0.0 for share in (cost.mean, cost.non_private, cost.training, cost.noise)]
        rows.append((dataset, model, mechanism, epsilon, *shares))
    return pd.DataFrame(rows, columns=[*KEYS, "accuracy", "non_private", "training", "noise"])


def main() -> None:
    """Measures dataset by dataset."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default=",".join(datasets()))
    parser.add_argument("--model", default="logistic")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    for name in given.datasets.split(","):
        table = parts(name, given.epsilon, given.seeds, given.model)
        write(table, FILE.with_name("cost.csv"), KEYS)
        print(table.to_string(), flush=True)


if __name__ == "__main__":
    main()
