"""Private search beside the defaults and beside picking by hand, at one total ε: test accuracy and what each really costs.

python -m benchmarks.search [--datasets data/adult.data,breast-cancer] [--mechanisms dp-gd,output-gaussian]
    [--epsilon 2] [--repetitions 20] [--out docs/private_search.md]

Datasets whose files `DPVIZ_DATA` does not hold are left out, and the page says so.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dpviz
from dpviz.experiments.run.setup import setting_of
from dpviz.mechanisms import DeclaresEvent
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.budget import Budget
from dpviz.releasing.tuning import default_values, private_search, settings_of
from dpviz.spending.of_run import entry_of

Floats = NDArray[np.float64]

START = """# Private search beside the defaults

Test accuracy in per cent, mean ± standard deviation over {repetitions} repetitions at ε = {epsilon:g}, made by
`python -m benchmarks.search`. Its settings are those of `dpviz release --try`: five values each of λ and of the method's first
hyperparameter, around those that public facts give.

- **Defaults**: one model with automatic hyperparameters, on all training rows.
- **Private search**: 10 models on average, on 80 % of the training rows, the best by a noisy score on the others. The whole
  search costs ε = {epsilon:g}.
- **Picked by hand**: every setting of the list once at ε = {epsilon:g}, and the best test accuracy of all, as one reads it off
  the heat map. It is optimistic and not private: the last column is what these models cost together, without the scores.

| dataset | method | defaults | private search | picked by hand | ε of what was tried by hand |
|---|---|---|---|---|---|
"""


def in_words(values: Floats) -> str:
    """Mean ± standard deviation in per cent."""
    return f"{100 * values.mean():.1f} ± {100 * values.std():.1f}"


def accuracy(spec: dpviz.RunSpec, theta: Floats) -> float:
    """Test accuracy of (m,) parameters."""
    setup = dpviz.setup_for(spec)
    return float(setup.problem.model.measure(theta[None], setup.test)[1][0])


def by_hand(spec: dpviz.RunSpec, repetitions: int) -> tuple[Floats, float]:
    """((repetitions,) best test accuracy among all settings, the epsilon of all models that were tried for one of them)."""
    # a seed of each: with one seed all settings would share one noise draw
    runs = [replace(run, seeds=repetitions, seed=k) for k, run in enumerate(settings_of(spec, default_values(spec)))]
    results = [dpviz.run(run) for run in runs]
    releases = [entry_of(r.spec.build(), setting_of(r.spec), r.calibration).release for r in results]
    best = np.max([r.accuracy for r in results], axis=0)
    return best, total_epsilon(releases, dpviz.resolve(spec).budget.delta)


def row(dataset: str, mechanism: str, epsilon: float, repetitions: int, said: Callable[[str], None]) -> str:
    """A line of the table."""
    spec = dpviz.RunSpec(dataset, mechanism=mechanism, epsilon=epsilon)
    default = dpviz.run(replace(spec, seeds=repetitions)).accuracy
    picked, cost = by_hand(spec, repetitions)
    searched = "–"
    if isinstance(spec.build(), DeclaresEvent):  # others cannot be searched
        found = []
        for k in range(repetitions):
            found.append(accuracy(spec, private_search(spec, default_values(spec), ranges_from_data=True).model.theta))
            said(f"{dataset} {mechanism} {k + 1}/{repetitions}: {found[-1]:.4f}")
        searched = in_words(np.array(found))
    cells = [in_words(default), searched, in_words(picked), f"{cost:.3g}" if cost < np.inf else "none at this δ"]
    return f"| {dataset} | {mechanism} | {' | '.join(cells)} |\n"


def conclusion(lines: list[str]) -> str:
    """A sentence on what the search gains over the defaults."""
    cells = [[cell.strip() for cell in line.split("|")[3:5]] for line in lines]
    gains = sorted(float(s.split()[0]) - float(d.split()[0]) for d, s in cells if s != "–")
    if not gains:
        return ""
    wins = sum(gain > 0 for gain in gains)
    return (
        f"\nThe private search is better than the defaults in {wins} of {len(gains)} comparisons; it changes accuracy by "
        f"{gains[0]:+.1f} to {gains[-1]:+.1f} points.\nA model of a search gets a part of ε and of the rows, so that a search "
        "pays only where automatic settings are poor for the rows.\n`objective-tight` has no private search.\n"
    )


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--datasets", default="data/adult.data,data/bank-full.csv,breast-cancer,digits,teaching", help="with commas"
    )
    parser.add_argument("--mechanisms", default="objective-tight,output-gaussian,dp-gd", help="with commas")
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--out", default="docs/private_search.md")
    given = parser.parse_args()
    Budget(given.epsilon)
    lines, absent = [], []
    for dataset in given.datasets.split(","):
        try:
            dpviz.load_dataset(dataset)
        except dpviz.InvalidInput:
            absent.append(f"\n{dataset} was left out: `DPVIZ_DATA` holds no such file.\n")
            continue
        for mechanism in given.mechanisms.split(","):
            lines.append(row(dataset, mechanism, given.epsilon, given.repetitions, print))
    text = START.format(repetitions=given.repetitions, epsilon=given.epsilon) + "".join(lines) + conclusion(lines)
    Path(given.out).write_text(text + "".join(absent), encoding="utf-8")


if __name__ == "__main__":
    main()
