"""Explanations of one run, folded away below its picture: guarantee, numbers, attack, weights, gap, formulas."""

from functools import partial

import numpy as np
import pandas as pd

from dpviz.common.arrays import Floats
from dpviz.dashboard.kit import charts, folds, guarantee, panels, repeat, tables, words
from dpviz.dashboard.kit.folds import Section
from dpviz.dashboard.one_run import publishing
from dpviz.dashboard.work import tasks
from dpviz.dashboard.work.cached_runs import Outcome
from dpviz.experiments.run.resolve import dataset_of, resolve
from dpviz.experiments.run.setup import setup_for
from dpviz.figures import accuracy, odds
from dpviz.figures import weights as weight_figure
from dpviz.figures.style import Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.mechanisms.attack import Attack
from dpviz.models import get_model
from dpviz.privacy.budget import Status
from dpviz.reporting import Chart


def details(outcome: Outcome, theme: Theme) -> None:
    """Explanations of the picture, folded away."""
    folds.sections(
        Section("Guarantee", lambda: guarantee.badge(outcome.calibration, outcome.spec.build(), fold=False), sent="guarantee"),
        Section("Numbers", lambda: numbers(outcome), sent="numbers"),
        Section("Best possible attack", lambda: attacker(outcome, theme), sent="attack"),
        Section("Weights and optimality gap", lambda: weights_and_gap(outcome, theme), sent="weights"),
        Section("A model to publish", lambda: publishing.draw(outcome.spec), asked="release"),
    )
    how(outcome)


def numbers(outcome: Outcome) -> None:
    """The numbers behind the first picture."""
    cal, base, floor = outcome.calibration, outcome.non_private, outcome.majority
    draws = f"over {len(outcome.accuracy)} noise draw{'s' if len(outcome.accuracy) != 1 else ''}"
    rows = [
        ("Test accuracy", _mean(outcome.accuracy), words.percent(base.accuracy), words.percent(floor.accuracy)),
        ("Training accuracy", _mean(outcome.train_accuracy), *(words.percent(o.train_accuracy) for o in (base, floor))),
        ("Training objective", f"{outcome.objective.mean():.4g}", f"{base.objective:.4g}", "–"),
        ("Optimality gap", words.three(_gap(outcome)), "0", "–"),
    ]
    cost, measure = outcome.cost, outcome.cost.metric
    if measure.id != "accuracy":
        spread = f" {words.spread(cost.private, shares=measure.shares)}" if len(cost.private) > 1 and cost.there else ""
        private = words.measured(measure, cost.mean) + spread.partition(" over")[0]
        best, floor_value = words.measured(measure, cost.non_private), words.measured(measure, cost.majority)
        rows.insert(0, (f"Test {measure.within}", private, best, floor_value))
    if outcome.expected_accuracy is not None:
        expected = words.percent(outcome.expected_accuracy)
        rows.insert(-3, ("Expected test accuracy (closed form)", expected, words.percent(base.accuracy), "–"))
    label = list_mechanisms()[outcome.spec.mechanism].label
    tables.table(rows, ("", f"{label}, {draws}", "Non-private", "Majority"))
    noise = "no noise" if cal.noise_scale == 0 else f"{cal.noise_name} noise of scale {words.three(cal.noise_scale)}"
    bound = (
        f"is {words.three(cal.sensitivity)} ({cal.sensitivity_source})"
        if np.isfinite(cal.sensitivity)
        else f"has no bound here ({cal.sensitivity_source})"
    )
    data = dataset_of(outcome.spec)
    at = _at_lambda(outcome)
    at = at and f"Objective and gap of the private models are{at}. "
    spread = f"± is one standard deviation {draws}. " if len(outcome.accuracy) > 1 else ""
    panels.note(
        f"{spread}{at}The mechanism adds {noise} to {cal.query}; its sensitivity {bound}. "
        + words.preprocessing(data.declared, data.private_ranges)
    )


