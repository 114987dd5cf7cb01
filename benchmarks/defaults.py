"""How good methods are at their automatic hyperparameters: accuracy without noise and at a few budgets, as a table.

python -m benchmarks.defaults [--datasets breast-cancer,census-20000] [--models logistic,svm] [--epsilons 0.1,1,10]
    [--seeds 3] [--out docs/defaults.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

import dpviz
from dpviz.experiments.cost import split_cost
from dpviz.experiments.run import run_epsilons
from dpviz.experiments.setup import setup_for
from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model

START = """# Methods at their automatic hyperparameters

Test accuracy in per cent (± standard deviation over noise draws), λ = 0.001. "Training" is what the same training without
noise loses at the largest ε. Made by `python -m benchmarks.defaults`.
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


def main() -> None:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="breast-cancer,census-20000")
    parser.add_argument("--models", default="logistic,svm")
    parser.add_argument("--epsilons", default="0.1,1,10")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", default="docs/defaults.md")
    given = parser.parse_args()
    epsilons = [float(e) for e in given.epsilons.split(",")]
    parts = [section(d, m, epsilons, given.seeds) for d in given.datasets.split(",") for m in given.models.split(",")]
    Path(given.out).write_text(START + "".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
