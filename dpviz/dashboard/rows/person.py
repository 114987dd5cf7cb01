"""One person seen from all sides, beside another one where wanted."""

import math
from functools import partial

import numpy as np
import streamlit as st

from dpviz.dashboard.components import panels, tables
from dpviz.dashboard.frame.fields import Group
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.rows import selection
from dpviz.dashboard.rows.influence_map import label_of
from dpviz.experiments.run.resolve import dataset_of
from dpviz.experiments.run.settings import LEAST_EPSILON, MOST_EPSILON
from dpviz.experiments.studies import inspected
from dpviz.experiments.studies.odds import odds_over
from dpviz.influence import Influence
from dpviz.models import get_model
from dpviz.reporting import words

Line = tuple[str, list[str]]


def card(run: inspected.Inspected, influence: Influence, chosen: selection.Chosen, a: inspected.Inspected | None) -> None:
    """Lines about the chosen row: who, why exposed, what the model loses without it, attack odds here and at other ε, noise.

    Args:
        a: run A on the same rows, for a column of its own.
    """
    i = chosen.person
    unusual = inspected.unusual_columns(run.spec, int(run.row_ids[i]), 2)
    lines = [
        ("Who", "; ".join(f"{name} {_short(value)} (typical {_short(typical)})" for name, value, typical in unusual)),
        ("Why exposed", _why(run, influence, i)),
        ("Without it", _without(run, influence, i)),
        ("Best attack", _elsewhere(run)),
        ("Noise", _received(run, i)),
    ]
    heads = [selection.row_name(run, i), label_of(run, i)]
    if a is None:
        tables.table(lines, heads, real=True)
        return
    rank = f"{_ordinal(1 + int(np.flatnonzero(inspected.row_influence(a.spec).order == i)[0]))} of {len(a.row_ids):,}"
    others = ("the same", "the same", rank, _elsewhere(a), _received(a, i))
    tables.table([(*line, other) for line, other in zip(lines, others, strict=True)], (*heads, "A"), real=True)


def choose(own: Group, run: inspected.Inspected, chosen: selection.Chosen) -> None:
    """The field of the row, and the way back to the most influential one."""
    left, right = st.columns(2, vertical_alignment="bottom")
    own["row"].draw(place=left, placeholder=selection.row_name(run, chosen.person).removeprefix("Row "))
    right.button("Most influential", on_click=_most_influential, width="stretch")


def _short(value: object) -> str:
    return words.three(float(value)) if isinstance(value, float | np.floating) else str(value)


def _why(run: inspected.Inspected, influence: Influence, i: int) -> str:
    names, facts = dataset_of(run.spec).label_names, run.instances.iloc[i]
    (looks,) = _looks(run, [i])
    share = words.percent(float(influence.leverage[i]))
    if facts["margin_non_private"] < 0:
        return f"labelled {names[int(facts['label'] > 0)]}; the model without privacy says {''.join(looks)}; leverage {share}"
    return f"labelled {looks[0]} and looks so{looks[1]}; leverage {share}"


def _looks(run: inspected.Inspected, people: list[int]) -> list[tuple[str, str]]:
    """For each row the label that the model without privacy gives it, and how sure it is, after a comma."""
    names, facts = dataset_of(run.spec).label_names, run.instances.iloc[people]
    margins = facts["margin_non_private"].to_numpy(float)
    chances = get_model(run.spec.model).loss.probability(np.abs(margins))
    sure = [""] * len(people) if chances is None else [f" ({words.percent(float(chance))})" for chance in chances]
    return [(names[int(sign >= 0)], outcome) for sign, outcome in zip(margins * facts["label"].to_numpy(), sure, strict=True)]


