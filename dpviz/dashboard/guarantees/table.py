"""Guarantees of all mechanisms in a sentence, a picture and a table; the tolerated attacker; published deployments."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.dashboard.components import charts, panels, repeat, tables
from dpviz.dashboard.frame import fields, metric, pinned, ranking
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.dashboard.jobs.job import Job
from dpviz.experiments.run.metrics import Metric, levels_of
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.guarantees import Measured
from dpviz.figures.style import Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.mechanisms.attack import Attacker
from dpviz.papers.deployments import DEPLOYMENTS, REGISTRY
from dpviz.privacy.budget import Neighbouring
from dpviz.reporting import shell_call, words

#: attacker as the shell takes it -> in words, after "an attacker who"
ATTACKERS = {
    "accuracy=0.55": "is right 55 % of the time",
    "accuracy=0.65": "is right 65 % of the time",
    "tpr=0.02@fpr=0.01": "finds 2 % at 1 % false alarms",
    "tpr=0.05@fpr=0.01": "finds 5 % at 1 % false alarms",
    "tpr=0.2@fpr=0.01": "finds 20 % at 1 % false alarms",
    "advantage=0.3": "finds 30 points more than false alarms",
}
_WHERE = ("by the curator", "on each device")  # whether noise is local
CHOICES = {"": "set by ε", **ATTACKERS}
HELP = (
    "Instead of one ε for all, each method adds just so much noise that no attacker does better. The search goes through the "
    "method's trade-off curve, so that methods end at different ε."
)


def choose_attacker(own: fields.Group) -> Attacker | None:
    """Draws the control; the attacker that is tolerated, None for the budget on the left."""
    text = own["attacker"].draw()
    return Attacker.parse(text) if text else None


def deployments() -> None:
    """All published deployments, in a fold."""
    with st.expander("Which ε do others publish?"):
        rows = [
            (one.name, words.three(one.epsilon), words.three(one.delta) if one.delta else "0", one.unit, _WHERE[one.local])
            for one in DEPLOYMENTS
        ]
        tables.table(rows, ("Deployment", "ε", "δ", "Protects one", "Noise"))
        panels.note(
            f"Values: {REGISTRY}. They compare only roughly: most are counts and not models, and one protects a "
            "single event and another all events of a person."
        )
        st.markdown(" ".join(f"[{one.name}]({one.source})." for one in DEPLOYMENTS))


SORTS = {"": "Status, then usefulness", "accuracy": "Usefulness", "epsilon": "Proved ε", "name": "Name"}
_RELATIONS = {Neighbouring.REPLACE_ONE: "replace\u2011one", Neighbouring.ADD_REMOVE: "add\u2011remove"}
_COLUMNS = ("Relation", "Accountant")


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """The page's fields in the address: the order of the table, and an attacker that is tolerated."""
    return (
        fields.choice("order", "Sorted by", SORTS, "", few=0),
        fields.choice("attacker", "Tolerated attacker", CHOICES, "", HELP, few=0),
    )


def proved(methods: Sequence[ranking.Line], spec: RunSpec) -> tuple[str, str]:
    """Sentences on the guarantee of the run's method, and on how many methods are proved, conditional, claimed and refuted."""
    counts = ((sum(line.status == status for line in methods), status) for status in ranking.ORDER)
    parts = ", ".join(f"{count} {status}" for count, status in counts if count)
    own = words.guarantee(calibration_of(spec), spec.build())
    return f"{words.title(spec)}: {own}.", f"{len(methods)} methods: {parts}."


def tolerated(methods: Sequence[ranking.Line], spec: RunSpec, attacker: Attacker) -> tuple[str, ...]:
    """Sentences on the epsilon at which the run's method keeps out a better attacker, beside the run's own."""
    own = next((line for line in methods if line.one.spec.mechanism == spec.mechanism), None)
    if own is None or own.one.calibration is None:
        return (f"{words.title(spec)}: no noise is known that keeps out an attacker who does better.",)
    needed = own.one.spec.epsilon
    chosen = f"The chosen ε = {words.three(spec.epsilon)}"
    if needed < 0.995 * spec.epsilon:
        compared = f"{chosen} is larger: it adds less noise, and its guarantee allows better attackers."
    elif needed > 1.005 * spec.epsilon:
        compared = f"{chosen} is smaller: it adds more noise than this attacker requires."
    else:
        compared = f"{chosen} is the same."
    label = list_mechanisms()[spec.mechanism].label
    who = ATTACKERS[str(attacker)]
    return f"{label}: up to ε = {words.three(needed)} no attacker does better than one who {who}.", compared


