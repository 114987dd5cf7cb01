"""Quality of methods at their automatic hyperparameters: accuracy without noise and at a few budgets, as a table.

python -m benchmarks.defaults [--pairs breast-cancer:logistic,iris:mlp] [--epsilons 0.1,1,10] [--seeds 3]
    [--out docs/defaults.md]

Adult and KDDCup99 are part of it where DPVIZ_DATA names a folder with their files.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

import dpviz
from dpviz.experiments.run.run import run_epsilons
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.studies.cost import split_cost
from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model

#: datasets with the file that they need in the data folder
PUBLISHED = {"data/adult.data": "adult.data", "kddcup99-70000": "kddcup.data_10_percent.gz"}

START = """# Methods at their automatic hyperparameters

Test accuracy in per cent (± standard deviation over noise draws), λ and row scaling automatic. "Training" is what the same
training without noise loses at the largest ε; tables of 30 to 120 test rows jump by whole rows. Made by
`python -m benchmarks.defaults`, with `DPVIZ_DATA` naming a folder with `adult.data` and `kddcup.data_10_percent.gz`; without it,
without Adult and KDDCup99.
"""

PAGE = "docs/defaults.md"
#: sections that are kept: that of `benchmarks.best_known`, and what was measured once, before the rules
KEPT = ("The best default", "What calibrated the rules")


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


def pairs() -> list[tuple[str, str]]:
    """Datasets with models: the bundled ones, a synthetic census, and published files that are in the data folder."""
    linear = ["breast-cancer", "iris", "digits", "census-20000", *published()]
    networks = ["breast-cancer", "iris", "teaching", "census-20000", *published()]
    return [(d, m) for d in linear for m in ("logistic", "svm")] + [(d, "mlp") for d in networks]


def section(dataset: str, model: str, epsilons: Sequence[float], seeds: int) -> str:
    """A heading and a table in Markdown."""
    setup = setup_for(dpviz.RunSpec(dataset=dataset, model=model))
    lines = [
        f"\n## {dataset}, {model}\n",
        f"Non-private {100 * setup.non_private.accuracy:.1f}, majority {100 * setup.majority.accuracy:.1f}.\n",
        f"| method | {' | '.join(f'ε = {e:g}' for e in epsilons)} | training |",
        f"|---|{'---|' * len(epsilons)}---|",
    ]
    for name in methods(model):
        found = measured(dataset, model, name, epsilons, seeds)
        cells = [f"{100 * row['mean']:.1f} ± {100 * row['spread']:.1f}" for row in found.to_dict("records")]
        lines.append(f"| {name} | {' | '.join(cells)} | {100 * found['training'].iloc[0]:.1f} |")
    return "\n".join(lines) + "\n"


def _kept(path: Path) -> str:
    """The sections of the page that other commands or earlier measurements made."""
    there = path.read_text(encoding="utf-8") if path.is_file() else ""
    sections = there.split("\n## ")[1:]
    return "".join(f"\n## {one}" for one in sections if one.startswith(KEPT))


def main() -> None:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", default=",".join(f"{d}:{m}" for d, m in pairs()), help="dataset:model, with commas")
    parser.add_argument("--epsilons", default="0.1,1,10")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", default=PAGE)
    given = parser.parse_args()
    epsilons = [float(e) for e in given.epsilons.split(",")]
    text = START + _kept(Path(PAGE))
    for pair in given.pairs.split(","):
        dataset, _, model = pair.rpartition(":")
        text += section(dataset, model, epsilons, given.seeds)
        Path(given.out).write_text(text, encoding="utf-8")  # what is there so far is kept where it is stopped


if __name__ == "__main__":
    main()
