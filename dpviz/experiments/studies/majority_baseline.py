"""Models that are no better than the majority label, or lose much to training: the likely cause, and what would help."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.common.digits import three
from dpviz.experiments.run.metrics import get_metric, measure_models
from dpviz.experiments.run.run import Result
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.cost import Cost, cost_in_metric, split_cost
from dpviz.mechanisms.capabilities import CountsSteps
from dpviz.models import get_model

#: shares of the test rows closer than this count as equal
LEAST = 0.0005
#: share that training alone may lose before it is said
MUCH = 0.05


class Cause(StrEnum):
    """The cause of a model's loss of its advantage over the majority label."""

    NOISE = "noise"
    TRAINING = "training"
    REGULARISATION = "λ"


@dataclass(frozen=True)
class NoBetter:
    """A model that is no better than always giving the most frequent label.

    Attributes:
        worse: whether it is worse.
        cause: the likely cause.
        fix: what it is lost to, and what is known to reduce that; one sentence.
    """

    worse: bool
    cause: Cause
    fix: str


_FIXES: dict[Cause, str] = {
    Cause.NOISE: "Most is lost to noise, which a larger ε or more rows reduce.",
    Cause.TRAINING: "Most is lost to short training or strong regularisation, which this much noise forces.",
    Cause.REGULARISATION: "The model without privacy is no better either on these test rows: another metric says more.",
}
_THRESHOLD: str = (
    " At the usual threshold it may call no row positive: ROC AUC, average precision and recall at a precision need no threshold."
)


def majority_baseline(cost: Cost, spec: RunSpec) -> NoBetter | None:
    """The reason why a run's models are no better than the majority label; None where they are better.

    Args:
        cost: in a metric that is better where it is higher.
        spec: the run.
    """
    mean, floor = cost.mean, cost.majority
    if not cost.metric.higher_is_better or math.isnan(floor) or not mean <= floor + LEAST:
        return None
    worse = mean < floor - LEAST
    if cost.non_private <= floor + max(LEAST, cost.floor_error):
        more = "" if cost.metric.id == "accuracy" else _THRESHOLD
        return NoBetter(worse, Cause.REGULARISATION, _FIXES[Cause.REGULARISATION] + more)
    if cost.noise >= cost.training:
        return NoBetter(worse, Cause.NOISE, _FIXES[Cause.NOISE])
    by_hand = _by_hand(spec)
    fix = _limit(spec) or _FIXES[Cause.TRAINING]
    if by_hand:
        fix = f"Most is lost to training, with {by_hand} set by hand."
    return NoBetter(worse, Cause.TRAINING, fix)


def _by_hand(spec: RunSpec) -> str:
    """Labels of the automatic hyperparameters that are set."""
    knobs = spec.build().knobs()
    return " and ".join(str(knobs[name].label).lower() for name, value in spec.params.items() if knobs[name].automatic and value)


def _limit(spec: RunSpec) -> str:
    """The sentence on what the method learns for this model at no epsilon; empty where there is no such limit."""
    return spec.build().limit(get_model(spec.model).setting(1, 1, 1.0))


def training_loss_note(cost: Cost, spec: RunSpec, lam: float) -> str | None:
    """A sentence where training loses much of a share and more than the noise, though the model beats the majority label.

    Descent from 0 fits a direction of curvature k only after the time 1/k, and a small lambda adds little curvature.

    Args:
        cost: in a metric; arguments else as for `majority_baseline`.
        lam: lambda of the run.
    """
    if not cost.metric.shares or not cost.has_value or not cost.training >= max(MUCH, cost.noise):
        return None
    lost = f"{100 * cost.training:.1f} points in {cost.metric.within} are lost without any noise"
    by_hand = _by_hand(spec)
    if by_hand:
        return f"{lost}, with {by_hand} set by hand."
    if not isinstance(spec.build(), CountsSteps):
        return f"{lost}, to the method’s own regularisation. {_limit(spec)}".strip()
    return f"{lost}: they come from stopping early (λ = {three(lam)}); longer training needs more noise."


def looks_no_better(spec: RunSpec, theta: Floats, metric: str) -> bool:
    """True where models are no better than the majority label on the test rows.

    Args:
        theta: (S, m) parameters. Zeros, where a label was released in the place of a model, count as no better.
        metric: an id of `get_metric`.
    """
    measure, setup = get_metric(metric), setup_for(spec)
    floor = float(setup.baselines_in([metric]).at["majority", measure.column])
    return measure.higher_is_better and bool(  # NaN, where a label has no value, is above nothing
        measure_models(setup.problem.model, theta, setup.test, None, [metric]).to_numpy().mean() <= floor + LEAST
    )


def guessing(
    result: Result, metrics: Sequence[str], values: pd.DataFrame, baselines: pd.DataFrame, cost: Cost | None = None
) -> dict[str, NoBetter]:
    """In which metrics a run is no better than the majority label, and why, by their ids.

    Its training without noise is repeated only where it is no better in one of them, and its cost is not known.

    Args:
        result: the run.
        metrics: ids of metrics.
        values: of `Result.metrics_in` in accuracy and these.
        baselines: of `Setup.baselines_in`, likewise.
        cost: of the run, in accuracy, where it is known.
    """
    spec, reasons = result.spec, {}
    for measure in map(get_metric, metrics if spec.mechanism != "majority" else ()):
        floor, expected = float(baselines.at["majority", measure.column]), result.expected_value(measure.id)
        mean = float(values[measure.column].to_numpy().mean()) if expected is None else expected
        if not measure.higher_is_better or math.isnan(floor) or not mean <= floor + LEAST:
            continue
        if cost is None:
            cost = split_cost(result)
        why = majority_baseline(cost_in_metric(result, cost, measure.id), spec)
        if why is not None:
            reasons[measure.id] = why
    return reasons
