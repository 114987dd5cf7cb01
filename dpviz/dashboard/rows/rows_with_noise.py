"""Rows that received noise, with reason, strength and time; one row before and after it, or what else noise is added to."""

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import ArrayLike

from dpviz.dashboard.components import charts, panels, tables
from dpviz.dashboard.rows.influence_map import noisy_rows_in_words
from dpviz.dashboard.rows.person import limits
from dpviz.dashboard.rows.selection import Chosen
from dpviz.datasets import Dataset
from dpviz.datasets.table.units import Units
from dpviz.experiments.run.resolve import dataset_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import inspected
from dpviz.figures.rows_with_noise import noise_timeline, pictures, row_before_after, rule_histogram, step_before_after
from dpviz.figures.style import Theme
from dpviz.influence import Influence
from dpviz.mechanisms import NoisesRows, list_mechanisms
from dpviz.mechanisms.base import RuleView
from dpviz.reporting import words


def before_after(run: inspected.Inspected, influence: Influence, chosen: Chosen, theme: Theme) -> None:
    """The row before and after noise, a draw at a time; nothing for methods that put none on rows."""
    i = chosen.person
    draws = run.spec.seeds
    first = 0 if run.first is None else max(int(run.first[i]), 0)
    mechanism = run.spec.build()
    if not isinstance(mechanism, NoisesRows):
        return
    released = mechanism.rows_in_words(influence.problem.setting)
    st.header("This row in the table with noise (D_priv)", anchor=False)
    replica = first
    if draws > 1:
        replica = int(st.slider("Noise draw", 1, draws, first + 1, key=f"draw-{run.row_ids[i]}")) - 1
    after = inspected.noisy_rows(run.spec, replica)
    if after is None:
        panels.empty(released or "This form of the method reports no row.")
        return
    if released:
        panels.note(released)
    dataset, row_id = dataset_of(run.spec), int(run.row_ids[i])
    changed = np.flatnonzero((dataset.X[run.row_ids] != after).any(axis=1))
    share = f"{len(changed):,} of {len(after):,} rows ({words.percent(len(changed) / len(after))}) differ from the original"
    if np.array_equal(dataset.X[row_id], after[i]):
        panels.empty(f"Row {row_id} is the original row in noise draw {replica + 1}: {share}.")
        if len(changed):
            other = int(run.row_ids[influence.order[np.isin(influence.order, changed)][0]])
            st.button(
                f"Show row {other}, the most influential of those", on_click=st.session_state.update, args=({"row": str(other)},)
            )
        return
    panels.text(f"In noise draw {replica + 1} {share}.")
    _change(run.spec, dataset, row_id, after[i], theme)


def _change(spec: RunSpec, dataset: Dataset, row_id: int, noisy: np.ndarray, theme: Theme) -> None:
    """A row beside the same row after noise: a picture, a sentence and the features that moved most."""
    before, units = dataset.X[row_id], Units(dataset)
    texts = units.read(row_id, before), units.read(row_id, noisy)
    data = pd.DataFrame(
        {
            "feature": dataset.feature_names,
            "before": before,
            "after": noisy,
            "before, own units": texts[0],
            "after, own units": texts[1],
        }
    )
    moved, norm, image = int(np.abs(noisy - before).argmax()), float(np.linalg.norm(noisy - before)), units.image
    far = "Noise more than one range of the row beyond it is black or white." if image else "Hovering shows the data's own units."
    summary = (
        f"Row {row_id} moved by {words.three(norm)}; rows have a norm of at most 1. The feature that moved most is "
        f"{dataset.feature_names[moved]}: from {texts[0][moved]} to {texts[1][moved]}. {far}"
    )
    if image is not None:
        pixels = image[0] * image[1]
        fig = pictures(before[:pixels].reshape(image), noisy[:pixels].reshape(image), theme)
    else:
        fig = row_before_after(before, noisy, dataset.feature_names, theme, texts=texts)
    charts.chart(fig, "before-after", summary, lambda: data, rows=True, of=spec)
    if image is None:
        order = np.argsort(-np.abs(noisy - before), kind="stable")[:8]
        tables.table(
            [(dataset.feature_names[j], texts[0][j], texts[1][j]) for j in order],
            ("moved most, own units", "before", "after"),
            real=True,
        )


