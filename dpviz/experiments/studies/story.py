"""Results for the first page: the cost of a run over epsilon, one person who leaves, and the attacker's bet about that person."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore
from dpviz.common.validate import check_choice
from dpviz.experiments.run.metrics import get_metric
from dpviz.experiments.run.run import run_epsilons
from dpviz.experiments.run.setup import setup_for, usable_epsilons
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import inspected
from dpviz.experiments.sweeps.curves import QUANTILES
from dpviz.mechanisms.attack import strongest_attack

#: who leaves: the person of the most influence, or one of the middle rank
WHO = {"most": "The most influential person", "typical": "A typical person"}


def cost_over(spec: RunSpec, epsilons: Sequence[float], metric: str, monitor: Monitor = ignore) -> pd.DataFrame:
    """A metric on the test rows and the best possible attack over epsilon.

    Args:
        spec: its own epsilon is not used.
        epsilons: budgets; those that cannot be met are left out.
        metric: an id (`get_metric`).

    Returns:
        One row per budget: epsilon, mean, low, high (10 % and 90 % of the noise draws), right (largest share of right guesses,
        NaN where nothing is proved).
    """
    met, _ = usable_epsilons(spec, epsilons)
    column, rows = get_metric(metric).column, []
    for made in run_epsilons(spec, met, instances=False, monitor=monitor) if met else ():
        values, expected = made.metrics_in([metric])[column].to_numpy(float), made.expected_value(metric)
        attack = strongest_attack(made.spec.build(), made.setup.problem.setting, made.calibration)
        mean = float(values.mean()) if expected is None else expected
        rows.append((made.spec.epsilon, mean, *np.quantile(values, QUANTILES), np.nan if attack is None else attack.accuracy))
    return pd.DataFrame(rows, columns=["epsilon", "mean", "low", "high", "right"])


@dataclass(frozen=True, eq=False)
class Departure:
    """A training row that leaves, with the model without privacy before and after.

    Attributes:
        row_id: of the row.
        before, after: (1, m) parameters with the row and retrained without it.
        moved: distance between both.
        noise: root mean square distance of the private models from their mean; NaN for one.
    """

    row_id: int
    before: Floats
    after: Floats
    moved: float
    noise: float


def leaver(spec: RunSpec, who: str = "most") -> int:
    """The position of the training row that leaves.

    Args:
        who: a key of `WHO`.
    """
    ranks = inspected.row_influence(spec).order
    return int(ranks[0 if check_choice("who", who, WHO) == "most" else len(ranks) // 2])


def departure(spec: RunSpec, theta: Floats, who: str = "most", monitor: Monitor = ignore) -> Departure:
    """Retrains a run's model without privacy after one person left.

    Args:
        theta: (seeds, m) parameters of its private models.
        who: a key of `WHO`.

    Raises:
        InvalidInput: an unknown person, or a network whose training reached no minimum.
    """
    position = leaver(spec, who)
    truth, row_id = inspected.retrain_without(spec, [position], monitor), int(setup_for(spec).split.train[position])
    return Departure(row_id, truth.base[None], truth.theta, float(truth.norm[0]), inspected.noise_size(theta))


def best_bet(accuracy: float, count: int = 2000) -> pd.DataFrame:
    """The measurements of the best possible attacker: two normal distributions that are told apart that often.

    A likelihood ratio test of two unit normal distributions mu apart is right in Phi(mu / 2) of all cases (Dong, Roth, Su 2022).

    Args:
        accuracy: share of right guesses, in [0.5, 1].
        count: values of each.

    Returns:
        Columns side (0 with the person, 1 without) and u, at evenly spaced quantiles.
    """
    half = min(float(ndtri(accuracy)), 8.0)
    quantiles = ndtri((np.arange(count) + 0.5) / count)
    return pd.DataFrame({"side": np.repeat((0, 1), count), "u": np.r_[quantiles - half, quantiles + half]})


def noising_run(spec: RunSpec) -> RunSpec | None:
    """The run with the first method whose rule puts noise on some rows only; None where none fits the model."""
    return next(iter(inspected.noising_rows(spec, 0.1)), None)
