"""One person seen from all sides, beside another one where wanted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.kit import charts, panels, tables, words
from dpviz.dashboard.rows import selection
from dpviz.dashboard.rows.influence_map import dataset_of, label_of
from dpviz.dashboard.rows.selection import Chosen, Condition
from dpviz.dashboard.shell.fields import Group
from dpviz.datasets import Dataset
from dpviz.datasets.table.units import Units
from dpviz.experiments import inspected
from dpviz.experiments.inspected import Inspected
from dpviz.figures import noised
from dpviz.figures.style import Theme
from dpviz.influence import Influence
from dpviz.mechanisms import NoisesRows, list_mechanisms
from dpviz.mechanisms.attack import attack_on_person
from dpviz.models import get_model

Line = tuple[str, list[str]]


def card(own: Group, seen: Inspected, influence: Influence, chosen: Chosen, a: Inspected | None) -> None:
    """Five lines about the chosen row: who, why influential, what removing it changes, attack, noise.

    Args:
        a: run A on the same rows, for a column of its own.
    """
    i = chosen.person
    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        own["row"].draw(placeholder=str(seen.row_ids[i]))
    with right:
        st.button("Most influential", on_click=_most_influential, width="stretch")
    lines = [
        ("Who", _who(seen, i)),
        ("Why influential", _why(seen, influence, i)),
        ("Without this row", _without(seen, influence, i)),
        ("Best attack", _attack(seen, i)),
        ("Noise", _received(seen, i)),
    ]
    heads = [f"Row {seen.row_ids[i]}", label_of(seen, i)]
    if a is None:
        tables.table(lines, heads)
        return
    theirs = ("the same", "the same", _without(a, inspected.row_influence(a.spec), i), _attack(a, i), _received(a, i))
    tables.table([(*line, other) for line, other in zip(lines, theirs, strict=True)], (*heads, "A"))


def _who(seen: Inspected, i: int) -> str:
    """The columns in which the row differs most from a typical one."""
    found = inspected.unlike_typical(seen.spec, int(seen.row_ids[i]))
    return "; ".join(f"{name} {_short(value)} (typical {_short(typical)})" for name, value, typical in found)


def _short(value: object) -> str:
    return words.three(float(value)) if isinstance(value, float | np.floating) else str(value)


def _why(seen: Inspected, influence: Influence, i: int) -> str:
    names, facts = dataset_of(seen.spec).label_names, seen.rows.iloc[i]
    margin, label = float(facts["margin_non_private"]), int(facts["label"])
    looks = names[int(margin * label >= 0)]
    share = words.percent(float(influence.leverage[i]))
    chance = get_model(seen.spec.model).loss.probability(np.abs(np.array([margin])))
    sure = "" if chance is None else f", sure to {words.percent(float(chance[0]))}"
    if margin < 0:
        return f"labelled {names[int(label > 0)]}, looks {looks}{sure}; leverage {share}"
    return f"labelled {looks} and looks so{sure}; leverage {share}"


def _without(seen: Inspected, influence: Influence, i: int) -> str:
    n, strength = len(seen.row_ids), influence.newton_norm
    rank = 1 + int((strength > strength[i]).sum())
    about = "" if influence.exact_curvature else "about "
    return f"the parameters change by {about}{words.three(strength[i])}, {_ordinal(rank)} of {n:,} rows"


def _attack(seen: Inspected, i: int) -> str:
    anybody = f"{words.percent(seen.attack.accuracy)} on anybody" if seen.attack is not None else "no bound is proved for anybody"
    if seen.individual is None:
        return f"right at most {anybody}" if seen.attack is not None else anybody
    mine = words.percent(attack_on_person(seen.individual, i, seen.attack))
    return f"right at most {mine} on this row; {anybody}"


def _received(seen: Inspected, i: int) -> str:
    facts = seen.rows.iloc[i]
    if seen.calibration.noise_scale == 0:
        return "none is added"
    if seen.noised is None:
        return "none on rows: it covers every row equally"
    if np.isfinite(facts["visits"]) and facts["visits"] == 0:
        return "never used in training"
    used = f"used {words.times(facts['visits'])}, " if np.isfinite(facts["visits"]) else ""
    return f"{used}with noise {words.times(facts['times_noised'])}, without {words.times(facts['passed'])}, mean over the draws"


def draw(own: Group, seen: Inspected, influence: Influence, chosen: Chosen) -> None:
    """All that is known about the chosen row, beside another one where wanted."""
    own["other"].draw(placeholder="nobody")
    people = [chosen.person, *([] if chosen.other is None else [chosen.other])]
    lines = [*_verdict(seen, people), *_influence(seen, influence, people), *_noise(seen, people), *_privacy(seen, people)]
    heads = [f"row {seen.row_ids[i]}" for i in people]
    tables.table([(name, *values) for name, values in lines], ("", *heads))
    st.caption(
        "Attack: somebody who knows all other rows and sees the model guesses whether this row was there; a coin toss is "
        "right 50 % of the time. Individual ε is a diagnostic: it reveals data and no guarantee covers it."
    )
    if seen.individual is not None:
        st.caption(words.markdown(" ".join((f"Individual ε: {seen.individual.method}", *seen.individual.conditions))))


def readable(seen: Inspected, chosen: Chosen) -> None:
    """The chosen rows in the data's own units."""
    people = [chosen.person, *([] if chosen.other is None else [chosen.other])]
    frame = dataset_of(seen.spec).frame
    heads = [f"row {seen.row_ids[i]}" for i in people]
    st.subheader("The row in the data's own units", anchor=False)
    tables.table([(str(c), *(_cell(frame[c].iloc[seen.row_ids[i]]) for i in people)) for c in frame], ("column", *heads))


