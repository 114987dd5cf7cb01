"""The report of one run: what privacy costs, what an attacker can still tell, and how far the guarantee is proved."""

import pandas as pd

from dpviz.common.progress import Monitor, ignore
from dpviz.experiments.run.metrics import default_metric, get_metric, rarer_share
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.run import Result, run
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.setup import setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.cost import Cost, cost_in_metric, split_cost
from dpviz.experiments.studies.scores import scores
from dpviz.figures import scores as score_figures
from dpviz.figures.style import LIGHT
from dpviz.mechanisms import get_mechanism, protection
from dpviz.mechanisms.attack import Attack, strongest_attack
from dpviz.mechanisms.persons import privacy_unit
from dpviz.reporting import pictures, words
from dpviz.reporting.calls import address, python_call, shell_call
from dpviz.reporting.document import Chart, Document, Part, Table, Text

QUESTION = "What does privacy cost a model, and does it protect anyone?"


def report_of(spec: RunSpec, monitor: Monitor = ignore, *, link: str = "", metric: str = "") -> Document:
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
    measure = metric or default_metric(result.setup.dataset.y)
    cost = cost_in_metric(result, split_cost(result), measure)
    attack = strongest_attack(result.spec.build(), result.setup.problem.setting, result.calibration)
    title, cal, built = words.title(result.spec), result.calibration, result.spec.build()
    return Document(
        question=QUESTION,
        sentence=" ".join(words.headline(title, cost, cal, attack)),
        subject=f"{built.label} on {result.setup.dataset.name}, ε = {words.three(result.spec.epsilon)}",
        badges=[words.guarantee(cal, built)],
        parts=_parts(result, cost, attack),
        repeat=[("Python", python_call(result.spec, measure)), ("Shell", shell_call(result.spec, metric=measure))],
        settings=_settings(result),
        link=link or address(result.spec),
    )


def _usefulness(result: Result, cost: Cost) -> list[Part]:
    """The metric of every noise draw, and why it is not accuracy where a class is rare."""
    metric, share = cost.metric, rarer_share(result.setup.dataset.y)
    parts: list[Part] = []
    if default_metric(result.setup.dataset.y) != "accuracy":
        rest = f"the majority label alone is right {words.percent(1 - share)}"
        parts.append(Text(f"The rarer class has {words.percent(share)} of the rows: {rest}."))
    if not cost.has_value:
        return parts
    lost = f"What the {metric.within} is lost to{' (shares)' if metric.shares else ''}"
    return [*parts, pictures.accuracies(result, cost, LIGHT), Table(lost, cost.table())]


def _parts(result: Result, cost: Cost, attack: Attack | None) -> list[Part]:
    parts: list[Part] = [
        *_usefulness(result, cost),
        Text("Guarantee", heading=True),
        Table("How the noise was set, and how far that is proved", _guarantee(result)),
    ]
    if attack is not None:
        parts += [Text("Best possible attack", heading=True), pictures.best_attack(attack, LIGHT)]
    parts += _scored(result)
    if not pictures.without_weights(result):
        parts += [Text("Weights", heading=True), pictures.weights(result, LIGHT)]
    if not pictures.gap_reason(result):
        parts += [Text("Optimality gap", heading=True), pictures.gap(result, cost, LIGHT)]
    return parts


def _scored(result: Result) -> list[Part]:
    """Confusion matrix, ROC and calibration curve on the test rows; nothing where the method gives no scores."""
    found = scores(result.spec, result.theta, result.labels)
    if found is None:
        return []
    dataset, drawn = result.setup.dataset, pictures.method_look(result.spec.mechanism, LIGHT)
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


def _guarantee(result: Result) -> pd.DataFrame:
    cal, cls = result.calibration, get_mechanism(result.spec.mechanism)
    rows = [
        ("method", f"{cls.label}: {cls.citation}"),
        ("asked for", str(cal.budget)),
        ("claimed", str(cal.claimed_budget or "nothing")),
        ("proved", f"{cal.proved_budget or 'nothing'} ({cal.sentence})"),
        ("relation", f"{cal.neighbouring.value}; the number of rows is public"),
        ("unit", f"ε is for {privacy_unit(cal.person_rows)}"),
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
    taken = {name: protection.knob_value(built, name, setting_of(spec), resolved.budget) for name in built.knobs()}
    return [*plain, *((knob.label, knob.in_words(taken[name])) for name, knob in built.knobs().items())]


def _settings(result: Result) -> list[tuple[str, object]]:
    dataset = result.setup.dataset
    return [*settings_of(result.spec), ("rows", dataset.n), ("training rows", result.setup.problem.n), ("source", dataset.source)]
