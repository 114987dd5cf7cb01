"""Explanations of one run, folded away below its picture: guarantee, numbers, attack, weights, gap, formulas."""

from functools import partial

import numpy as np

from dpviz.dashboard.components import charts, folds, guarantee, panels, repeat, tables
from dpviz.dashboard.components.folds import Section
from dpviz.dashboard.frame import best_attack
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.dashboard.one_run import publishing
from dpviz.experiments.run.resolve import dataset_of
from dpviz.figures.style import Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.models import get_model
from dpviz.privacy.budget import Status
from dpviz.reporting import pictures, words


def details(outcome: Outcome, theme: Theme) -> None:
    """Explanations of the picture, folded away."""
    folds.sections(
        Section("Guarantee and best possible attack", lambda: attacker(outcome, theme), sent="attack"),
        Section("Numbers, weights and optimality gap", lambda: numbers_and_pictures(outcome, theme), sent="numbers"),
        Section("A model to publish", lambda: publishing.draw(outcome.spec), asked="release"),
    )
    draw_sources(outcome)


def numbers(outcome: Outcome) -> None:
    """The numbers behind the first picture."""
    cal, base, floor = outcome.calibration, outcome.non_private, outcome.majority
    draws = f"over {len(outcome.accuracy)} noise draw{'s' if len(outcome.accuracy) != 1 else ''}"
    rows = [
        ("Test accuracy", _mean(outcome.accuracy), words.percent(base.accuracy), words.percent(floor.accuracy)),
        ("Training accuracy", _mean(outcome.train_accuracy), *(words.percent(o.train_accuracy) for o in (base, floor))),
        ("Training objective", f"{outcome.objective.mean():.4g}", f"{base.objective:.4g}", "–"),
        ("Optimality gap", words.three(float(pictures.gaps(outcome).mean())), "0", "–"),
    ]
    cost, measure = outcome.cost, outcome.cost.metric
    if measure.id != "accuracy":
        spread = f" {words.spread_text(cost.private, shares=measure.shares)}" if len(cost.private) > 1 and cost.there else ""
        private = words.metric_value(measure, cost.mean) + spread.partition(" over")[0]
        best, floor_value = words.metric_value(measure, cost.non_private), words.metric_value(measure, cost.majority)
        rows.insert(0, (f"Test {measure.within}", private, best, floor_value))
    if outcome.expected_accuracy is not None:
        expected = words.percent(outcome.expected_accuracy)
        rows.insert(-3, ("Expected test accuracy (closed form)", expected, words.percent(base.accuracy), "–"))
    label = list_mechanisms()[outcome.spec.mechanism].label
    tables.table(rows, ("", f"{label}, {draws}", "Non-private", "Majority"))
    noise = "no noise" if cal.noise_scale == 0 else f"{cal.noise_family.name} noise of scale {words.three(cal.noise_scale)}"
    bound = (
        f"is {words.three(cal.sensitivity)} ({cal.sensitivity_source})"
        if np.isfinite(cal.sensitivity)
        else f"has no bound here ({cal.sensitivity_source})"
    )
    data = dataset_of(outcome.spec)
    at = pictures.lambda_note(outcome.spec)
    at = at and f"Objective and gap of the private models are{at}. "
    spread = f"± is one standard deviation {draws}. " if len(outcome.accuracy) > 1 else ""
    panels.note(
        f"{spread}{at}The mechanism adds {noise} to {cal.query}; its sensitivity {bound}. "
        + words.preprocessing(data.declared, any(one.id == "ranges" for one in data.preparations))
    )


def attacker(outcome: Outcome, theme: Theme) -> None:
    """The guarantee, and the best possible attack at every rate of false alarms; words where nothing is proved."""
    guarantee.badge(outcome.calibration, outcome.spec.build(), fold=False)
    panels.title("Best possible attack")
    if outcome.calibration.status is Status.NONE:
        panels.empty("**Nothing is protected.** An attacker who sees the model may be sure about any one person.")
        return
    best_attack.draw("attacker", outcome.spec, theme, outcome.attack)


def numbers_and_pictures(outcome: Outcome, theme: Theme) -> None:
    """The numbers, and both pictures of the parameters where there is something to draw."""
    numbers(outcome)
    weights, gap = partial(pictures.weights, outcome, theme), partial(pictures.gap, outcome, outcome.cost, theme)
    for key, title, why, make in (
        ("weights", "Weights without and with noise", pictures.without_weights(outcome), weights),
        ("gap", "Optimality gap", pictures.gap_reason(outcome), gap),
    ):
        panels.title(title)
        if why:
            panels.empty(why)
        else:
            charts.deferred_chart(key, make, outcome.spec)


def draw_sources(outcome: Outcome) -> None:
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
        f"Noise: {cls.noise_enters} Scale {words.three(cal.noise_scale)} ({cal.noise_family.name}); sensitivity: "
        f"{cal.sensitivity_text}, {cal.sensitivity_source}. Accountant: {cal.accountant}. {cal.conversion}",
    ]
    repeat.computation(outcome.spec, formulas, sources, outcome.cost.metric.id)


def _mean(values: np.ndarray) -> str:
    spread = f" ± {words.deviation(values)}" if len(values) > 1 else ""
    return words.percent(float(values.mean())) + spread
