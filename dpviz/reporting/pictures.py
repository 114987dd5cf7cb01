"""Pictures of one run with their content in words, for pages and reports.

A trained run is a `dpviz.Result`, or what a page keeps of one, whose attributes have the same names.
"""

from typing import Any

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.experiments.run.resolve import dataset_of, resolve
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import decision_boundary
from dpviz.experiments.studies.cost import Cost
from dpviz.figures import accuracy, membership
from dpviz.figures.plane import decision_lines
from dpviz.figures.style import Look, Theme, look
from dpviz.mechanisms import list_mechanisms
from dpviz.mechanisms.attack import Attack
from dpviz.models import get_model
from dpviz.reporting import words
from dpviz.reporting.document import Chart

#: the two lines that stand beside every result, also when they are the result: colour of the theme, and dash
_BASELINES = {"non-private": ("ink", "solid"), "majority": ("majority", "dash")}


def method_look(mechanism: str, theme: Theme) -> Look:
    """The look of a mechanism, the same on every page."""
    cls = list_mechanisms()[mechanism]
    if mechanism in _BASELINES:
        part, dash = _BASELINES[mechanism]
        return Look(cls.label, getattr(theme, part), dash, "circle")
    family = [name for name, other in list_mechanisms().items() if other.family == cls.family]
    return look(theme, cls.label, cls.family, family.index(mechanism))


def accuracies(run: Any, cost: Cost, theme: Theme) -> Chart:
    """The metric of every noise draw between the two baselines.

    Args:
        run: trained.
        cost: its cost in the metric, which has a value.
    """
    measure, expected = cost.metric, cost.expected
    fig = accuracy.accuracy_distribution(
        cost.private,
        cost.non_private,
        cost.majority,
        method_look(run.spec.mechanism, theme),
        theme,
        expected=expected,
        title=f"test {measure.within}",
        shares=measure.shares,
    )
    over_all = "" if expected is None else f", {words.metric_value(measure, expected)} expected over all draws"
    summary = (
        f"Each dot is one noise draw, the triangle their mean: {words.metric_value(measure, float(cost.private.mean()))} "
        f"({words.spread_text(cost.private, shares=measure.shares)}{', one standard deviation' * (len(cost.private) > 1)})"
        f"{over_all}; non-private {words.metric_value(measure, cost.non_private)}, "
        f"majority label {words.metric_value(measure, cost.majority)}, all on the test rows."
    )
    return Chart(fig, summary, lambda: draw_table(run, cost))


def plane(run: Any, theme: Theme, overlay: Any = None, *, without: Floats | None = None, rings: bool = True, **more: Any) -> Any:
    """A trained run's rows in a plane, with the decision lines of private models and of the model without privacy.

    Args:
        overlay: another trained run, drawn where it lies in the same plane.
        without: (1, m) parameters of a model without one person.
        rings: whether outliers are ringed.
        more: further arguments of `figures.plane.decision_lines`.
    """
    drawn = decision_boundary.plane_of(run.spec, *run.theta.shape)
    same = ("dataset", "model", "intercept", "row_scaling")
    beside = overlay is not None and all(getattr(run.spec, name) == getattr(overlay.spec, name) for name in same)
    return decision_lines(
        drawn.view.points,
        drawn.labels,
        drawn.outlier & rings,
        drawn.axes,
        drawn.scores(run.theta),
        drawn.scores(run.non_private.theta[None])[0],
        method_look(run.spec.mechanism, theme),
        theme,
        names=drawn.view.names,
        classes=drawn.dataset.label_names,
        overlay=drawn.scores(overlay.theta) if beside else None,
        without=None if without is None else drawn.scores(without)[0],
        **more,
    )


def draw_table(run: Any, cost: Cost) -> pd.DataFrame:
    """One row per noise draw of a trained run."""
    name = cost.metric.column
    measured = ("accuracy", "train_accuracy", "objective", "optimality_gap", "expected_accuracy")
    columns = {"draw": np.arange(len(run.accuracy)), "epsilon": run.spec.epsilon}
    columns |= {column: getattr(run, column) for column in measured}
    columns |= {"non_private_accuracy": run.non_private.accuracy, "majority_accuracy": run.majority.accuracy}
    if name != "accuracy":
        columns |= {name: cost.private, f"non_private_{name}": cost.non_private, f"majority_{name}": cost.majority}
    return pd.DataFrame(columns)