def _without(run: inspected.Inspected, influence: Influence, i: int) -> str:
    """The change by retraining without a row, with the approximation beside it."""
    rank = f"{_ordinal(1 + int(np.flatnonzero(influence.order == i)[0]))} of {len(influence.order):,}"
    step = words.three(influence.newton_norm[i])
    leaders = influence.leaders
    if not influence.problem.model.convex:
        return f"about {step} by one Newton step, {rank}; retraining is below"
    if leaders is not None and i in leaders.index:
        change: float | None = float(leaders.norm[leaders.index == i][0])
    else:
        change = _retrained(run, [i])
    if change is None:
        return f"about {step} by one Newton step, {rank}; being retrained"
    return f"parameters change by {words.three(change)}, {rank}; one Newton step: {step}"


def _retrained(run: inspected.Inspected, at: list[int]) -> float | None:
    """The change of the parameters by retraining without a row; None until it is there."""
    work = partial(inspected.retrain_without, run.spec, at)
    truth = tasks.current_result("leaves", "Retraining without this row", work, of=run.spec, given=at, kept=False)
    return None if truth is None else float(truth.norm[0])


def _attack(run: inspected.Inspected) -> str:
    """The tightest bound on attacks on any row."""
    return "no bound is proved" if run.attack is None else f"right at most {words.percent(run.attack.accuracy)}"


def _elsewhere(run: inspected.Inspected) -> str:
    """The same, and at a tenth and at ten times ε, within what ε may be."""
    others = [e for e in (run.spec.epsilon / 10, 10 * run.spec.epsilon) if LEAST_EPSILON <= e <= MOST_EPSILON]
    found = [f"{words.percent(accuracy)} at ε = {words.three(e)}" for e, accuracy in odds_over(run.spec, others)]
    return "; ".join((_attack(run), *found))


def _received(run: inspected.Inspected, i: int) -> str:
    facts = run.instances.iloc[i]
    if run.calibration.noise_scale == 0:
        return "none is added"
    if run.noise_count is None:
        moved = f"; it moves the parameters by {words.three(run.rms_noise)}" if run.rms_noise > 0 else ""
        return f"the same for all rows{moved}"
    if np.isfinite(facts["visits"]) and facts["visits"] == 0:
        return "never used in training"
    used = f"used {words.times(facts['visits'])}, " if np.isfinite(facts["visits"]) else ""
    counts = f"with noise {words.times(facts['times_noised'])}, without {words.times(facts['passed'])}, mean over the draws"
    view = next((view for view in run.views or () if view.used), None)
    if view is None:
        return f"{used}{counts}"
    rule = f"{words.three(view.statistic[i])}, without noise {limits(view.low, view.high)}"
    return f"{used}{counts}. The rule, {view.name}: {rule}"


def draw(own: Group, run: inspected.Inspected, influence: Influence, chosen: selection.Chosen) -> None:
    """All that is known about the chosen row, beside another one where wanted."""
    own["other"].draw(placeholder="none")
    people = chosen.people
    lines = [
        *_verdict(run, people),
        *_influence(run, influence, people),
        ("Noise", [_received(run, i) for i in people]),
        *_noise(run, people),
        ("Best attack", [_attack(run) for _ in people]),
        *_individual(run, people),
    ]
    heads = [f"row {run.row_ids[i]}" for i in people]
    tables.table([(name, *values) for name, values in lines], ("", *heads), real=True)
    st.caption(
        "Attack: an adversary who knows all other rows and sees the model guesses whether this row was there; a coin toss is "
        "right 50 % of the time. Individual ε is a diagnostic: it reveals data and no guarantee covers it."
    )
    if run.individual is not None:
        panels.note(" ".join((f"Individual ε: {run.individual.method}", *run.individual.conditions)))
    frame = dataset_of(run.spec).frame
    st.subheader("The row in the data's own units", anchor=False)
    rows = [(str(c), *(_cell(frame[c].iloc[run.row_ids[i]]) for i in people)) for c in frame]
    tables.table(rows, ("column", *heads), real=True)