def attacker(outcome: Outcome, theme: Theme) -> None:
    """The best possible attack at every rate of false alarms; words where nothing is proved."""
    panels.title("Best possible attack")
    if outcome.calibration.status is Status.NONE:
        panels.empty("**Nothing is protected.** An attacker who sees the model may be sure about any one person.")
        return
    attack = outcome.attack
    if attack is None:
        panels.empty("**No bound is proved**, so attacks cannot be limited. The reasons are under “Guarantee”.")
        return
    make, spec = partial(_attacker, outcome, theme), outcome.spec
    tasks.chart("attacker", "Computing the best attack", make, attack.with_table, run=spec, of=spec)


def _attacker(outcome: Outcome, theme: Theme, attack: Attack) -> Chart:
    summary = (
        f"With at most 1 % false alarms an attacker detects at most {words.percent(attack.detections_at(0.01))} of the members, "
        f"under {words.budget(attack.budget)} ({words.RELATIONS[outcome.calibration.neighbouring]}). Guesses are right at most "
        f"{words.percent(attack.accuracy)}; (ε, δ) alone would allow {words.percent(attack.accuracy_by_budget)}."
    )
    return Chart(odds.best_attack(attack.table, attack.best, theme), summary, lambda: attack.table)


def weights_and_gap(outcome: Outcome, theme: Theme) -> None:
    """Both pictures of the parameters."""
    weights(outcome, theme)
    gap(outcome, theme)


def weights(outcome: Outcome, theme: Theme) -> None:
    """Weights without and with noise."""
    panels.title("Weights without and with noise")
    dataset = dataset_of(outcome.spec)
    names, base = dataset.feature_names, outcome.non_private.theta
    if base is None or len(names) != outcome.theta.shape[1]:
        panels.empty(
            f"The network’s {outcome.theta.shape[1]:,} weights do not belong to one feature each, and networks that say the same "
            "can have different weights (hidden units can change places), so there is nothing to set side by side."
        )
        return
    if not outcome.theta.any():
        panels.empty("This method releases a label and no weights.")
        return
    charts.later("weights", lambda: _weights(outcome, base, names, theme), outcome.spec)


def _weights(outcome: Outcome, base: Floats, names: tuple[str, ...], theme: Theme) -> Chart:
    fig = weight_figure.weights(outcome.theta, base, names, charts.method_look(outcome.spec.mechanism, theme), theme)
    strongest = int(np.abs(base).argmax())
    values = outcome.theta[:, strongest]
    length = float(np.linalg.norm(outcome.theta - base, axis=1).mean())
    most = f"The {weight_figure.MOST} largest of {len(names)} weights" if len(names) > weight_figure.MOST else "All weights"
    size = words.three(float(np.linalg.norm(base)))
    summary = (
        f"{most}. The private weights stand {words.three(length)} away from the non-private ones on average, whose norm "
        f"is {size}. The strongest, {names[strongest]}, is {words.three(base[strongest])} without privacy and between "
        f"{words.three(values.min())} and {words.three(values.max())} with noise."
    )
    return Chart(fig, summary, lambda: weight_table(outcome, names))


def gap(outcome: Outcome, theme: Theme) -> None:
    """The optimality gap of the private models."""
    panels.title("Optimality gap")
    convex = get_model(outcome.spec.model).convex
    gaps = np.maximum(outcome.optimality_gap, 0.0) if convex else outcome.optimality_gap
    if np.abs(gaps).max() < 1e-12:
        panels.empty(f"The gap is zero: this is {words.minimum(convex)} itself.")
        return
    charts.later("gap", lambda: _optimality_gap(outcome, gaps, convex, theme), outcome.spec)


