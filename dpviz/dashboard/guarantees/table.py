"""Guarantees of all mechanisms: a sentence, a picture of status and accuracy, and one table that can be sorted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.dashboard.kit import charts, tables, words
from dpviz.dashboard.shell import fields
from dpviz.dashboard.shell.fields import Field
from dpviz.dashboard.work import tasks, watching
from dpviz.dashboard.work.job import State
from dpviz.experiments.guarantees import Guaranteed, Measured, watch
from dpviz.experiments.resolve import resolve
from dpviz.experiments.spec import RunSpec
from dpviz.figures import guarantees as pictures
from dpviz.figures.style import Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.papers import saved
from dpviz.privacy.budget import Neighbouring, Status

SORTS = {"": "Status, then accuracy", "accuracy": "Accuracy", "epsilon": "Proved ε", "name": "Name"}
REFUTED = "refuted by audit"
_RELATIONS = {Neighbouring.REPLACE_ONE: "replace\u2011one", Neighbouring.ADD_REMOVE: "add\u2011remove"}
_ORDER = (*(words.LABELS[s][0] for s in (Status.PROVED, Status.PROVED_IF, Status.CLAIM)), REFUTED, words.LABELS[Status.NONE][0])
_COLUMNS = ("Method", "Status", "Relation", "Accountant", "Proved ε", "Accuracy")


def of(spec: RunSpec) -> tuple[Field[Any], ...]:
    """What the page keeps in the address: the order of the table."""
    return (fields.choice("order", "Sorted by", SORTS, "", few=0),)


@dataclass(frozen=True)
class Line:
    """A row of the table.

    Attributes:
        one: the guarantee.
        status: in words, as the badge says it.
        sign: of the status.
        condition: what it depends on, or what the audit showed; "" for nothing.
        accuracy: (S,) test accuracies, empty where they are not known.
    """

    one: Guaranteed
    status: str
    sign: str
    condition: str
    accuracy: np.ndarray

    @property
    def label(self) -> str:
        return list_mechanisms()[self.one.spec.mechanism].label

    @property
    def mean(self) -> float:
        """Mean accuracy, NaN where none is known."""
        return float(self.accuracy.mean()) if len(self.accuracy) else math.nan

    @property
    def proved(self) -> float:
        """Proved epsilon, NaN where none is."""
        cal = self.one.calibration
        return cal.proved_budget.epsilon if cal is not None and cal.proved_budget is not None else math.nan


def start(spec: RunSpec) -> tasks.Task[Measured]:
    """The guarantees of all methods and their accuracies, as a task that is at work."""

    def work(monitor: Monitor) -> Iterator[Measured]:
        return watch(spec, monitor)

    key = f"guarantees {resolve(spec).key()}"
    return watching.watch(tasks.Task(key, work, dataset=spec.dataset), "watched.guarantees")


def lines(measured: Measured) -> list[Line]:
    """The rows of the table, with what is known by now."""
    refuted = saved.refuted()
    known = measured.accuracy
    made = []
    for one in measured.found:
        name, cal = one.spec.mechanism, one.calibration
        accuracy = known.get(name, np.empty(0))
        if cal is None:
            made.append(Line(one, *words.LABELS[Status.NONE][:2], one.problem, accuracy))
        elif name in refuted and cal.status is Status.CLAIM:
            made.append(Line(one, REFUTED, "✗", f"the paper claims {words.budget(refuted[name][0])}", accuracy))
        else:
            status, sign, _ = words.LABELS[cal.status]
            made.append(Line(one, status, sign, "; ".join(cal.conditions), accuracy))
    return made


def headline(found: Sequence[Line]) -> None:
    """How many methods are proved, conditional, claimed and refuted."""
    counts = [sum(line.status == status for line in found) for status in _ORDER]
    parts = [
        f"{counts[0]} of {len(found)} methods are proved",
        f"{counts[1]} under conditions" if counts[1] else "",
        f"{counts[2]} {'is' if counts[2] == 1 else 'are'} only claimed" if counts[2] else "",
        f"audits refute {counts[3]}" if counts[3] else "",
    ]
    with st.container(key="headline"):
        st.markdown(", ".join(part for part in parts if part) + ".")


def picture(found: Sequence[Line], measured: Measured, spec: RunSpec, theme: Theme) -> None:
    """Accuracy of every method in the lane of its status."""
    rows = [
        pictures.Point(line.label, f"{line.sign} {line.status}", line.mean, charts.method_look(line.one.spec.mechanism, theme))
        for line in found
        if not math.isnan(line.mean)
    ]
    if not rows:
        return
    best = max((line for line in found if line.status == _ORDER[0]), key=lambda line: np.nan_to_num(line.mean), default=None)
    said = "" if best is None else f"The most accurate proved method is {best.label}: {words.percent(best.mean)}. "
    summary = (
        f"{said}Test accuracy at ε = {words.three(spec.epsilon)}; without privacy {words.percent(measured.non_private)}, "
        f"majority {words.percent(measured.majority)}. Colours are families."
    )
    lanes = [f"{sign} {status}" for status in _ORDER for sign in {line.sign for line in found if line.status == status}]
    fig = pictures.lanes(rows, lanes, measured.non_private, measured.majority, theme)
    charts.chart(fig, "guarantees", summary, lambda: table(found))


def ordered(found: Sequence[Line], sort: str) -> list[Line]:
    """The lines in the order asked for; what is not known comes last."""
    accuracy = {id(line): -np.nan_to_num(line.mean, nan=-1.0) for line in found}
    keys = {
        "": lambda line: (_ORDER.index(line.status), accuracy[id(line)]),
        "accuracy": lambda line: accuracy[id(line)],
        "epsilon": lambda line: np.nan_to_num(line.proved, nan=math.inf),
        "name": lambda line: line.label.lower(),
    }
    return sorted(found, key=keys[sort])


def rows(found: Sequence[Line], sort: str) -> None:
    """The table; long conditions have a number there and stand in full below it."""
    shown = ordered(found, sort)
    notes = list(dict.fromkeys(line.condition for line in shown if line.condition))
    tables.table([_row(line, notes) for line in shown], _COLUMNS)
    st.markdown("\n".join(f"{k}. {words.markdown(note)}" for k, note in enumerate(notes, 1)))


def _row(line: Line, notes: Sequence[str]) -> tuple[str, ...]:
    cal = line.one.calibration
    number = f" ({notes.index(line.condition) + 1})" if line.condition else ""
    status = f"{line.sign} {line.status.removesuffix(' …')}{number}"
    accuracy = "…" if math.isnan(line.mean) else words.percent(line.mean) + _spread(line.accuracy)
    if cal is None:
        return line.label, status, "–", "–", "none", "–"
    return line.label, status, _RELATIONS[cal.neighbouring], short(cal.accountant), words.three(line.proved), accuracy


def short(accountant: str) -> str:
    """An accountant's name without its details, which the page Privacy accounting gives in full."""
    return re.split(r" ?[\[,:;]| \((?!\d)", accountant)[0]  # (10) is an equation of its name


