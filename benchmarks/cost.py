"""Causes of each method's loss of accuracy, as a table: accuracy = non-private - training - noise.

python -m benchmarks.cost [--datasets teaching,breast-cancer] [--model logistic] [--epsilon 1] [--seeds 10] [--out docs/cost.md]

Adult is part of it where DPVIZ_DATA names a folder with adult.data; tables that are on the page and are not made now are kept.
"""

import argparse
from pathlib import Path

import pandas as pd

import dpviz
from benchmarks import sections
from benchmarks.defaults import methods, published
from dpviz.experiments.studies.cost import split_cost

START = """# What accuracy is lost to

Test accuracy in per cent at the automatic hyperparameters, λ and row scaling: accuracy = non-private − training − noise.
"Training" is what the same training without noise loses, "noise" what the noise loses beside that; below 0 it gained by chance.
Means are exact over the noise where there is a closed form. Made by `python -m benchmarks.cost`, with `DPVIZ_DATA` naming a
folder with `adult.data`; without it, without Adult.
"""


BUNDLED = ("teaching", "breast-cancer", "iris", "wine", "digits", "census-20000")
ADULT = "data/adult.data"


def datasets() -> list[str]:
    """The bundled sets, a synthetic census, and Adult where it is in the data folder."""
    return [*BUNDLED, *(name for name in published() if name == ADULT)]


def parts(dataset: str, epsilon: float, seeds: int, model: str = "logistic") -> pd.DataFrame:
    """One row per method: accuracy, non_private, training and noise, all shares."""
    rows = []
    for mechanism in methods(model):
        spec = dpviz.RunSpec(dataset, model=model, mechanism=mechanism, epsilon=epsilon, seeds=seeds)
        result = dpviz.run(spec)
        cost = split_cost(spec, result.accuracy, result.calibration, expected=result.expected_accuracy)
        rows.append((mechanism, cost.mean, cost.non_private, cost.training, cost.noise))
    return pd.DataFrame(rows, columns=["method", "accuracy", "non_private", "training", "noise"])


def section(dataset: str, epsilon: float, seeds: int, model: str) -> str:
    """A heading and a table in Markdown."""
    table = parts(dataset, epsilon, seeds, model)
    head = f"{sections.START}{dataset}, {model}, ε = {epsilon:g}, {seeds} noise draws\n"
    lines = [head, "| method | accuracy | non-private | training | noise |", "|---|---|---|---|---|"]
    for row in table.to_dict("records"):
        shares = [row[name] for name in ("accuracy", "non_private", "training", "noise")]
        lines.append(f"| {row['method']} | {' | '.join(f'{round(100 * share, 1) + 0.0:.1f}' for share in shares)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Prints the tables, or writes them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--datasets", default=",".join(datasets()))
    parser.add_argument("--model", default="logistic")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    page = sections.read(given.out) if given.out else {}
    for name in given.datasets.split(","):
        made = section(name, given.epsilon, given.seeds, given.model)
        page[sections.heading(made)] = made
    text = START + "".join(page.values())
    if given.out is None:
        print(text)
    else:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
