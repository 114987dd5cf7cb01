"""The page's fields in the address, and the metric of every group over epsilon: the answer, the gap, the curves, the table."""

import math
import shlex
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import pandas as pd
import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput, number_from_text
from dpviz.dashboard.components import charts, panels, repeat, tables
from dpviz.dashboard.frame import fields
from dpviz.dashboard.jobs import cached_runs, tasks
from dpviz.datasets import Dataset, load_dataset
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.groups import MEASURES, MOST, OTHERS, SMALL, Grouping, GroupReport, columns, report, suggest_column
from dpviz.experiments.studies.releases import Releases, releases
from dpviz.figures import groups as pictures
from dpviz.figures.style import Theme, group_look
from dpviz.mechanisms.knobs import Choice, Number
from dpviz.models import get_model
from dpviz.reporting import shell_call, words
from dpviz.reporting.pictures import method_look

_RANGE = 20.0  # of a threshold on decision values
_known: WeakKeyDictionary[Dataset, dict[int, tuple[dict[str, bool], str]]] = WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True)
class Cuts(fields.Typed):
    """Rising numbers, as text with commas between them."""

    def check(self, name: str, value: object) -> tuple[float, ...]:
        numbers = tuple(float(v) for v in value) if isinstance(value, list | tuple) else ()
        if not all(map(math.isfinite, numbers)) or list(numbers) != sorted(set(numbers)):
            raise InvalidInput(name, "must be rising numbers", "For example: 30, 45, 60.")
        return numbers

    def parse(self, name: str, text: str) -> tuple[float, ...]:
        return self.check(name, [number_from_text(name, part) for part in text.split(",")])

    def text(self, value: Any) -> str:
        return ",".join(f"{v!r}" for v in value)

    def in_words(self, value: Any) -> str:
        return ", ".join(f"{v:g}" for v in value)


_QUARTILES = "For example 30, 45, 60. Empty cuts at the quartiles of all rows, or at the median of few."
CUTS: fields.Field[tuple[float, ...]] = fields.Field("cuts", Cuts(label="Cut a number at", help=_QUARTILES), ())
MEASURE = fields.choice("of", "What is measured", MEASURES, "accuracy", few=0)
WHY = fields.switch(
    "why", "Who pays, and why?", "Influence, noise and individual ε of each group of training rows. May take a while."
)


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """The page's fields in the address, for a run's table and model."""
    probabilities = get_model(spec.model).loss.probabilities
    low, high, usual = (0.0, 1.0, 0.5) if probabilities else (-_RANGE, _RANGE, 0.0)
    label = "Threshold on the probability" if probabilities else "Threshold on the score"
    threshold = fields.Field(
        "threshold", Number(label=label, help="Rows from here on are called positive.", low=low, high=high), usual
    )
    dataset = _dataset(spec)
    options, first = ({}, "") if dataset is None else _offered(dataset, spec)
    column = fields.Field("group", Choice(label="Groups by (any column)", help="", options=tuple(options)), first, few=0)
    return column, CUTS, WHY, MEASURE, threshold


def is_number(spec: RunSpec, column: str) -> bool:
    """True where a column of a run's table is a number; not where there is no such column or no table."""
    dataset = _dataset(spec)
    return dataset is not None and _offered(dataset, spec)[0].get(column, False)


def _dataset(spec: RunSpec) -> Dataset | None:
    """A run's table; None where it cannot be read."""
    return fields.read_or_default(lambda: load_dataset(spec.dataset, intercept=spec.intercept), None)


def _offered(dataset: Dataset, spec: RunSpec) -> tuple[dict[str, bool], str]:
    """The columns and the one that is suggested, found once for a split: to see which makes groups reads all of its rows."""
    known, tested = _known.setdefault(dataset, {}), dataset.n - dataset.train_size(spec.folds, spec.published_split)
    if tested not in known:
        known[tested] = (columns(dataset), suggest_column(dataset, tested))
    return known[tested]


EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
_SCORE = "mean_score"  # the one measure that is no share


@dataclass(frozen=True, eq=False)
class Seen:
    """The results that the page shows.

    Attributes:
        outcome: the run at the slider's epsilon.
        here: its groups at that epsilon.
        over: its groups at `EPSILONS`.
        refused: how many of these budgets cannot be met.
        a: the groups of run A at its epsilon; None where none is kept, or it is on other rows.
        kept: run A.
    """

    outcome: cached_runs.Outcome
    here: GroupReport
    over: GroupReport
    refused: int
    a: GroupReport | None = None
    kept: RunSpec | None = None


def grouping(own: fields.Group) -> Grouping:
    """The groups that are asked for."""
    return Grouping(own["group"].value(), own["cuts"].value())


