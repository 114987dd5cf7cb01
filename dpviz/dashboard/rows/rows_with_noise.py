"""Rows that received noise, with reason, strength and time."""

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.components import charts, panels
from dpviz.dashboard.rows import before_after
from dpviz.dashboard.rows.influence_map import noisy_rows_in_words
from dpviz.dashboard.rows.person import limits
from dpviz.dashboard.rows.selection import Chosen
from dpviz.experiments.studies.inspected import Inspected
from dpviz.figures.rows_with_noise import noise_timeline
from dpviz.figures.rules import rule_histogram
from dpviz.figures.style import Theme
from dpviz.influence import Influence
from dpviz.mechanisms import list_mechanisms
from dpviz.mechanisms.base import RuleView
from dpviz.reporting import words


def draw(run: Inspected, influence: Influence, chosen: Chosen, theme: Theme) -> None:
    """The answer in words, the rule on a histogram, and the rounds."""
    cal = run.calibration
    message = noisy_rows_in_words(run)
    st.markdown(words.markdown(message[:1].upper() + message[1:]) + ".")
    where = list_mechanisms()[run.spec.mechanism].noise_enters.rstrip(".")
    strength = "" if cal.noise_scale == 0 else f" The noise is {cal.noise_family.name} of scale {words.three(cal.noise_scale)}"
    if run.noise_count is not None and run.ever is not None and run.ever.any():
        norms = run.rows["noise_norm"].to_numpy()[run.ever] / run.noise_count[run.ever]
        strength += f"; a row that receives it gets a vector of norm {words.three(float(norms.mean()))} on average"
    panels.note(f"Where noise goes: {where}.{strength}{'.' if strength else ''}")
    if run.views is None:
        _no_rule(run)
    else:
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
        before_after.one_step(run, theme)


def _no_rule(run: Inspected) -> None:
    if run.calibration.noise_scale == 0:
        panels.empty("No noise, so no row received any.")
    elif rule := list_mechanisms()[run.spec.mechanism].row_rule:
        stopped = int((run.rows["rule_margin"] > 0).sum())
        panels.empty(
            f"No rule sends noise to rows: it goes where the line above says. {rule} Here {stopped:,} of {len(run.rows):,} rows "
            "asked for more than their budget before the end, mean over the noise draws."
        )
    elif run.ever is None:
        seen_in = "individual ε and influence" if run.individual is not None else "influence"
        panels.empty(
            "This method has no rule that picks rows: its noise goes where the line above says and covers all rows together, "
            f"whatever a row's influence. Rows differ only in how much there is to hide: see {seen_in}."
        )
    else:
        panels.empty(
            "This method has no rule that picks rows: every row receives noise of the same distribution, whatever its influence."
        )


def rule(run: Inspected, view: RuleView, chosen: Chosen, theme: Theme) -> None:
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
    fig = rule_histogram(view.statistic, view.passes, view.low, view.high, theme, label=view.statistic_label)
    charts.chart(fig, f"rule-{view.name.replace(' ', '-')}", summary, lambda: _rule_table(run, view), rows=True, of=run.spec)
    for note in view.notes:
        panels.note(note)


def _drawn(run: Inspected, i: int) -> str:
    visits = float(run.rows["visits"].iloc[i])
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


def _rule_table(run: Inspected, view: RuleView) -> pd.DataFrame:
    return pd.DataFrame(
        {"row id": run.row_ids, view.statistic_label: view.statistic, "low": view.low, "high": view.high, "passes": view.passes}
        | ({} if view.log10_pass is None else {"log10 of the chance to pass": view.log10_pass})
    )


def rounds(run: Inspected, theme: Theme) -> None:
    """Charts of the steps at which rows received noise, or took part."""
    assert run.timeline is not None
    st.subheader("When", anchor=False)
    per_round, count = run.timeline.mean(axis=0), run.timeline.shape[1]
    if count == 1:
        st.markdown(f"Once, before training: {words.three(per_round[0])} rows in every noise draw.")
        return
    used = run.rows["visits"].sum() / count
    summary = (
        f"{count} rounds. A round uses {words.three(used)} rows; {run.timeline_counts}: {words.three(per_round[0])} in the "
        f"first and {words.three(per_round[-1])} in the last round, mean over {len(run.timeline)} noise draws."
    )
    table = pd.DataFrame({"round": np.arange(1, count + 1), f"{run.timeline_counts}, mean": per_round})
    charts.chart(noise_timeline(run.timeline, theme, run.timeline_counts), "timeline", summary, lambda: table, of=run.spec)