def best_attack(attack: Attack, theme: Theme, overlay: Attack | None = None) -> Chart:
    """The best possible attack at every rate of false alarms, and what (epsilon, delta) alone would allow.

    Args:
        overlay: that of run A.
    """
    fig = membership.best_attack(attack.table, attack.best, theme, overlay=None if overlay is None else overlay.table)
    summary = (
        f"With at most 1 % false alarms an attacker detects at most {words.percent(attack.detections_at(0.01))} of the members. "
        f"Guesses are right at most {words.percent(attack.accuracy)}, by {attack.basis}; {words.budget(attack.budget)} alone "
        f"would allow {words.percent(attack.accuracy_by_budget)}."
    )
    if overlay is not None:
        summary += f" The dotted line is A: right at most {words.percent(overlay.accuracy)}."
    return Chart(fig, summary, lambda: attack.table)


def without_weights(run: Any) -> str:
    """The reason why a trained run has no weights to be drawn; "" where it has some."""
    names, base = dataset_of(run.spec).feature_names, run.non_private.theta
    if base is None or len(names) != run.theta.shape[1]:
        return (
            f"The network’s {run.theta.shape[1]:,} weights do not belong to one feature each, and networks that say the same "
            "can have different weights (hidden units can change places), so there is nothing to set side by side."
        )
    return "" if run.theta.any() else "This method releases a label and no weights."


def weights(run: Any, theme: Theme) -> Chart:
    """Weights without and with noise of a trained run that has some."""
    names, base = dataset_of(run.spec).feature_names, run.non_private.theta
    fig = accuracy.weights(run.theta, base, names, method_look(run.spec.mechanism, theme), theme)
    strongest = int(np.abs(base).argmax())
    values = run.theta[:, strongest]
    distance = float(np.linalg.norm(run.theta - base, axis=1).mean())
    most = f"The {accuracy.MOST} largest of {len(names)} weights" if len(names) > accuracy.MOST else "All weights"
    summary = (
        f"{most}. The private weights stand {words.three(distance)} away from the non-private ones on average, whose norm "
        f"is {words.three(float(np.linalg.norm(base)))}. The strongest, {names[strongest]}, is {words.three(base[strongest])} "
        f"without privacy and between {words.three(values.min())} and {words.three(values.max())} with noise."
    )
    draws = {f"draw {s}": run.theta[s] for s in range(len(run.theta))}
    return Chart(fig, summary, lambda: pd.DataFrame({"feature": names, "non-private": base} | draws))


def gaps(run: Any) -> Floats:
    """(S,) optimality gaps of a trained run; where the minimum is known, what lies below 0 is the solver's rounding."""
    return np.maximum(run.optimality_gap, 0.0) if get_model(run.spec.model).convex else np.asarray(run.optimality_gap)


def gap_reason(run: Any) -> str:
    """The reason why a trained run has no optimality gap to be drawn; "" where it has one."""
    convex = get_model(run.spec.model).convex
    return f"The gap is zero: this is {words.minimum(convex)} itself." if np.abs(gaps(run)).max() < 1e-12 else ""


def gap(run: Any, cost: Cost, theme: Theme) -> Chart:
    """The optimality gap of the private models."""
    found, convex = gaps(run), get_model(run.spec.model).convex
    reference = "the minimum" if convex else "the best long training"
    fig = accuracy.optimality_gap(found, method_look(run.spec.mechanism, theme), theme, reference=reference)
    least = f"{setup_for(run.spec).problem.optimal_value:.4g}"
    summary = (
        f"Training objective of each noise draw minus {least}, that of {words.minimum(convex)}{lambda_note(run.spec)}: "
        f"{words.three(float(found.mean()))} on average, from {words.three(found.min())} to {words.three(found.max())}."
    )
    if not convex:
        below = int((found < 0).sum())
        summary += f" {words.NO_MINIMUM}" + (f" Here {below} of {len(found)} draws did." if below else "")
    return Chart(fig, summary, lambda: draw_table(run, cost))


def lambda_note(spec: RunSpec) -> str:
    """The run's λ where the method's rule asks for another one than the non-private model has; "" elsewhere."""
    mine, reference = resolve(spec).lam, setup_for(spec).reference.setting.lam
    return (
        "" if mine == reference else f" at the method’s λ = {words.three(mine)} (the non-private model: {words.three(reference)})"
    )
