"""The first sentence of "Person" and its map: who moves the model, and which rows received noise."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.dashboard.components import charts, panels, tables
from dpviz.dashboard.frame import guessing, metric
from dpviz.dashboard.frame.fields import Group
from dpviz.dashboard.rows import selection
from dpviz.datasets import Dataset
from dpviz.experiments.run.resolve import dataset_of, resolve
from dpviz.experiments.studies import inspected
from dpviz.experiments.studies.majority_baseline import looks_no_better
from dpviz.figures.influence import training_map
from dpviz.figures.style import Theme
from dpviz.influence import Influence
from dpviz.mechanisms.base import RuleView
from dpviz.reporting import words

TOP, NARROW = 5, 2  # rows that carry their ids on the map, and on a narrow one


def label_of(run: inspected.Inspected, position: int) -> str:
    """A training row's label in words."""
    return str(dataset_of(run.spec).frame.iloc[int(run.row_ids[position]), -1])


def headline(run: inspected.Inspected, influence: Influence) -> None:
    """The most influential row by retraining, and the number of rows that received noise."""
    top, leaders = int(influence.order[0]), influence.leaders
    change = "about " + words.three(influence.newton_norm[top]) if leaders is None else words.three(leaders.norm.max())
    noise = f"{words.title(run.spec)}: {noisy_rows_in_words(run, brief=True)}."
    panels.headline(
        f"{selection.row_name(run, top)} ({label_of(run, top)}) moves the model most: without it, parameters change by {change}.",
        noise,
        of=run.spec,
        without_rows=noise,
    )


def privacy_warning() -> None:
    """The one banner of the page, below the map and the card that it speaks of."""
    with st.container(horizontal=True, vertical_alignment="center"):
        panels.privacy_warning("No ε covers this map and this row.")


def guessing_note(run: inspected.Inspected) -> None:
    """Says where the model whose rows are looked at is no better than the majority label."""
    measure = metric.chosen_metric(run.spec)
    if looks_no_better(run.spec, run.theta, measure.id):
        guessing.watch(run.spec)


def other_run(run: inspected.Inspected, a: inspected.Inspected) -> None:
    """The rows that received noise in run A, in words."""
    both = ""
    if run.ever is not None and a.ever is not None:
        both = f", {int((run.ever & a.ever).sum()):,} of them here too"
    here, there = (int(inspected.row_influence(one.spec).order[0]) for one in (run, a))
    top = "the same row moves its model most" if here == there else f"row {a.row_ids[there]} moves its model most"
    panels.text(f"A is {words.title(a.spec)}: {noisy_rows_in_words(a, brief=True)}{both}; {top}.")


def differs(run: inspected.Inspected, a: inspected.Inspected | None) -> NDArray[np.bool_] | None:
    """(n,) rows that received noise in one of this run and run A and not in the other; None where A puts none on rows."""
    if a is None or a.ever is None:
        return None
    return a.ever if run.ever is None else a.ever ^ run.ever


def used_rows(run: inspected.Inspected) -> NDArray[np.bool_] | None:
    """(n,) rows that training used in some draw; None where that is not counted."""
    visits = run.instances["visits"].to_numpy()
    return visits > 0 if np.isfinite(visits).all() else None


def noisy_rows_in_words(run: inspected.Inspected, *, brief: bool = False) -> str:
    """The number of rows that received noise: as the end of a sentence, or in a few words."""
    n = len(run.row_ids)
    if run.calibration.noise_scale == 0:
        return "no noise is added at all"
    if run.ever is None:
        return "all rows share the same noise" if brief else "this method puts no noise on single rows: all share the same noise"
    count = int(run.ever.sum())
    if brief:
        return f"{f'all {n:,}' if count == n else f'{count:,} of {n:,}'} rows received noise"
    view = used_view(run)
    if count == n and view is None:
        return f"all {n:,} training rows receive noise: the method makes no difference between rows"
    draws = f"{len(run.accuracy)} noise draw{'s' if len(run.accuracy) != 1 else ''}"
    start = f"{count:,} of {n:,} training rows received noise in at least one of {draws}{_of_used(run, count)}"
    if view is None:
        return start
    passing = int(view.passes.sum())
    without_noise = "no" if passing == 0 else "all" if passing == n else f"{passing:,}"
    return f"{start}; the rule, {view.name}, trains {without_noise} rows without noise before the first step"