def _most_influential() -> None:
    selection.forget_group()
    st.session_state["row"] = ""


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _verdict(seen: Inspected, people: list[int]) -> list[Line]:
    names, facts = dataset_of(seen.spec).label_names, seen.rows.iloc[people]
    loss = get_model(seen.spec.model).loss
    said = []
    for margin, label in zip(facts["margin_non_private"], facts["label"], strict=True):
        word = names[int(margin * label >= 0)]
        chance = loss.probability(np.abs(margin))
        sure = "" if chance is None else f", sure to {words.percent(float(chance))}"
        said.append(word + sure)
    draws = len(seen.accuracy)
    return [
        ("Label", [label_of(seen, i) for i in people]),
        ("The model without privacy says", said),
        ("Private models that are right", [f"{round(c * draws)} of {draws}" for c in facts["correct"]]),
    ]


def _influence(seen: Inspected, influence: Influence, people: list[int]) -> list[Line]:
    n = len(seen.row_ids)
    rank = [1 + int((influence.newton_norm > influence.newton_norm[i]).sum()) for i in people]
    rough = "" if influence.exact_curvature else ", approximate"
    lines: list[Line] = [
        (
            f"Influence (Newton step{rough}), rank",
            [f"{words.three(influence.newton_norm[i])}, {_ordinal(r)} of {n:,}" for i, r in zip(people, rank, strict=True)],
        ),
        ("Influence function", [words.three(influence.norm[i]) for i in people]),
        ("Leverage", [words.percent(influence.leverage[i]) for i in people]),
        ("Without it, mean training loss", [f"{influence.on_training_loss[i]:+.2g}".replace("-", "−") for i in people]),
    ]
    try:
        truth = inspected.retrained_at_once(seen.spec, people)
    except InvalidInput:
        return [*lines, ("Leave-one-out retraining", ["training without privacy reached no minimum here"] * len(people))]
    if truth is None:
        return [*lines, ("Leave-one-out retraining", ["not done: a training run takes long here"] * len(people))]
    rows = influence.problem.rows.take(np.asarray(people))
    own = truth.on_scores(rows)  # (rows, models)
    margins = seen.rows["margin_non_private"].to_numpy()[people]
    if influence.problem.model.convex:
        error = [f" ± {words.three(max(c, 1e-15))}" for c in truth.certificate]
        lines.append(("Leave-one-out truth", [f"{words.three(v)}{e}" for v, e in zip(truth.norm, error, strict=True)]))
    else:
        lines.append(("Leave-one-out retraining, from the same point", [words.three(v) for v in truth.norm]))
    after = [float(m + rows.y[k] * own[k, k]) for k, m in enumerate(margins)]
    lines.append(
        (
            "Own margin, with → without it",
            [f"{words.three(m)} → {words.three(a)}" for m, a in zip(margins, after, strict=True)],
        )
    )
    return lines


def _ordinal(rank: int) -> str:
    suffix = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank:,}{suffix}"


