"""What explains the picture of one run, folded away below it: guarantee, numbers, attack, weights, gap, formulas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.kit import charts, guarantee, panels, repeat, tables, words
from dpviz.dashboard.work.cached_runs import Outcome
from dpviz.experiments.resolve import dataset_of
from dpviz.figures import accuracy, odds
from dpviz.figures import weights as weight_figure
from dpviz.figures.style import Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model
from dpviz.privacy.budget import Status


def details(done: Outcome, theme: Theme) -> None:
    """What explains the picture, folded away."""
    with st.expander("Guarantee"):
        guarantee.badge(done.calibration, fold=False)
    with st.expander("Numbers"):
        numbers(done)
    with st.expander("Best possible attack"):
        attacker(done, theme)
    with st.expander("Weights and optimality gap"):
        weights(done, theme)
        gap(done, theme)
    how(done)


def numbers(done: Outcome) -> None:
    """The numbers behind the first picture."""
    cal, base, floor = done.calibration, done.non_private, done.majority
    draws = f"over {len(done.accuracy)} noise draw{'s' if len(done.accuracy) != 1 else ''}"
    rows = [
        ("Test accuracy", _mean(done.accuracy), words.percent(base.accuracy), words.percent(floor.accuracy)),
        (
            "Training accuracy",
            _mean(done.train_accuracy),
            words.percent(base.train_accuracy),
            words.percent(floor.train_accuracy),
        ),
        ("Training objective", f"{done.objective.mean():.4g}", f"{base.objective:.4g}", "–"),
        ("Optimality gap", words.three(_gap(done)), "0", "–"),
    ]
    cost, measure = done.cost, done.cost.metric
    if measure.id != "accuracy":
        spread = f" {words.spread(cost.private, shares=measure.shares)}" if len(cost.private) > 1 and cost.there else ""
        private = words.measured(measure, cost.mean) + spread.partition(" over")[0]
        best, floor_value = words.measured(measure, cost.non_private), words.measured(measure, cost.majority)
        rows.insert(0, (f"Test {measure.within}", private, best, floor_value))
    if done.expected_accuracy is not None:
        expected = words.percent(done.expected_accuracy)
        rows.insert(-3, ("Expected test accuracy (closed form)", expected, words.percent(base.accuracy), "–"))
    label = list_mechanisms()[done.spec.mechanism].label
    tables.table(rows, ("", f"{label}, {draws}", "Non-private", "Majority"))
    noise = "no noise" if cal.noise_scale == 0 else f"{cal.noise_family} noise of scale {cal.noise_scale:.3g}"
    bound = (
        f"is {words.three(cal.sensitivity)} ({cal.sensitivity_source})"
        if np.isfinite(cal.sensitivity)
        else f"has no bound here ({cal.sensitivity_source})"
    )
    st.caption(
        words.markdown(
            f"± is one standard deviation {draws}. The mechanism adds {noise} to {cal.query}; its sensitivity {bound}. "
            + words.preprocessing(dataset_of(done.spec).declared)
        )
    )


def attacker(done: Outcome, theme: Theme) -> None:
    """The best possible attack at every rate of false alarms; words where nothing is proved."""
    st.header("Best possible attack", anchor=False)
    if done.calibration.status is Status.NONE:
        panels.empty("**Nothing is protected.** An attacker who sees the model may be sure about any one person.")
        return
    if done.attack is None:
        panels.empty("**No bound is proved**, so attacks cannot be limited. The reasons are under “Guarantee”.")
        return
    found = done.attack
    fig = odds.best_attack(found.table, found.best, theme)
    summary = (
        f"With at most 1 % false alarms an attacker detects at most {words.percent(found.detections_at(0.01))} of the members, "
        f"under {words.budget(found.budget)} ({words.RELATIONS[done.calibration.neighbouring]}). Guesses are right at most "
        f"{words.percent(found.accuracy)}; (ε, δ) alone would allow {words.percent(found.accuracy_by_budget)}."
    )
    charts.chart(fig, "attacker", summary, lambda: found.table)


def weights(done: Outcome, theme: Theme) -> None:
    """Weights without and with noise."""
    st.header("Weights without and with noise", anchor=False)
    dataset = dataset_of(done.spec)
    names, base = dataset.feature_names, done.non_private.theta
    if base is None or len(names) != done.theta.shape[1]:
        panels.empty(
            f"The network’s {done.theta.shape[1]:,} weights do not belong to one feature each, and networks that say the same "
            "can have different weights (hidden units can change places), so there is nothing to set side by side."
        )
        return
    if not done.theta.any():
        panels.empty("This method releases a label and no weights.")
        return
    fig = weight_figure.weights(done.theta, base, names, charts.method_look(done.spec.mechanism, theme), theme)
    strongest = int(np.abs(base).argmax())
    values = done.theta[:, strongest]
    length = float(np.linalg.norm(done.theta - base, axis=1).mean())
    most = f"The {weight_figure.MOST} largest of {len(names)} weights" if len(names) > weight_figure.MOST else "All weights"
    size = words.three(float(np.linalg.norm(base)))
    summary = (
        f"{most}. The private weights stand {words.three(length)} away from the non-private ones on average, whose length "
        f"is {size}. The strongest, {names[strongest]}, is {words.three(base[strongest])} without privacy and between "
        f"{words.three(values.min())} and {words.three(values.max())} with noise."
    )
    charts.chart(fig, "weights", summary, lambda: weight_table(done, names))


def gap(done: Outcome, theme: Theme) -> None:
    """How far the private models are from the minimum."""
    st.header("Optimality gap", anchor=False)
    convex = get_model(done.spec.model).convex
    gaps = np.maximum(done.optimality_gap, 0.0) if convex else done.optimality_gap
    if np.abs(gaps).max() < 1e-12:
        panels.empty(f"The gap is zero: this is {words.minimum(convex)} itself.")
        return
    reference = "the minimum" if convex else "the best long training"
    fig = accuracy.optimality_gap(gaps, charts.method_look(done.spec.mechanism, theme), theme, reference=reference)
    summary = (
        f"Training objective of each noise draw minus {done.non_private.objective:.4g}, that of {words.minimum(convex)}: "
        f"{words.three(_gap(done))} on average, from {words.three(gaps.min())} to {words.three(gaps.max())}."
    )
    if not convex:
        summary += f" {words.NO_MINIMUM}"
        below = int((gaps < 0).sum())
        if below:
            summary += f" Here {below} of {len(gaps)} draws did."
    charts.chart(fig, "gap", summary, lambda: per_draw(done))


def how(done: Outcome) -> None:
    """Formulas, sources and calls."""
    cls, cal = list_mechanisms()[done.spec.mechanism], done.calibration
    formulas = [
        r"\min_\theta\; \tfrac1n\sum_i \varphi(y_if_\theta(x_i)) + \tfrac{\lambda}{2}\lVert\theta\rVert^2,\qquad f_\theta(x)="
        + get_model(done.spec.model).formula
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
        f"Noise: {cls.noise_enters} Scale {cal.noise_scale:.6g} ({cal.noise_family}), from sensitivity {cal.sensitivity:.6g}: "
        f"{cal.sensitivity_source}. Accountant: {cal.accountant}. {cal.conversion}",
    ]
    repeat.computed(done.spec, formulas, sources, done.cost.metric.id)


def per_draw(done: Outcome) -> pd.DataFrame:
    """One row per noise draw."""
    cost, name = done.cost, done.cost.metric.column
    more = (
        {}
        if name == "accuracy"
        else {name: cost.private, f"non_private_{name}": cost.non_private, f"majority_{name}": cost.majority}
    )
    return _accuracies(done).assign(**more)


def _accuracies(done: Outcome) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "draw": np.arange(len(done.accuracy)),
            "epsilon": done.spec.epsilon,
            "accuracy": done.accuracy,
            "train_accuracy": done.train_accuracy,
            "objective": done.objective,
            "optimality_gap": done.optimality_gap,
            "expected_accuracy": done.expected_accuracy,
            "non_private_accuracy": done.non_private.accuracy,
            "majority_accuracy": done.majority.accuracy,
        }
    )


def weight_table(done: Outcome, names: tuple[str, ...]) -> pd.DataFrame:
    """One row per feature: the weight without privacy and in every draw."""
    draws = {f"draw {s}": done.theta[s] for s in range(len(done.theta))}
    return pd.DataFrame({"feature": names, "non-private": done.non_private.theta} | draws)


def _gap(done: Outcome) -> float:
    """Mean optimality gap; where the minimum is known, what lies below 0 is the solver's rounding."""
    mean = float(done.optimality_gap.mean())
    return max(mean, 0.0) if get_model(done.spec.model).convex else mean


def _mean(values: np.ndarray) -> str:
    spread = f" ± {100 * float(np.std(values, ddof=1)):.1f}" if len(values) > 1 else ""
    return words.percent(float(values.mean())) + spread