def _of_used(run: inspected.Inspected, count: int) -> str:
    """The number of rows that training used, in brackets, where these are not all."""
    rows = used_rows(run)
    if rows is None or rows.all():
        return ""
    return " (all of those that were used at all)" if rows.sum() == count else f" ({int(rows.sum()):,} were used at all)"


def used_view(run: inspected.Inspected) -> RuleView | None:
    """The rule that the run follows."""
    return next((view for view in run.views or () if view.used), None)


def axes(own: Group) -> None:
    """The choice of the map's axes."""
    for column, key in zip(st.columns(2), ("x", "y"), strict=True):
        own[key].draw(place=column)


def draw(
    own: Group,
    run: inspected.Inspected,
    influence: Influence,
    chosen: selection.Chosen,
    theme: Theme,
    a: inspected.Inspected | None = None,
) -> None:
    """The map.

    Args:
        a: run A on the same rows; crosses mark the rows whose noise differs in it.
    """
    dataset = dataset_of(run.spec)
    names = chosen.axes
    points, titles, scaled = place(run, dataset, names)
    field = own["colour"]
    by = field.draw(label_visibility="collapsed") if len(field.knob.form("").options) > 1 else field.default  # type: ignore[attr-defined]
    shade = {"epsilon": run.epsilon, "noise": run.noise_count}.get(by)
    ring, bright = selection.map_rows(f"{resolve(run.spec).key()}|{names}|{theme.name}|{by}", chosen)
    named = np.zeros(len(points), bool)
    count = NARROW if charts.is_narrow() else TOP
    named[influence.order[:count]] = True
    other = differs(run, a)
    fig = training_map(
        points,
        influence.newton_norm,
        run.row_ids,
        theme,
        names=titles,
        with_noise=run.ever,
        shade=None if shade is None else (selection.COLOURS[by], shade),
        chosen=ring,
        group=bright,
        scaled=scaled,
        used=None if run.ever is None else used_rows(run),
        named=named,
        overlay=other,
        narrow=charts.is_narrow(),
        classes=(dataset.y[run.row_ids] > 0, dataset.label_names),
    )
    crossed = "" if other is None or not other.any() else " A cross marks rows whose noise differs in A."
    rough = inspected.approximation(influence)
    step = f"influence, one Newton step{f' ({rough})' if rough else ''}"
    summary = (
        f"{len(points):,} training rows. Colour is {step if shade is None else selection.COLOURS[by]}.{crossed} The {count} most "
        "influential rows carry their ids, the chosen one a ring. A click chooses a person; box or lasso (tools above the "
        "picture) a group; a double click clears it."
    )
    charts.chart(fig, selection.MAP, summary, lambda: table(run, influence), on_select=selection.from_map, rows=True, of=run.spec)
    if chosen.group.any():
        group(run, influence, chosen)


def group(run: inspected.Inspected, influence: Influence, chosen: selection.Chosen) -> None:
    """The common value of the chosen group, and a button that leaves it."""
    at, n = chosen.group, len(run.row_ids)

    def share(values: NDArray[Any]) -> tuple[str, str]:
        return words.percent(float(values[at].mean())), words.percent(float(values.mean()))

    def median(values: NDArray[Any]) -> tuple[str, str]:
        return words.three(float(np.median(values[at]))), words.three(float(np.median(values)))

    lines = [
        ("Rows", f"{int(at.sum()):,}", f"{n:,}"),
        ("Median influence", *median(influence.newton_norm)),
        ("Predicted right without privacy", *share(run.instances["margin_non_private"].to_numpy() > 0)),
    ]
    if run.ever is not None:
        lines.append(("Received noise in some draw", *share(run.ever)))
    view = used_view(run)
    if view is not None:
        lines.append(("Pass the rule at the start", *share(view.passes)))
    if run.epsilon is not None:
        lines.append(("Median individual ε", *median(run.epsilon)))
    tables.table(lines, ("The chosen group", "group", "all training rows"))
    st.button("Clear the group", on_click=selection.forget_group)