def _noise(seen: Inspected, people: list[int]) -> list[Line]:
    facts = seen.rows.iloc[people]
    if seen.noised is None:
        return [("Noise on this very row", ["none: the method puts none on rows"] * len(people))]
    used = [f"used {words.times(v)}" if np.isfinite(v) else "use not counted" for v in facts["visits"]]
    lines: list[Line] = [
        (
            "Noise, mean over the draws",
            [
                f"{u}, noised {words.times(t)}, passed {words.times(p)}"
                for u, t, p in zip(used, facts["times_noised"], facts["passed"], strict=True)
            ],
        ),
        ("Length of all its noise", [words.three(v) for v in facts["noise_norm"]]),
    ]
    for view in seen.views or ():
        lines.append(
            (
                f"The rule {view.name}{' (in use)' if view.used else ''}",
                [f"{'passes' if view.passes[i] else 'receives noise'}: {_against(view, i)}" for i in people],
            )
        )
    return lines


def _against(view: object, i: int) -> str:
    statistic, low, high = view.statistic[i], view.low, view.high  # type: ignore[attr-defined]
    return f"{words.three(statistic)}, allowed {limits(low, high)}"


def limits(low: float, high: float) -> str:
    """Thresholds in words."""
    if math.isfinite(low) and low > 0:
        return f"{words.three(low)} to {words.three(high)}"
    return f"up to {words.three(high)}" if high > -math.inf else "nothing"


def _privacy(seen: Inspected, people: list[int]) -> list[Line]:
    known = seen.individual
    lines: list[Line] = []
    if known is None:
        lines.append(("Individual ε", ["none known for this method and these settings"] * len(people)))
    else:
        delta = f", δ = {words.three(known.delta)}" if known.delta else ""
        lines.append(
            (
                "Individual ε: mean, largest draw",
                [f"{words.three(known.epsilon[:, i].mean())}, {words.three(known.epsilon[:, i].max())}{delta}" for i in people],
            )
        )
        if known.replace is not None:
            lines.append(("… any row in its place, at most", [words.three(known.replace[:, i].max()) for i in people]))
        if known.publishable is not None:
            lines.append(("… may be told to this person", [words.three(known.publishable[:, i].max()) for i in people]))
        lines.append(
            ("Best possible attack on this row", [words.percent(attack_on_person(known, i, seen.attack)) for i in people])
        )
    anybody = words.percent(seen.attack.accuracy) if seen.attack is not None else "no bound is proved"
    lines.append(("Best possible attack on anybody", [anybody] * len(people)))
    return lines


def finder(seen: Inspected, influence: Influence) -> None:
    """People by their feature values."""
    with st.expander("Find people by their values"):
        frame = dataset_of(seen.spec).frame
        columns = st.multiselect("Columns", [str(c) for c in frame], max_selections=4, placeholder="for example age")
        conditions = []
        for name in columns:
            series = frame[name]
            tests = selection.tests_of(series)
            left, right = st.columns(2)
            test = left.selectbox(f"{name}: test", tests, key=f"find-test-{name}")
            if tests is selection.NUMBER_TESTS:
                value = right.text_input(f"{name}: value", f"{float(series.median()):.6g}", key=f"find-value-{name}")
            elif test == "contains" or series.nunique() > 200:
                value = right.text_input(f"{name}: text", key=f"find-text-{name}")
            else:
                value = right.selectbox(f"{name}: value", sorted(series.astype(str).unique()), key=f"find-level-{name}")
            conditions.append(Condition(name, str(test), str(value)))
        if not conditions:
            st.caption("Choose columns; people who meet all conditions are listed by influence.")
            return
        try:
            found = np.flatnonzero(selection.matching(frame.iloc[seen.row_ids], conditions))
        except InvalidInput as problem:
            st.warning(
                f"**{words.markdown(problem.field)}**: {words.markdown(problem.cause)}. {words.markdown(problem.fix)}", icon="⚠️"
            )
            return
        _found(seen, influence, frame, found)


def _found(seen: Inspected, influence: Influence, frame: pd.DataFrame, found: np.ndarray) -> None:
    n = len(seen.row_ids)
    if not len(found):
        panels.empty(f"None of the {n:,} training rows meets all conditions. Loosen one of them.")
        return
    found = found[np.argsort(-influence.newton_norm[found], kind="stable")]
    ids = seen.row_ids[found]
    st.markdown(
        f"{len(found):,} of {n:,} training rows, by influence"
        + (", the first 200 shown." if len(found) > 200 else ".")
        + " A tick at the left chooses the person."
    )
    shown = frame.iloc[ids[:200]].copy()
    shown.insert(0, "influence", influence.newton_norm[found[:200]])
    shown.insert(0, "row id", ids[:200])
    selection.remember_shown(selection.FOUND, ids)
    tables.frame(
        shown,
        key=selection.FOUND,
        hide_index=True,
        selection_mode="single-row",
        on_select=lambda: selection.from_table(selection.FOUND),
    )
    st.button("Make them the group", on_click=selection.set_group, args=(ids,))