def one_step(run: inspected.Inspected, theme: Theme) -> None:
    """The quantity that a method adds its noise to, before and after, where that is no row."""
    cal = run.calibration
    st.subheader("One step before and after noise", anchor=False)
    trained = list_mechanisms()[run.spec.mechanism].family == "output"
    on = "the trained parameters" if trained else "a sum over all rows"
    equally = f"**Every row is covered equally**: the noise goes on {on}, whatever a row's influence."
    st.markdown(equally if cal.noise_scale > 0 else "**No row is covered**: this method adds no noise.")
    table = inspected.one_step(run.spec)
    if table is None:
        where = list_mechanisms()[run.spec.mechanism].noise_enters
        panels.empty(f"There is no single step to draw. {words.markdown(where)}")
        return
    names = dataset_of(run.spec).feature_names
    if len(names) != len(table):
        names = tuple(f"parameter {k + 1}" for k in range(len(table)))
    before, after = table["before"].to_numpy(), table.drop(columns="before").to_numpy().T
    fig = step_before_after(before, after, names, theme, title="value")
    summary = (
        f"The noise is added to {cal.query}{'' if trained else ', here at parameters 0'}. Before noise its norm is "
        f"{words.three(float(np.linalg.norm(before)))}; the noise has norm "
        f"{words.three(float(np.linalg.norm(after - before, axis=1).mean()))} on average over {len(after)} draws."
    )
    charts.chart(fig, "one-step", summary, lambda: table.assign(coordinate=names), of=run.spec)


def draw(run: inspected.Inspected, influence: Influence, chosen: Chosen, theme: Theme) -> None:
    """The answer in words, the rule on a histogram, and the rounds."""
    cal = run.calibration
    message = noisy_rows_in_words(run)
    st.markdown(words.markdown(message[:1].upper() + message[1:]) + ".")
    where = list_mechanisms()[run.spec.mechanism].noise_enters.rstrip(".")
    strength = "" if cal.noise_scale == 0 else f" The noise is {cal.noise_family.name} of scale {words.three(cal.noise_scale)}"
    if run.noise_count is not None and run.ever is not None and run.ever.any():
        norms = run.instances["noise_norm"].to_numpy()[run.ever] / run.noise_count[run.ever]
        strength += f"; a row that receives it gets a vector of norm {words.three(float(norms.mean()))} on average"
    panels.note(f"Where noise goes: {where}.{strength}{'.' if strength else ''}")
    if run.views is None and (no_rule := list_mechanisms()[run.spec.mechanism].row_rule):
        stopped = int((run.instances["rule_margin"] > 0).sum())
        panels.empty(
            f"No rule sends noise to rows: it goes where the line above says. {no_rule} Here {stopped:,} of "
            f"{len(run.instances):,} rows asked for more than their budget before the end, mean over the noise draws."
        )
    if run.views is not None:
        st.subheader("The rule, as written and as intended", anchor=False)
        st.caption(
            "Both are looked at for every row before the first step; while training goes on the model moves, and so do they."
        )
        for column, view in zip(st.columns(len(run.views), gap="large"), run.views, strict=True):
            with column:
                rule(run, view, chosen, theme)
        if cal.notes:
            st.subheader("Why the rule does this, with its thresholds", anchor=False)
            for note in cal.notes:
                st.markdown(f"- {words.markdown(note)}")
    if run.timeline is not None:
        rounds(run, theme)
    if run.ever is None:
        one_step(run, theme)