def place(run: inspected.Inspected, dataset: Dataset, names: tuple[str, str]) -> tuple[Floats, tuple[str, str], bool]:
    """(n, 2) places of the training rows, titles of the axes, and whether both have a scale in the data's units."""
    columns, titles = [], []
    for name in names:
        if name in selection.COMPONENTS:
            plane, shares = inspected.plane(run.spec)
            k = selection.COMPONENTS.index(name)
            columns.append(plane[:, k].astype(float))
            titles.append(f"{name} ({words.percent(shares[k])})")
            continue
        readable = name in dataset.frame and pd.api.types.is_numeric_dtype(dataset.frame[name])
        whole = dataset.frame[name] if readable else dataset.X[:, dataset.feature_names.index(name)]
        columns.append(np.asarray(whole, float)[run.row_ids])
        titles.append(name if readable else f"{name} (on the model's scale)")
    return np.column_stack(columns), (titles[0], titles[1]), not any(name in selection.COMPONENTS for name in names)


def table(run: inspected.Inspected, influence: Influence) -> pd.DataFrame:
    """All that is known about every training row, most influential first: noise, influence, then the readable row."""
    numbers = influence.frame().set_index(run.instances.index)
    out = pd.DataFrame(
        {
            "row id": run.row_ids,
            "rank": numbers["rank"],
            "influence, Newton step": numbers["newton_step"],
            "influence function": numbers["influence_function"],
            "leverage": numbers["leverage"],
            "effect on training loss": numbers["training_loss"],
        },
        index=run.instances.index,
    )
    if run.epsilon is not None:
        out["individual ε"] = run.epsilon
    if run.noise_count is not None:
        out["times with noise"], out["noise, total norm"] = run.noise_count, run.instances["noise_norm"]
        out["times used"] = run.instances["visits"]
    if run.views is not None:
        out["times passed"], out["margin to the rule"] = run.instances["passed"], run.instances["rule_margin"]
        for view in run.views:
            out[f"passes {view.name}"] = view.passes
    out["margin without privacy"], out["margin with noise"] = run.instances["margin_non_private"], run.instances["margin"]
    out["right with noise, share of draws"] = run.instances["correct"]
    own = inspected.own_ids(dataset_of(run.spec))
    if own is not None:
        out[own.name] = own.to_numpy()[run.row_ids]
    readable = dataset_of(run.spec).frame.iloc[run.row_ids]
    return pd.concat([out, readable.set_axis(out.index).add_prefix("data: ")], axis=1).sort_values("rank")


def rows(run: inspected.Inspected, influence: Influence, chosen: selection.Chosen) -> None:
    """The table of all rows, or of the group; a row chosen here is the person."""
    shown = table(run, influence)
    if chosen.group.any():
        shown = shown[np.isin(shown["row id"], run.row_ids[chosen.group])]
    whole, shown = shown, shown.head(1000)
    selection.remember_shown(selection.TABLE, shown["row id"].to_numpy())
    tables.frame(
        shown,
        key=selection.TABLE,
        hide_index=True,
        height=360,
        selection_mode="single-row",
        on_select=lambda: selection.from_table(selection.TABLE),
    )
    part = (
        f"The {len(shown):,} most influential of {len(whole):,} rows" if len(shown) < len(whole) else f"All {len(whole):,} rows"
    )
    whose = " of the group" if chosen.group.any() else ""
    st.caption(f"{part}{whose}. A click on a heading sorts, a tick at the left chooses the person.")
    tables.download(lambda: whole, "rows")