def other_run(methods: Sequence[ranking.Line], overlay: Outcome) -> None:
    """The rank of run A among the proved methods, in words."""
    measure, a = overlay.cost.metric, overlay.cost.mean
    sign = 1 if measure.higher_is_better else -1
    proved = ranking.rank_methods(methods, measure)
    better = sum(sign * (line.mean - a) > 0 for line in proved)
    panels.text(
        f"A is {words.title(overlay.spec)}: {words.metric_value(measure, a)}; "
        f"{better} of {len(proved)} proved methods are better here."
    )


def picture(
    methods: Sequence[ranking.Line],
    measured: Measured,
    metric: Metric,
    spec: RunSpec,
    theme: Theme,
    overlay: Outcome | None,
    attacker: Attacker | None = None,
) -> None:
    """The metric of every method below its status.

    Args:
        overlay: what run A gave.
        attacker: the strongest that is tolerated, where each method has its own epsilon.
    """
    fig, baselines = ranking.picture(methods, measured, metric, theme, overlay, narrow=charts.is_narrow())
    if fig is None:
        return
    leader = [
        f"The best is {one.label}: {words.metric_value(metric, one.mean)}. " for one in ranking.rank_methods(methods, metric)[:1]
    ]
    at = f"at ε = {words.three(spec.epsilon)}"
    if attacker is not None:
        at = f"at the largest ε of each method with which no attacker does better than one who {ATTACKERS[str(attacker)]}"
    summary = f"{''.join(leader)}Test {metric.within} {at}; {baselines}. Colours are families. {words.OUTSIDE}"
    if overlay is not None:
        summary += f" The dotted line is A, {words.title(overlay.spec)}: {words.metric_value(metric, overlay.cost.mean)}."
    charts.chart(fig, "guarantees", summary, lambda: table(methods, metric))


def _guessing(measured: Measured, methods: Sequence[ranking.Line], metric: Metric) -> None:
    """The methods that are no better than the majority label, by cause, with advice."""
    fixes: dict[str, list[str]] = {}
    for line in methods:
        why = measured.poor.get(line.one.spec.mechanism, {}).get(metric.id)
        if why is not None:
            fixes.setdefault(str(why.fix), []).append(line.label)
    if not fixes:
        return
    floor = words.metric_value(metric, float(measured.baselines.at["majority", metric.column]))
    guess = (
        f"No more accurate than the majority label, which is right {floor}"
        if metric.id == "accuracy"
        else f"No better than the majority label, which has {metric.within} {floor}"
    )
    message = " ".join(f"{', '.join(names)}: {fix}" for fix, names in fixes.items())
    with st.container(key="guessing"):
        panels.text(f"⚠ {guess}. {message}")


def order_methods(methods: Sequence[ranking.Line], sort: str, metric: Metric) -> list[ranking.Line]:
    """The lines in the order asked for; what is not known comes last."""
    sign = -1 if metric.higher_is_better else 1
    value = {id(line): math.inf if math.isnan(line.mean) else sign * line.mean for line in methods}
    keys = {
        "": lambda line: (ranking.ORDER.index(line.status), value[id(line)]),
        "accuracy": lambda line: value[id(line)],
        "epsilon": lambda line: np.nan_to_num(line.proved, nan=math.inf),
        "name": lambda line: line.label.lower(),
    }
    return sorted(methods, key=keys[sort])


def rows(methods: Sequence[ranking.Line], sort: str, metric: Metric, overlay: Outcome | None) -> None:
    """The table; long conditions have a number there and stand in full below it."""
    shown = order_methods(methods, sort, metric)
    notes = list(dict.fromkeys(line.condition for line in shown if line.condition))
    made = [_row(line, notes, metric) for line in shown]
    columns = ["Method", "Status", "Proved\u00a0ε", metric.label, *_COLUMNS]
    if overlay is not None:
        a = overlay.cost.mean
        made = [
            (*row, "–" if math.isnan(o.mean) else pinned.difference_from(metric, o.mean, a))
            for row, o in zip(made, shown, strict=True)
        ]
        columns.append("Against A")
    tables.table(made, columns)
    st.markdown("\n".join(f"{k}. {words.markdown(note)}" for k, note in enumerate(notes, 1)))