def rule(run: inspected.Inspected, view: RuleView, chosen: Chosen, theme: Theme) -> None:
    """One reading of the rule: in words, as formula, and as thresholds on the histogram of what it looks at."""
    n, passing = len(view.passes), int(view.passes.sum())
    st.markdown(f"**{view.name[:1].upper() + view.name[1:]}**{' · this run follows it' if view.used else ''}")
    panels.text(view.words)
    st.latex(view.formula)
    mine = view.statistic[chosen.person]
    finite = view.statistic[np.isfinite(view.statistic)]
    between = f"{words.three(finite.min())} and {words.three(finite.max())}" if len(finite) else "no finite values"
    summary = (
        f"The rule trains {passing:,} of {n:,} rows without noise and asks for noise on {n - passing:,}: "
        f"{view.statistic_label} lies between {between}, and a row without noise has {limits(view.low, view.high)}. "
        f"{_why(view)}Row {run.row_ids[chosen.person]} has {words.three(mine)}: "
        f"{'without' if view.passes[chosen.person] else 'with'} noise{_drawn(run, chosen.person)}."
    )
    if view.log10_pass is not None:
        best = float(view.log10_pass.max())
        chance = words.percent(10**best) if best > -4 else f"10^{best:.0f}"
        summary += (
            f" The rule's own noise comes on top: with it the likeliest row is trained without noise with probability {chance}."
        )
    if chosen.group.any():
        without_noise = int(view.passes[chosen.group].sum())
        summary += f" Of the {int(chosen.group.sum()):,} rows of the group {without_noise:,} are trained without noise."
    columns: dict[str, ArrayLike] = {"row id": run.row_ids, view.statistic_label: view.statistic}
    columns |= {"low": view.low, "high": view.high, "passes": view.passes}
    if view.log10_pass is not None:
        columns["log10 of the chance to pass"] = view.log10_pass
    fig = rule_histogram(view.statistic, view.passes, view.low, view.high, theme, label=view.statistic_label)
    charts.chart(fig, f"rule-{view.name.replace(' ', '-')}", summary, lambda: pd.DataFrame(columns), rows=True, of=run.spec)
    for note in view.notes:
        panels.note(note)


def _drawn(run: inspected.Inspected, i: int) -> str:
    visits = float(run.instances["visits"].iloc[i])
    return ", if training drew it, which it never did" if visits == 0 else ""


def _why(view: RuleView) -> str:
    """A sentence on the distance of a rule's threshold from the rows, where it makes no difference between them."""
    finite = view.statistic[np.isfinite(view.statistic) & (view.statistic > 0)]
    if not len(finite):
        return ""
    middle = float(np.median(finite))
    if view.passes.all():
        return "Every row is within the thresholds, so the rule makes no difference between rows. "
    if view.passes.any():
        return ""
    threshold = view.high if middle > view.high else view.low
    if not 0 < threshold < np.inf:
        return "No row is within the thresholds. "
    times = middle / threshold if middle > threshold else threshold / middle
    side = "above" if middle > threshold else "below"
    return f"The middle row lies {words.three(times)} times {side} the threshold, so the rule makes no difference between rows. "


def rounds(run: inspected.Inspected, theme: Theme) -> None:
    """Charts of the steps at which rows received noise, or took part."""
    assert run.timeline is not None
    st.subheader("When", anchor=False)
    per_round, count, counts = run.timeline.mean(axis=0), run.timeline.shape[1], run.record.timeline_counts
    if count == 1:
        st.markdown(f"Once, before training: {words.three(per_round[0])} rows in every noise draw.")
        return
    used = run.instances["visits"].sum() / count
    summary = (
        f"{count} rounds. A round uses {words.three(used)} rows; {counts}: {words.three(per_round[0])} in the "
        f"first and {words.three(per_round[-1])} in the last round, mean over {len(run.timeline)} noise draws."
    )
    table = pd.DataFrame({"round": np.arange(1, count + 1), f"{counts}, mean": per_round})
    charts.chart(noise_timeline(run.timeline, theme, counts), "timeline", summary, lambda: table, of=run.spec)