def compute(spec: RunSpec, chosen: Grouping, kept: RunSpec | None) -> Seen | None:
    """Trains what is not in memory; None where that is impossible, said so.

    Args:
        kept: run A, on the same rows.
    """

    def single(outcome: cached_runs.Outcome) -> GroupReport:
        return report(Releases(outcome.spec, (replace(outcome, distribution=None),), ()), chosen)

    def work(monitor: Monitor) -> Seen:
        outcome = cached_runs.outcome(spec, lambda share: monitor(share / 6))
        made = releases(spec, EPSILONS, lambda share: monitor((1 + 5 * share) / 6))
        a = None if kept is None else single(cached_runs.outcome(kept, monitor))
        return Seen(outcome, single(outcome), report(made, chosen), len(made.refused), a, kept)

    doing, given = f"Training at {len(EPSILONS) + 1} budgets", (chosen, kept)
    return tasks.current_result("over-epsilon", doing, work, of=spec, given=given, kept=False)


def controls(own: fields.Group, spec: RunSpec) -> None:
    """Column, its cuts where it is a number, and measure; cuts that a column of text cannot have can be emptied."""
    cut = own["cuts"].value() or is_number(spec, own["group"].value())
    drawn: dict[str, dict[str, str]] = (
        {"group": {}, "cuts": {"placeholder": "automatic"}, "of": {}} if cut else {"group": {}, "of": {}}
    )
    for column, (key, more) in zip(st.columns(3 if cut else [2, 1]), drawn.items(), strict=True):
        own[key].draw("", column, **more)


def headline(view: Seen, measure: str) -> None:
    """The widest gap at this epsilon, in one sentence."""
    curve = view.here.curves(measure).set_index("group")["mean"]
    there = curve[view.here.compared].dropna()
    name = MEASURES[measure].lower()
    start = f"With {words.title(view.outcome.spec)}"
    of = f"{view.here.groups.grouping.column} " if view.here.groups.cuts else ""
    if len(there) < 2:
        sentence = f"{start} there is nothing to compare: fewer than two groups have {SMALL} test rows and a value."
    else:
        worst, best = str(there.idxmin()), str(there.idxmax())
        decimals = 2 if measure == _SCORE else 3  # as many as are shown, so that the sentence adds up
        gap = round(float(there.max()), decimals) - round(float(there.min()), decimals)
        base = view.here.baseline_gap("non-private", measure)
        sentence = (
            f"{start} {name} is {_value(measure, there[worst])} for “{of}{worst}” and {_value(measure, there[best])} for "
            f"“{of}{best}”: {_apart(measure, gap)} apart, {_apart(measure, base, unit=False)} without privacy."
        )
    panels.headline(sentence, of=view.outcome.spec)
    if view.a is not None and view.kept is not None:
        other = view.a.curves(measure).set_index("group")["mean"][view.a.compared].dropna()
        apart = f"{_apart(measure, float(other.max() - other.min()))} apart" if len(other) > 1 else "nothing to compare"
        panels.text(f"A is {words.title(view.kept)}: {apart} there.")


def _value(measure: str, value: float) -> str:
    """A value of a measure in words."""
    return words.two(value) if measure == _SCORE else words.percent(value)


def _apart(measure: str, gap: float, *, unit: bool = True) -> str:
    """The difference of two groups: "2.1 points", or "0.43" for scores."""
    if measure == _SCORE:
        return words.two(gap)
    return f"{100 * gap:.1f}{' points' if unit else ''}"