def before_after(seen: Inspected, influence: Influence, chosen: Chosen, theme: Theme) -> None:
    """The row before and after noise, a draw at a time; for methods that noise no rows, what they release instead."""
    i = chosen.person
    draws = seen.spec.seeds
    first = 0 if seen.first is None else max(int(seen.first[i]), 0)
    mechanism = seen.spec.build()
    released = mechanism.rows_in_words(influence.problem.setting) if isinstance(mechanism, NoisesRows) else ""
    if seen.ever is None:
        _one_step(seen, theme)
        return
    if not isinstance(mechanism, NoisesRows):
        where = words.markdown(seen.where)
        st.caption(f"Noise goes on something computed from the row, so the row itself has no noisy form. Where: {where}")
        return
    st.header("The row before and after noise", anchor=False)
    replica = first
    if draws > 1:
        replica = int(st.slider("Noise draw", 1, draws, first + 1, key=f"draw-{seen.row_ids[i]}")) - 1
    after = inspected.noisy_rows(seen.spec, replica)
    if after is None:
        panels.empty(released or "This form of the method reports no row.")
        return
    if released:
        st.caption(words.markdown(released))
    dataset, row_id = dataset_of(seen.spec), int(seen.row_ids[i])
    if np.array_equal(dataset.X[row_id], after[i]):
        changed = np.flatnonzero((dataset.X[seen.row_ids] != after).any(axis=1))
        panels.empty(
            f"Row {row_id} stays as it was in noise draw {replica + 1}, in which {len(changed):,} of {len(after):,} rows changed."
        )
        if len(changed):
            other = int(seen.row_ids[changed[influence.newton_norm[changed].argmax()]])
            st.button(f"Show row {other}, the most influential of those", on_click=selection.set_person, args=(other,))
        return
    _change(dataset, row_id, after[i], theme)


def _change(dataset: Dataset, row_id: int, noisy: np.ndarray, theme: Theme) -> None:
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
    moved, length, image = int(np.abs(noisy - before).argmax()), float(np.linalg.norm(noisy - before)), units.image
    far = "Noise more than one range of the row beyond it is black or white." if image else "Hovering shows the data's own units."
    summary = (
        f"Row {row_id} moved by {words.three(length)}; rows have length 1 at most. The feature that moved most is "
        f"{dataset.feature_names[moved]}: from {texts[0][moved]} to {texts[1][moved]}. {far}"
    )
    if image is not None:
        pixels = image[0] * image[1]
        fig = noised.pictures(before[:pixels].reshape(image), noisy[:pixels].reshape(image), theme)
    else:
        fig = noised.row_before_after(before, noisy, dataset.feature_names, theme, texts=texts)
    charts.chart(fig, "before-after", summary, lambda: data)
    if image is None:
        order = np.argsort(-np.abs(noisy - before), kind="stable")[:8]
        tables.table(
            [(dataset.feature_names[j], texts[0][j], texts[1][j]) for j in order], ("moved most, own units", "before", "after")
        )


def _one_step(seen: Inspected, theme: Theme) -> None:
    """What a method that noises no rows adds its noise to, before and after."""
    cal = seen.calibration
    st.header("One step before and after noise", anchor=False)
    st.markdown("**Every row is covered equally**: the noise goes on a sum over all rows, whatever a row's influence.")
    table = inspected.one_step(seen.spec)
    if table is None:
        where = list_mechanisms()[seen.spec.mechanism].noise_enters
        panels.empty(f"There is no single step to draw. {words.markdown(where)}")
        return
    names = dataset_of(seen.spec).feature_names
    if len(names) != len(table):
        names = tuple(f"parameter {k + 1}" for k in range(len(table)))
    before, after = table["before"].to_numpy(), table.drop(columns="before").to_numpy().T
    fig = noised.step_before_after(before, after, names, theme, title="value of a coordinate")
    summary = (
        f"The noise is added to {cal.query}, here at parameters 0. Before noise its length is "
        f"{words.three(float(np.linalg.norm(before)))}; the noise has length "
        f"{words.three(float(np.linalg.norm(after - before, axis=1).mean()))} on average over {len(after)} draws."
    )
    charts.chart(fig, "one-step", summary, lambda: table.assign(coordinate=names))
