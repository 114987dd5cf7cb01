"""Quality of methods at their automatic hyperparameters: accuracy without noise and at a few budgets, as a table.

python -m benchmarks.defaults [--pairs breast-cancer:logistic,iris:mlp] [--methods dp-gd,nsgd] [--epsilons 0.1,1,10] [--seeds 3]
    [--out docs/defaults.md]

Adult, Bank and KDDCup99 are part of it where DPVIZ_DATA names a folder with their files. Tables that are on the page and are not
made now are kept.
"""

import argparse
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pandas as pd

import dpviz
from benchmarks import sections
from dpviz.experiments.run.run import run_epsilons
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.studies.cost import split_cost
from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model

#: datasets with the file that they need in the data folder
PUBLISHED = {"data/adult.data": "adult.data", "bank": "bank-full.csv", "kddcup99-70000": "kddcup.data_10_percent.gz"}

START = """# Methods at their automatic hyperparameters

Test accuracy in per cent (± standard deviation over noise draws), λ and row scaling automatic. "Training" is what the same
training without noise loses at the largest ε; tables of 30 to 120 test rows jump by whole rows. Made by
`python -m benchmarks.defaults`, with `DPVIZ_DATA` naming a folder with `adult.data`, `bank-full.csv` and
`kddcup.data_10_percent.gz`; tables of sets that are not there are kept.
"""


def methods(model: str) -> list[str]:
    """Ids of the methods that can train a model, without the references."""
    setting = get_model(model).setting(1000, 5, 1e-3)
    return [name for name, cls in list_mechanisms().items() if cls.family != "reference" and cls.refusal(setting) is None]


def measured(dataset: str, model: str, mechanism: str, epsilons: Sequence[float], seeds: int) -> pd.DataFrame:
    """One row per budget: epsilon, mean, spread (standard deviation), majority, non_private and training, all shares."""
    spec = dpviz.RunSpec(dataset=dataset, model=model, mechanism=mechanism, seeds=seeds)
    runs = run_epsilons(spec, list(epsilons), instances=False)
    cost = split_cost(runs[-1].spec, runs[-1].accuracy, runs[-1].calibration)
    return pd.DataFrame(
        {
            "epsilon": epsilons,
            "mean": [r.accuracy.mean() for r in runs],
            "spread": [r.accuracy.std() for r in runs],
            "majority": runs[0].majority.accuracy,
            "non_private": runs[0].non_private.accuracy,
            "training": cost.training,
        }
    )


def published() -> list[str]:
    """Published datasets whose files are in the data folder."""
    folder = Path(os.environ.get("DPVIZ_DATA", "data"))
    return [name for name, file in PUBLISHED.items() if (folder / file).is_file()]


def pairs(*, every: bool = False) -> list[tuple[str, str]]:
    """Datasets with models: the bundled ones, a synthetic census, and published files, those in the data folder or all."""
    files = list(PUBLISHED) if every else published()
    linear = ["breast-cancer", "iris", "digits", "census-20000", *files]
    networks = ["breast-cancer", "iris", "teaching", "census-20000", *files]
    return [(d, m) for m in ("logistic", "svm") for d in linear] + [(d, "mlp") for d in networks]


def section(dataset: str, model: str, epsilons: Sequence[float], seeds: int, only: Collection[str], before: str) -> str:
    """A heading and a table in Markdown.

    Args:
        only: methods that are measured, none for all; the others' lines are those of the table before, where it has them.
    """
    kept = {line.split(" | ")[0].removeprefix("| "): line for line in before.splitlines() if " | " in line}
    setup = setup_for(dpviz.RunSpec(dataset=dataset, model=model))
    lines = [
        f"{sections.START}{title(dataset, model)}\n",
        f"Non-private {100 * setup.non_private.accuracy:.1f}, majority {100 * setup.majority.accuracy:.1f}.\n",
        f"| method | {' | '.join(f'ε = {e:g}' for e in epsilons)} | training |",
        f"|---|{'---|' * len(epsilons)}---|",
    ]
    for name in methods(model):
        if only and name not in only and name in kept:
            lines.append(kept[name])
            continue
        found = measured(dataset, model, name, epsilons, seeds)
        cells = [f"{100 * row['mean']:.1f} ± {100 * row['spread']:.1f}" for row in found.to_dict("records")]
        lines.append(f"| {name} | {' | '.join(cells)} | {100 * found['training'].iloc[0]:.1f} |")
    return "\n".join(lines) + "\n"


def title(dataset: str, model: str) -> str:
    """The heading of a table."""
    return f"{dataset}, {model}"


def in_order(page: Mapping[str, str]) -> list[str]:
    """Sections of a page by their headings: what other commands made, then tables by model, as in `pairs` where all is there."""
    order = [title(d, m) for d, m in pairs(every=True)]
    others = [name for name in page if name not in order]
    return [page[name] for name in (*others, *(name for name in order if name in page))]


def main() -> None:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", default=",".join(f"{d}:{m}" for d, m in pairs()), help="dataset:model, with commas")
    parser.add_argument(
        "--methods", default="", help="methods to measure, all by default; others keep their lines where the page has them"
    )
    parser.add_argument("--epsilons", default="0.1,1,10")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", default="docs/defaults.md")
    given = parser.parse_args()
    epsilons = [float(e) for e in given.epsilons.split(",")]
    only = [name for name in given.methods.split(",") if name]
    page = sections.read(Path(given.out))
    for pair in given.pairs.split(","):
        dataset, _, model = pair.rpartition(":")
        before = page.get(title(dataset, model), "")
        page[title(dataset, model)] = section(dataset, model, epsilons, given.seeds, only, before)
        # what is there so far is kept where it is stopped
        Path(given.out).write_text(START + "".join(in_order(page)), encoding="utf-8")


if __name__ == "__main__":
    main()
