"""k-fold cross validation, repeated: the same sweep on every fold, and error bars that keep splits and noise apart."""

from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.common.progress import Monitor, ignore, track
from dpviz.common.validate import InvalidInput, check_instance, check_integer
from dpviz.experiments.sweeps.cells import CellStore
from dpviz.experiments.sweeps.curves import closed_form
from dpviz.experiments.sweeps.sweep import SweepSpec, run_sweep


def splits(spec: SweepSpec, repeats: int = 1) -> list[SweepSpec]:
    """The sweep on each split: k folds of each of `repeats` permutations, or `repeats` 80/20 splits where `folds` is 0.

    Every split has a noise seed of its own: shared noise would not average out over the splits.

    Raises:
        InvalidInput: fewer than two splits in all, or too many; or the published split, which is one.

    >>> [one.split_seed for one in splits(SweepSpec("iris", folds=5))]
    [0, 1, 2, 3, 4]
    """
    repeats = check_integer("repeats", repeats, 1, 1000)
    if check_instance("spec", spec, SweepSpec).published_split:
        raise InvalidInput("repeats", "the published split is one split", "Leave one of the two out.")
    count = repeats * (spec.folds or 1)
    if count < 2:
        raise InvalidInput("repeats", "one split alone has no spread", "Give folds, or at least two repeats.")
    first = spec.split_seed * (spec.folds or 1)
    return [replace(spec, split_seed=first + k, seed=spec.seed + k) for k in range(count)]


def cross_validate(
    spec: SweepSpec, repeats: int = 1, *, store: CellStore | None = None, n_jobs: int = 1, monitor: Monitor = ignore
) -> pd.DataFrame:
    """The tables of a sweep on all splits below each other, with the columns split, repeat and fold in front.

    Args:
        spec: its `folds` is k; its `split_seed` is the first permutation.
        repeats: permutations of the rows. Chen, Lee, Kifer 2019 take 20 times 5 folds.
    """
    tables = []
    for k, (one, inside) in enumerate(track(monitor, splits(spec, repeats))):
        table = run_sweep(one, store=store, n_jobs=n_jobs, monitor=inside)
        table.insert(0, "fold", k % spec.folds if spec.folds else 0)
        table.insert(0, "repeat", k // spec.folds if spec.folds else k)
        table.insert(0, "split", k)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def summarise_splits(table: pd.DataFrame, folds: int, quantity: str = "accuracy") -> pd.DataFrame:
    """Means over splits and noise, and both spreads apart.

    Args:
        table: as from `cross_validate`.
        folds: k, or 0 for 80/20 splits: the share of test rows decides how much splits have in common.

    Returns:
        One row per mechanism and epsilon: mean; noise_sd, the spread over noise draws on one split; split_sd, the spread of
        the noise-free means over splits; standard_error of the mean; splits and draws. Training sets of different splits
        overlap, so split means are correlated, and their variance over J is too small for the variance of the mean:
        (1/J + n_test/n_train) times it is taken instead (Nadeau, Bengio 2003; Bouckaert, Frank 2004 for repeated folds).
    """
    overlap = 1 / (folds - 1) if folds else 0.25
    rows = []
    for (mechanism, epsilon), part in table.groupby(["mechanism", "epsilon"], sort=False):
        means, within, draws, exact = [], [], 0, True
        for _, one in part.groupby("split"):
            values = one[quantity].to_numpy(float)
            closed = closed_form(one, quantity)
            means.append(float(values.mean()) if closed is None else closed)
            within.append(float(values.var(ddof=1)) if len(values) > 1 else np.nan)
            draws, exact = len(values), exact and closed is not None
        between, noise = float(np.var(means, ddof=1)), float(np.mean(within))
        left = 0.0 if exact or not np.isfinite(noise) else noise / draws  # of the noise, in the mean of one split
        rows.append(
            {
                "mechanism": mechanism,
                "epsilon": epsilon,
                "mean": float(np.mean(means)),
                "noise_sd": float(np.sqrt(noise)),
                "split_sd": float(np.sqrt(max(between - left, 0.0))),
                "standard_error": float(np.sqrt((1 / len(means) + overlap) * between)),
                "splits": len(means),
                "draws": draws,
            }
        )
    return pd.DataFrame(rows)
