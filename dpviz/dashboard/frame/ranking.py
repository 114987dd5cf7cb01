"""All methods at a run's budget: how far each is proved, how useful it leaves the model, and which are best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpviz.dashboard.frame import metric
from dpviz.dashboard.jobs import watching
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.dashboard.jobs.job import Job, State
from dpviz.dashboard.jobs.pool import pool
from dpviz.experiments.run.metrics import Metric, levels_of
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.guarantees import Guaranteed, Measured, watch
from dpviz.figures import guarantees
from dpviz.figures.style import Theme
from dpviz.mechanisms import list_mechanisms
from dpviz.mechanisms.attack import Attacker
from dpviz.papers import saved
from dpviz.privacy.budget import Status
from dpviz.reporting import words
from dpviz.reporting.pictures import method_look

_PROVED = tuple(words.LABELS[status][0] for status in (Status.PROVED, Status.PROVED_IF))
#: statuses from top to bottom of a picture
ORDER = (*_PROVED, words.LABELS[Status.CLAIM][0], words.REFUTED[0], words.LABELS[Status.NONE][0])


@dataclass(frozen=True)
class Line:
    """A row of the table.

    Attributes:
        one: the guarantee.
        status: in words, as the badge says it.
        sign: of the status.
        condition: what it depends on, or what the audit showed; "" for nothing.
        values: (S,) of the metric on the test rows, empty where they are not known.
        expected: their mean over all noise draws in closed form, None where there is none.
    """

    one: Guaranteed
    status: str
    sign: str
    condition: str
    values: np.ndarray
    expected: float | None = None

    @property
    def label(self) -> str:
        return list_mechanisms()[self.one.spec.mechanism].label

    @property
    def mean(self) -> float:
        """Mean of the metric as all pages show it: in closed form where there is one, NaN where it has no value."""
        if self.expected is not None:
            return self.expected
        return float(self.values.mean()) if len(self.values) else math.nan

    @property
    def error(self) -> float:
        """Standard error of the mean over the noise draws: 0 in closed form, NaN for one draw."""
        if self.expected is not None:
            return 0.0
        return float(self.values.std(ddof=1) / len(self.values) ** 0.5) if len(self.values) > 1 else math.nan

    @property
    def proved(self) -> float:
        """Proved epsilon, NaN where none is."""
        cal = self.one.calibration
        return cal.proved_budget.epsilon if cal is not None and cal.proved_budget is not None else math.nan


def start(spec: RunSpec, attacker: Attacker | None = None) -> Job[Measured]:
    """The guarantees of all methods and their metrics, as a task that is at work.

    Args:
        attacker: the strongest that is tolerated, for an epsilon of each method's own; None for the run's.
    """
    return watching.watch(_job(spec, attacker), "watched.guarantees")


def measured_lines(spec: RunSpec) -> list[Line]:
    """The methods at a run's budget, where all of them have been measured; none before."""
    job = pool().find(_job(spec).key)
    return lines(job.results[-1], metric.chosen_metric(spec)) if job is not None and job.state is State.DONE else []


def _job(spec: RunSpec, attacker: Attacker | None = None) -> Job[Measured]:
    levels = levels_of([metric.chosen_metric(spec).id])
    key = " ".join(["guarantees", *levels, resolve(spec).key(), *([] if attacker is None else [str(attacker)])])
    return Job(key, lambda monitor: watch(spec, monitor, levels, attacker), dataset=spec.dataset)


def lines(measured: Measured, metric: Metric) -> list[Line]:
    """The rows of the table, with what is known by now."""
    scores = {name: table[metric.column].to_numpy(float) for name, table in measured.metrics.items()}
    made = []
    for one in measured.found:
        name, cal = one.spec.mechanism, one.calibration
        values, exact = scores.get(name, np.empty(0)), measured.expected.get(name, {}).get(metric.id)
        if cal is None:
            made.append(Line(one, *words.LABELS[Status.NONE][:2], one.problem, values, exact))
        else:
            mechanism = one.spec.build()
            audited, (status, sign, _) = saved.refutation(mechanism, cal), words.label(cal, mechanism)
            made.append(Line(one, status, sign, audited.words if audited else "; ".join(cal.conditions), values, exact))
    return made


def picture(
    methods: Sequence[Line], measured: Measured, metric: Metric, theme: Theme, overlay: Outcome | None, *, narrow: bool
) -> tuple[Any, str]:
    """The metric of every method below its status, and the baselines in words; no picture where no method has a value.

    Args:
        overlay: run A, drawn where it has the same metric.
    """
    points = [
        guarantees.Point(line.label, f"{line.sign} {line.status}", line.mean, method_look(line.one.spec.mechanism, theme))
        for line in methods
        if not math.isnan(line.mean)
    ]
    statuses = [f"{sign} {status}" for status in ORDER for sign in {line.sign for line in methods if line.status == status}]
    base, floor = (float(measured.baselines.at[model, metric.column]) for model in ("non-private", "majority"))
    a = overlay.cost.mean if overlay is not None and overlay.cost.metric.id == metric.id else math.nan
    form: dict[str, Any] = {"title": f"test {metric.within}", "shares": metric.shares, "rising": metric.higher_is_better}
    drawn = guarantees.ranking(points, statuses, base, floor, theme, overlay=a, narrow=narrow, **form) if points else None
    return drawn, f"without privacy {words.metric_value(metric, base)}, majority {words.metric_value(metric, floor)}"


def best(methods: Sequence[Line], metric: Metric, rows: int) -> list[Line]:
    """The proved methods by the metric, the best first, as far as they cannot be told apart from it.

    Two means are told apart where they differ by more than two standard errors, and by more than one test row.

    Args:
        rows: test rows.
    """
    ranks = rank_methods(methods, metric)
    if not ranks:
        return []
    first, least = ranks[0], 1 / rows if metric.shares else 0.0
    return [one for one in ranks if abs(one.mean - first.mean) <= max(least, 2 * math.hypot(one.error, first.error))]


def rank_methods(methods: Sequence[Line], metric: Metric) -> list[Line]:
    """The methods whose budget is proved and that have a value of the metric, the best first."""
    sign = -1 if metric.higher_is_better else 1
    proved = (one for one in methods if one.status in _PROVED and not math.isnan(one.mean))
    return sorted(proved, key=lambda one: sign * one.mean)