def draw(view: Seen, measure: str, theme: Theme) -> None:
    """Curves of all groups, and the gap between the best and the worst of them."""
    sweep, spec, shares = view.over, view.outcome.spec, measure != _SCORE
    reports = (sweep.curves(measure), view.here.curves(measure)), (sweep.gaps(measure), view.here.gaps(measure))
    curves, gaps = (
        pd.concat([over[over["epsilon"] != spec.epsilon], here]).sort_values("epsilon", kind="stable") for over, here in reports
    )
    base = sweep.baseline("non-private", measure)
    lines = [
        pictures.GroupLine(
            name + (" (few rows)" if sweep.sizes.at[name, "small"] else ""),
            curves[curves["group"] == name],
            float(base[name]),
            group_look(theme, name, k),
            bool(sweep.sizes.at[name, "small"]),
        )
        for k, name in enumerate(sweep.groups.names)
    ]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        summary = (
            f"{MEASURES[measure]} on the test rows of each group, with the range of 80 % of {spec.seeds} noise draws. "
            "Short lines at the right are the non-private model."
        )
        overlay = None
        if view.a is not None and view.kept is not None:
            means = view.a.curves(measure).set_index("group")["mean"]
            overlay = (view.kept.epsilon, [float(means.get(name, math.nan)) for name in sweep.groups.names])
            summary += f" Rings are A at ε = {words.three(view.kept.epsilon)}."
        if view.refused:
            summary += f" {view.refused} of {len(EPSILONS)} other budgets cannot be met by this method."
        fig = pictures.groups(lines, theme, here=spec.epsilon, overlay=overlay, shares=shares, narrow=charts.is_narrow())
        st.markdown(f"**{MEASURES[measure]} of each group**")
        charts.chart(fig, "groups", summary, lambda: curves, of=spec)
    with right:
        if gaps.empty:
            panels.empty(f"No gap: fewer than two groups have {SMALL} test rows and a value. Choose another column or cut.")
            return
        level = sweep.baseline_gap("non-private", measure)
        method = method_look(spec.mechanism, theme)
        mine = None if view.a is None else view.a.gaps(measure)
        ring = None if mine is None or mine.empty else (float(mine["epsilon"].iloc[0]), float(mine["mean"].iloc[0]))
        fig = pictures.gap(gaps, level, method, theme, here=spec.epsilon, overlay=ring, shares=shares)
        first, last = gaps.iloc[0], gaps.iloc[-1]
        ends = [_apart(measure, one["mean"], unit=one is first) for one in (first, last)]
        summary = (
            f"Largest minus smallest {MEASURES[measure].lower()} among groups of at least {SMALL} test rows in each noise draw, "
            f"then the mean: {ends[0]} at ε = {words.three(first['epsilon'])}, {ends[1]} at ε = {words.three(last['epsilon'])}, "
            f"{_apart(measure, level, unit=False)} without privacy. It is at least the gap between the "
            "means, for the noise of one draw alone sets groups apart."
        )
        st.markdown(f"**Mean gap of single models{', in points' if shares else ''}**")
        charts.chart(fig, "gap", summary, lambda: gaps, of=spec)


def table(view: Seen, measure: str) -> None:
    """The chosen measure of every group at the slider's epsilon, beside non-private and majority."""
    here, spec, name = view.here, view.outcome.spec, MEASURES[measure].lower()
    st.header(f"Every group at ε = {words.three(spec.epsilon)}", anchor=False)
    mean = here.curves(measure).set_index("group")["mean"]
    non_private, majority = here.baseline("non-private", measure), here.baseline("majority", measure)
    a = None if view.a is None else view.a.curves(measure).set_index("group")["mean"]
    rows = []
    for group in here.groups.names:
        size = here.sizes.loc[group]
        values = (mean.get(group, math.nan), non_private[group], majority[group])
        rows.append(
            (
                f"{group} ⚠ few rows" if size["small"] else group,
                *(_shown(measure, value) for value in values),
                f"{size['train']:,}",
                f"{size['test']:,}",
                *([] if a is None else [_shown(measure, a.get(group, math.nan))]),
            )
        )
    heads = ("Group", MEASURES[measure], f"Non-private {name}", f"Majority {name}", "Training rows", "Test rows")
    tables.table(rows, (*heads, *([] if a is None else [f"A: {name}"])))
    st.caption(
        f"Means over {spec.seeds} noise draws. ⚠ marks groups of fewer than {SMALL} test rows, which the gap leaves out. "
        f"“none” means that the group has no such row, or the majority label no score."
        + (f" The {MOST - 1} largest groups are shown." if OTHERS in here.groups.names else "")
    )
    tables.download(lambda: here.draws, "groups-here", "Download all measures of every group (CSV)")
    panels.privacy_warning(
        "Sizes and measures of groups are read from private rows, without noise. No ε covers them; release them only with a "
        "privacy budget of their own."
    )


def draw_sources(spec: RunSpec, chosen: Grouping) -> None:
    """The calls that repeat the groups' numbers."""
    with st.expander("How is this computed?"):
        st.markdown("Every measure is counted on the group's test rows, for each noise draw, and then averaged.")
        cuts = f", {chosen.cuts!r}" if chosen.cuts else ""
        repeat.python_of(
            spec,
            f"runs = releases(spec, [spec.epsilon])\ngroups.report(runs, groups.Grouping({chosen.column!r}{cuts})).curves()",
            "from dpviz.experiments.studies import groups",
            "from dpviz.experiments.studies.releases import releases",
        )
        flags = [f"--group={chosen.column}", *([f"--cuts={','.join(map(str, chosen.cuts))}"] if chosen.cuts else [])]
        repeat.shell(f"{shell_call(spec, 'groups')} {shlex.join(flags)}")


def _shown(measure: str, value: Any) -> str:
    """A value of a measure in a table; "none" where there is none."""
    number = float(value)
    return _value(measure, number) if math.isfinite(number) else "none"