def draw_sources(spec: RunSpec, attacker: Attacker | None = None) -> None:
    """The calls that repeat the table."""
    with st.expander("How is this computed?"):
        st.markdown("Every method is calibrated for this budget, with its default hyperparameters, and then trained.")
        if attacker is not None:
            st.markdown(
                "Its ε is the largest with which the most that any attacker reaches, by the trade-off curve of what the method "
                "releases, is what is tolerated (Kulynych et al., NeurIPS 2024)."
            )
        measure = metric.chosen_metric(spec).id
        levels = f", metrics={list(levels_of([measure]))}" if levels_of([measure]) else ""
        imports = "from dpviz.experiments.studies import guarantees"
        if attacker is None:
            repeat.python_of(spec, f"list(guarantees.watch(spec{levels}))[-1].metrics", imports)
            repeat.shell(f"{shell_call(spec, 'calibrate')} --methods --metric={measure}")
            return
        imports += "\nfrom dpviz.mechanisms.attack import Attacker"
        attack = f'attacker=Attacker.parse("{attacker}")'
        repeat.python_of(spec, f"list(guarantees.watch(spec{levels}, {attack}))[-1].metrics", imports)


def _row(line: ranking.Line, notes: Sequence[str], metric: Metric) -> tuple[str, ...]:
    cal = line.one.calibration
    number = f" ({notes.index(line.condition) + 1})" if line.condition else ""
    status = f"{line.sign} {line.status.removesuffix(' …')}{number}"
    value = words.metric_value(metric, line.mean) if len(line.values) else "…"
    if len(line.values) > 1 and not math.isnan(line.mean):
        value += f"\u00a0±\u00a0{words.deviation(line.values, shares=metric.shares)}"
    if cal is None:
        return line.label, status, "none", "–", "–", "–"
    short = re.split(r" ?[\[,:;]| \((?!\d)", cal.accountant)[0]  # details of its name are on the page Accounting
    return line.label, status, words.three(line.proved), value, _RELATIONS[cal.neighbouring], short


def table(methods: Sequence[ranking.Line], metric: Metric) -> pd.DataFrame:
    """The same as data."""
    out = []
    for line in methods:
        cal = line.one.calibration
        row = {"mechanism": line.one.spec.mechanism, "label": line.label, "status": line.status, "condition": line.condition}
        relation, accountant = ("", "") if cal is None else (cal.neighbouring.value, cal.accountant)
        claimed = cal.claimed_budget.epsilon if cal is not None and cal.claimed_budget else math.nan
        row |= {"relation": relation, "accountant": accountant}
        out.append(row | {"claimed_epsilon": claimed, "proved_epsilon": line.proved, metric.column: line.mean})
    return pd.DataFrame(out)


def answer(task: Job[Measured], spec: RunSpec, place: DeltaGenerator, kept: Outcome | None, attacker: Attacker | None) -> None:
    """The sentence, and what run A has beside it, redrawn while numbers come in."""
    measure = metric.chosen_metric(spec)

    def draw(measured: Measured) -> None:
        now = ranking.lines(measured, measure)
        panels.headline(*(proved(now, spec) if attacker is None else tolerated(now, spec, attacker)), of=spec)
        if kept is not None and kept.cost.metric.id == measure.id:
            other_run(now, kept)

    with place:
        tasks.follow(task, draw, every=2.0)


def show(
    task: Job[Measured], spec: RunSpec, theme: Theme, sort: fields.Field[str], kept: Outcome | None, attacker: Attacker | None
) -> None:
    """Picture and table, redrawn while numbers come in."""
    measure = metric.chosen_metric(spec)
    overlay = kept if kept is not None and kept.cost.metric.id == measure.id else None

    def draw(measured: Measured) -> None:
        now = ranking.lines(measured, measure)
        picture(now, measured, measure, spec, theme, overlay, attacker)
        _guessing(measured, now, measure)
        with st.expander("Table of all methods: proved ε, relation, accountant"):
            rows(now, sort.draw(), measure, overlay)

    tasks.follow(task, draw, "Training every method", every=2.0)
