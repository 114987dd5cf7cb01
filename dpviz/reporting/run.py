"""The report of one run: what privacy costs, what an attacker can still tell, and how far the guarantee is proved."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.common.progress import Monitor, silent
from dpviz.experiments.run.metrics import Metric, default_metric, get_metric, rarer_share
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.run import Result, run
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.setup import setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.cost import Cost, in_metric, split_cost
from dpviz.experiments.studies.scores import scores
from dpviz.figures import accuracy, odds
from dpviz.figures import scores as score_figures
from dpviz.figures import weights as weight_figure
from dpviz.figures.style import LIGHT, Look, look
from dpviz.mechanisms import get_mechanism, list_mechanisms
from dpviz.mechanisms.attack import Attack, strongest_attack
from dpviz.mechanisms.persons import in_words
from dpviz.models import get_model
from dpviz.privacy.budget import Status
from dpviz.reporting.calls import address, python_call, shell_call
from dpviz.reporting.document import Chart, Document, Part, Table, Text

QUESTION = "What does privacy cost a model, and does it protect anyone?"
_SIGNS = {Status.PROVED: "✓", Status.PROVED_IF: "◐", Status.CLAIM: "✎", Status.NONE: "✗"}


def report_of(spec: RunSpec, monitor: Monitor = silent, *, link: str = "", metric: str = "") -> Document:
    """Trains a run and writes down what it gave.

    Args:
        spec: any run.
        monitor: receives progress; raises to cancel.
        link: the address that the report came from; the run's own part of one by default.
        metric: how usefulness is measured; by default accuracy, or balanced accuracy where a class is rare.

    Raises:
        InvalidInput: the run does not fit what is there, or the metric is not known.
    """
    if metric:
        metric = get_metric(metric).id
    result = run(spec, monitor)
    cost = split_cost(result.spec, result.accuracy, result.calibration, expected=result.expected_accuracy)
    measure = metric or default_metric(result.setup.dataset.y)
    cost = in_metric(result.spec, cost, result.theta, result.labels, measure)
    cost = replace(cost, expected=result.expected(measure))
    attack = strongest_attack(result.spec.build(), result.setup.problem.setting, result.calibration)
    cal = result.calibration
    proved = f"proved: {cal.proved_budget}" if cal.proved_budget else "nothing is proved"
    return Document(
        question=QUESTION,
        sentence=_sentence(result, cost, attack),
        subject=f"{get_mechanism(result.spec.mechanism).label} on {result.setup.dataset.name}, ε = {result.spec.epsilon:.3g}",
        badges=[f"{_SIGNS[cal.status]} {cal.status.value}; {proved} ({cal.neighbouring.value})"],
        parts=_parts(result, cost, attack),
        repeat=[("Python", python_call(result.spec, measure)), ("Shell", shell_call(result.spec, metric=measure))],
        settings=_settings(result),
        link=link or address(result.spec),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _value(metric: Metric, value: float) -> str:
    return "no value" if math.isnan(value) else _percent(value) if metric.shares else f"{value:.3f}"


def _part(metric: Metric, value: float) -> str:
    """A part of a cost: points for shares."""
    return "nothing" if abs(value) < 5e-4 else f"{100 * value:.1f}" if metric.shares else f"{value:.3f}"


def _sentence(result: Result, cost: Cost, attack: Attack | None) -> str:
    metric, start = cost.metric, f"At ε = {result.spec.epsilon:.3g}"
    limit = (
        "no limit on attacks is proved"
        if attack is None
        else f"an attacker guesses right at most {_percent(attack.accuracy)} of the time"
    )
    if not cost.there:
        return f"{start} {metric.within} has no value here; {limit}."
    mean = _value(metric, cost.mean)
    says = f"the model is right {mean} of the time" if metric.id == "accuracy" else f"{metric.within} is {mean}"
    verb = "costs" if metric.higher_is_better else "adds"
    noise, training = (_part(metric, v) for v in (cost.noise, cost.training))
    unit = " points" if metric.shares and noise != "nothing" else ""
    return f"{start} {says}: noise {verb} {noise}{unit}, training {training}; {limit}."


def _usefulness(result: Result, cost: Cost) -> list[Part]:
    """The metric of every noise draw, and why it is not accuracy where a class is rare."""
    metric, share = cost.metric, rarer_share(result.setup.dataset.y)
    parts: list[Part] = []
    if default_metric(result.setup.dataset.y) != "accuracy":
        parts.append(
            Text(f"The rarer class has {_percent(share)} of the rows: the majority label alone is right {_percent(1 - share)}.")
        )
    if not cost.there:
        return parts
    values = f"non-private {_value(metric, cost.non_private)}, majority label {_value(metric, cost.majority)}"
    picture = accuracy.accuracy_distribution(
        cost.private,
        cost.non_private,
        cost.majority,
        _look(result.spec.mechanism),
        LIGHT,
        expected=cost.expected,
        title=f"test {metric.within}",
        shares=metric.shares,
    )
    message = f"Test {metric.within} of {len(cost.private)} noise draws: {_value(metric, cost.mean)} on average; {values}."
    lost = f"What the {metric.within} is lost to{' (shares)' if metric.shares else ''}"
    return [*parts, Chart(picture, message, _draws(result)), Table(lost, cost.table())]


def _look(mechanism: str) -> Look:
    cls = get_mechanism(mechanism)
    family = [name for name, other in list_mechanisms().items() if other.family == cls.family]
    return look(LIGHT, cls.label, cls.family, family.index(mechanism))


def _parts(result: Result, cost: Cost, attack: Attack | None) -> list[Part]:
    parts: list[Part] = [
        *_usefulness(result, cost),
        Text("Guarantee", heading=True),
        Table("How the noise was set, and how far that is proved", _guarantee(result)),
    ]
    if attack is not None:
        curve = odds.best_attack(attack.table, attack.best, LIGHT)
        message = f"Guesses about one person are right {_percent(attack.accuracy)} at most, by {attack.basis}."
        parts += [Text("Best possible attack", heading=True), Chart(curve, message, attack.table)]
    return [*parts, *_scored(result), *_models(result)]


def _scored(result: Result) -> list[Part]:
    """Confusion matrix, ROC and calibration curve on the test rows; nothing where the method gives no scores."""
    found = scores(result.spec, result.theta, result.labels)
    if found is None:
        return []
    dataset, drawn = result.setup.dataset, _look(result.spec.mechanism)
    rows = f"{len(found.y):,} test rows, which no model was trained on"
    matrix, roc, reliability = found.matrix(found.usual, dataset.label_names), found.roc(), found.reliability()
    band = f"the band holds 80 % of {len(result.theta)} noise draws"
    parts: list[Part] = [
        Text("Scores on the test rows", heading=True),
        Text(f"From {rows}. No ε covers what is read from them, nor a threshold that is chosen by looking at them."),
        Table(f"Confusion matrix at threshold {found.usual:g}, mean over the noise draws", matrix),
        Chart(
            score_figures.curve(roc, drawn, LIGHT, x="false-positive rate", y="recall", diagonal=True),
            f"ROC curve on {rows}; {band}. The diagonal is a score without information.",
            roc,
        ),
    ]
    if not reliability.empty:
        message = f"Calibration curve on {rows}: the share of {dataset.label_names[1]} among rows with about the same predicted "
        parts.append(Chart(score_figures.reliability(reliability, drawn, LIGHT), message + "probability.", reliability))
    return parts


def _models(result: Result) -> list[Part]:
    """Weights beside the non-private ones, and the optimality gap, where they mean something."""
    base, names = result.non_private.theta, result.setup.dataset.feature_names
    drawn, parts = _look(result.spec.mechanism), list[Part]()
    if base is not None and len(names) == result.theta.shape[1] and result.theta.any():
        away = float(np.linalg.norm(result.theta - base, axis=1).mean())
        message = f"The private weights stand {away:.3g} away from the non-private ones on average, whose norm is "
        message += f"{float(np.linalg.norm(base)):.3g}."
        table = pd.DataFrame({"feature": names, "non-private": base, "mean of the draws": result.theta.mean(axis=0)})
        parts += [
            Text("Weights", heading=True),
            Chart(weight_figure.weights(result.theta, base, names, drawn, LIGHT), message, table),
        ]
    convex = get_model(result.spec.model).convex
    gaps = np.maximum(result.optimality_gap, 0.0) if convex else result.optimality_gap
    if np.abs(gaps).max() >= 1e-12:
        reference = "the minimum" if convex else "the best long training"
        message = (
            f"Training objective above {reference}: {gaps.mean():.3g} on average, from {gaps.min():.3g} to {gaps.max():.3g}."
        )
        parts += [
            Text("Optimality gap", heading=True),
            Chart(accuracy.optimality_gap(gaps, drawn, LIGHT, reference=reference), message),
        ]
    return parts


def _draws(result: Result) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "draw": np.array(result.replicas),
            "accuracy": result.accuracy,
            "train_accuracy": result.train_accuracy,
            "objective": result.objective,
            "optimality_gap": result.optimality_gap,
        }
        | {name: result.metrics[name].to_numpy() for name in result.metrics if name != "accuracy"}
    )


def _guarantee(result: Result) -> pd.DataFrame:
    cal, cls = result.calibration, get_mechanism(result.spec.mechanism)
    rows = [
        ("method", f"{cls.label}: {cls.citation}"),
        ("asked for", str(cal.budget)),
        ("claimed", str(cal.claimed_budget or "nothing")),
        ("proved", f"{cal.proved_budget or 'nothing'} ({cal.status.value})"),
        ("relation", f"{cal.neighbouring.value}; the number of rows is public"),
        ("unit", f"ε is for {in_words(cal.person_rows)}"),
        ("accountant", cal.accountant),
        ("noise", cal.noise_text),
        ("sensitivity", f"{cal.sensitivity_text}: {cal.sensitivity_source}"),
        *[("only if", condition) for condition in cal.conditions],
        *[("note", note) for note in cal.notes],
    ]
    dataset = result.setup.dataset
    read = ", ".join(dataset.looked_at) if dataset.looked_at else "nothing"
    return pd.DataFrame([*rows, ("read from the rows, not covered by ε", read)], columns=["what", "value"])


def settings_of(spec: RunSpec) -> list[tuple[str, object]]:
    """All that decides a run, as the sidebar names it: automatic δ, λ and hyperparameters with the values that they take."""
    resolved, built = resolve(spec), spec.build()
    values = resolved.spec.to_dict() | {"delta": resolved.budget.delta, "lam": resolved.lam}
    plain = [(SETTINGS[name].label, SETTINGS[name].in_words(value)) for name, value in values.items() if name in SETTINGS]
    taken = {name: built.value(name, setting_of(spec), resolved.budget) for name in built.knobs()}
    return [*plain, *((knob.label, knob.in_words(taken[name])) for name, knob in built.knobs().items())]


def _settings(result: Result) -> list[tuple[str, object]]:
    dataset = result.setup.dataset
    return [*settings_of(result.spec), ("rows", dataset.n), ("training rows", result.setup.problem.n), ("source", dataset.source)]