def _optimality_gap(outcome: Outcome, gaps: Floats, convex: bool, theme: Theme) -> Chart:
    reference = "the minimum" if convex else "the best long training"
    fig = accuracy.optimality_gap(gaps, charts.method_look(outcome.spec.mechanism, theme), theme, reference=reference)
    least = f"{setup_for(outcome.spec).problem.optimal_value:.4g}"
    summary = (
        f"Training objective of each noise draw minus {least}, that of {words.minimum(convex)}{_at_lambda(outcome)}: "
        f"{words.three(_gap(outcome))} on average, from {words.three(gaps.min())} to {words.three(gaps.max())}."
    )
    if not convex:
        summary += f" {words.NO_MINIMUM}"
        below = int((gaps < 0).sum())
        if below:
            summary += f" Here {below} of {len(gaps)} draws did."
    return Chart(fig, summary, lambda: per_draw(outcome))


def how(outcome: Outcome) -> None:
    """Formulas, sources and calls."""
    cls, cal = list_mechanisms()[outcome.spec.mechanism], outcome.calibration
    formulas = [
        r"\min_\theta\; \tfrac1n\sum_i \varphi(y_if_\theta(x_i)) + \tfrac{\lambda}{2}\lVert\theta\rVert^2,\qquad f_\theta(x)="
        + get_model(outcome.spec.model).formula
    ]
    if cal.proved_budget is not None:
        formulas.append(
            r"\Pr[\text{guess right}] \le \tfrac12\Bigl(1 + \tfrac{e^{\varepsilon} - 1 + 2\delta}{e^{\varepsilon} + 1}\Bigr)"
            r"\;\text{(Kairouz, Oh, Viswanath 2015)},\qquad \Phi(\mu/2)\;\text{for Gaussian noise (Dong, Roth, Su 2022)}"
        )
    if cls.rate:
        formulas.append(rf"\text{{published utility rate: }} {cls.rate}")
    sources = [
        f"{cls.label}: {cls.citation}.",
        f"Guarantee: {cls.guarantee}",
        f"Noise: {cls.noise_enters} Scale {words.three(cal.noise_scale)} ({cal.noise_name}); sensitivity: "
        f"{cal.sensitivity_text}, {cal.sensitivity_source}. Accountant: {cal.accountant}. {cal.conversion}",
    ]
    repeat.computed(outcome.spec, formulas, sources, outcome.cost.metric.id)


def per_draw(outcome: Outcome) -> pd.DataFrame:
    """One row per noise draw."""
    cost, name = outcome.cost, outcome.cost.metric.column
    measured = ("accuracy", "train_accuracy", "objective", "optimality_gap", "expected_accuracy")
    columns = {"draw": np.arange(len(outcome.accuracy)), "epsilon": outcome.spec.epsilon}
    columns |= {column: getattr(outcome, column) for column in measured}
    columns |= {"non_private_accuracy": outcome.non_private.accuracy, "majority_accuracy": outcome.majority.accuracy}
    if name != "accuracy":
        columns |= {name: cost.private, f"non_private_{name}": cost.non_private, f"majority_{name}": cost.majority}
    return pd.DataFrame(columns)


def weight_table(outcome: Outcome, names: tuple[str, ...]) -> pd.DataFrame:
    """One row per feature: the weight without privacy and in every draw."""
    draws = {f"draw {s}": outcome.theta[s] for s in range(len(outcome.theta))}
    return pd.DataFrame({"feature": names, "non-private": outcome.non_private.theta} | draws)


def _gap(outcome: Outcome) -> float:
    """Mean optimality gap; where the minimum is known, what lies below 0 is the solver's rounding."""
    mean = float(outcome.optimality_gap.mean())
    return max(mean, 0.0) if get_model(outcome.spec.model).convex else mean


def _at_lambda(outcome: Outcome) -> str:
    """The run's λ where the method's rule asks for another one than the non-private model has; "" elsewhere."""
    mine, reference = resolve(outcome.spec).lam, setup_for(outcome.spec).reference.setting.lam
    return (
        "" if mine == reference else f" at the method’s λ = {words.three(mine)} (the non-private model: {words.three(reference)})"
    )


def _mean(values: np.ndarray) -> str:
    spread = f" ± {words.deviation(values)}" if len(values) > 1 else ""
    return words.percent(float(values.mean())) + spread