def _most_influential() -> None:
    selection.forget_group()
    st.session_state["row"] = ""


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _verdict(run: inspected.Inspected, people: list[int]) -> list[Line]:
    draws = len(run.accuracy)
    return [
        ("Label", [label_of(run, i) for i in people]),
        ("The model without privacy says", ["".join(looks) for looks in _looks(run, people)]),
        ("Private models that are right", [f"{round(c * draws)} of {draws}" for c in run.instances["correct"].iloc[people]]),
    ]


def _influence(run: inspected.Inspected, influence: Influence, people: list[int]) -> list[Line]:
    rough = "" if influence.exact_curvature else ", approximate"
    lines: list[Line] = [
        (f"Newton step{rough}", [words.three(influence.newton_norm[i]) for i in people]),
        ("Influence function", [words.three(influence.norm[i]) for i in people]),
        ("Leverage", [words.percent(influence.leverage[i]) for i in people]),
        ("Without it, mean training loss", [f"{influence.training_loss_change[i]:+.2g}".replace("-", "−") for i in people]),
    ]

    whom = "this row" if len(people) == 1 else "each of these rows"
    ask = "" if inspected.cheap(influence) or inspected.is_retrained(run.spec, people) else f"Retrain without {whom}"
    doing, work = f"Retraining without {whom}", partial(inspected.retrain_without, run.spec, people)
    truth = tasks.current_result("leave-one-out", doing, work, of=run.spec, given=people, ask=ask, kept=False)
    if truth is None:
        return lines
    rows = influence.problem.rows.take(np.asarray(people))
    own = truth.score_change(rows)  # (rows, models)
    margins = run.instances["margin_non_private"].to_numpy()[people]
    if influence.problem.model.convex:
        error = [f" (error at most {words.three(max(c, 1e-15))})" for c in truth.certificate]
        lines.append(("Leave-one-out truth", [f"{words.three(v)}{e}" for v, e in zip(truth.norm, error, strict=True)]))
    else:
        lines.append(("Leave-one-out retraining, from the same point", [words.three(v) for v in truth.norm]))
    after = [float(m + rows.y[k] * own[k, k]) for k, m in enumerate(margins)]
    lines.append(
        ("Own margin, with → without it", [f"{words.three(m)} → {words.three(a)}" for m, a in zip(margins, after, strict=True)])
    )
    return lines


def _ordinal(rank: int) -> str:
    suffix = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank:,}{suffix}"


def _noise(run: inspected.Inspected, people: list[int]) -> list[Line]:
    if run.noise_count is None:
        return []
    lines: list[Line] = [("Norm of all its noise", [words.three(v) for v in run.instances["noise_norm"].iloc[people]])]
    for view in run.views or ():
        asks = ["trains it without noise" if view.passes[i] else "asks for noise" for i in people]
        values = [f"{words.three(view.statistic[i])}, allowed {limits(view.low, view.high)}" for i in people]
        own = " (in use)" if view.used else ""
        lines.append((f"The rule {view.name}{own}", [f"{a}: {v}" for a, v in zip(asks, values, strict=True)]))
    return lines


def limits(low: float, high: float) -> str:
    """Thresholds in words."""
    if math.isfinite(low) and low > 0:
        return f"{words.three(low)} to {words.three(high)}"
    return f"up to {words.three(high)}" if high > -math.inf else "nothing"


def _individual(run: inspected.Inspected, people: list[int]) -> list[Line]:
    individual = run.individual
    if individual is None:
        return [("Individual ε", ["none known for this method and these settings"] * len(people))]
    delta = f", δ = {words.three(individual.delta)}" if individual.delta else ""
    means, largest = ([words.three(v) for v in f(individual.epsilon[:, people], axis=0)] for f in (np.mean, np.max))
    lines = [("Individual ε: mean, largest draw", [f"{a}, {b}{delta}" for a, b in zip(means, largest, strict=True)])]
    further = {
        "… any row in its place, at most": individual.replace,
        "… that may be shown to this person": individual.publishable,
    }
    worst = {name: values[:, people].max(axis=0) for name, values in further.items() if values is not None}
    return lines + [(name, [words.three(v) for v in values]) for name, values in worst.items()]