def _spread(values: np.ndarray) -> str:
    return f"\u00a0±\u00a0{100 * float(np.std(values, ddof=1)):.1f}" if len(values) > 1 else ""


def table(found: Sequence[Line]) -> pd.DataFrame:
    """The same as data."""
    out = []
    for line in found:
        cal = line.one.calibration
        out.append(
            {
                "mechanism": line.one.spec.mechanism,
                "label": line.label,
                "status": line.status,
                "condition": line.condition,
                "relation": cal.neighbouring.value if cal is not None else "",
                "accountant": cal.accountant if cal is not None else "",
                "claimed_epsilon": cal.claimed_budget.epsilon if cal is not None and cal.claimed_budget else math.nan,
                "proved_epsilon": line.proved,
                "accuracy": line.mean,
            }
        )
    return pd.DataFrame(out)


def show(task: tasks.Task[Measured], spec: RunSpec, theme: Theme, sort: Field[str]) -> None:
    """Sentence, picture and table, redrawn while accuracies come in."""

    def draw() -> None:
        if not task.results:
            tasks.controls(task, "Looking at every method")
            return
        now = lines(task.results[-1])
        headline(now)
        if task.state is not State.DONE:
            tasks.controls(task, "Training every method")
        picture(now, task.results[-1], spec, theme)
        rows(now, sort.draw())

    watching.live(task, draw, every=2.0)
