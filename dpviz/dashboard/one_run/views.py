"""The answer and the pictures of one run; the first page puts them below each other, and what explains them in `sections`."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from dpviz.dashboard.components import charts, panels, tables
from dpviz.dashboard.frame import fields, guessing, links, metric
from dpviz.dashboard.frame.pinned import PINNED
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.run.trajectory import trajectory
from dpviz.experiments.studies import decision_boundary
from dpviz.figures import plane
from dpviz.figures.gauges import Gauge, Mark, Part, gauges
from dpviz.figures.style import Theme
from dpviz.reporting import Chart, pictures, words
from dpviz.reporting.calls import address_text

TRAINING = fields.switch("training", "Training, step by step", "The decision lines after each step of training.")


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """All of them."""
    return TRAINING, PINNED


def headline(outcome: Outcome) -> None:
    """The answer in one sentence, with the badge of its guarantee."""
    sentences = words.headline(words.title(outcome.spec), outcome.cost, outcome.calibration, outcome.attack)
    colour = words.label(outcome.calibration, outcome.spec.build())[2]
    badge = f":{colour}-badge[{words.markdown(words.guarantee(outcome.calibration, outcome.spec.build()))}]"
    panels.headline(*sentences, of=outcome.spec, badge=badge)
    guessing.say(outcome)


def scale(outcome: Outcome, theme: Theme, overlay: Outcome | None = None) -> None:
    """The metric with the parts of its cost, and the best possible attack; on one scale where both are shares.

    Args:
        overlay: a run that is kept for comparison, marked "A".
    """
    method = pictures.method_look(outcome.spec.mechanism, theme)
    useful, message = _useful(outcome)
    message = message if useful is None else f"{message} {words.OUTSIDE}"
    attack, limit = _attacked(outcome)
    if overlay is not None:
        useful, attack = _with_overlay(useful, attack, outcome, overlay)

    def draw(rows: list[Gauge | None], key: str, summary: str, *, shares: bool = True) -> None:
        there = [row for row in rows if row is not None]
        table = outcome.cost.table if key == "cost" else None
        if there:
            decided = outcome.key, outcome.cost.metric.id, overlay and overlay.key
            charts.still_chart(
                key, lambda _: Chart(gauges(there, method, theme, shares=shares), summary, table), *decided, of=outcome.spec
            )

    if outcome.cost.metric.shares:
        draw([useful, attack], "cost", f"{message} {limit}".strip())
    else:
        draw([useful], "cost", message, shares=False)
        draw([attack], "attack", limit)
    if useful is None:
        panels.empty(message)


def _with_overlay(
    useful: Gauge | None, attack: Gauge | None, outcome: Outcome, overlay: Outcome
) -> tuple[Gauge | None, Gauge | None]:
    """The gauges with dotted marks for the run that is kept."""
    measure = overlay.cost.metric
    if useful is not None and overlay.cost.has_value and measure.id == outcome.cost.metric.id:
        mean = float(overlay.cost.private.mean())
        useful = replace(useful, marks=[*useful.marks, Mark(f"A {words.metric_value(measure, mean)}", mean, "dot")])
    if attack is not None and overlay.attack is not None:
        reached = overlay.attack.accuracy
        attack = replace(attack, marks=[*attack.marks, Mark(f"A {words.percent(reached)}", reached, "dot")])
    return useful, attack


def _useful(outcome: Outcome) -> tuple[Gauge | None, str]:
    """The metric with the parts of its cost, and the same in words; no gauge where it has no value."""
    cost, measure = outcome.cost, outcome.cost.metric
    if not cost.has_value:
        return None, f"{measure.label} has no value here: {words.NO_VALUE[measure.needs]}. Choose another metric in the sidebar."

    def value(number: float) -> str:
        return words.metric_value(measure, number)

    mean, noiseless, best = cost.mean, float(cost.noiseless.mean()), cost.non_private
    shown = words.parts(cost)
    parts = [Part("", 0.0, mean, "base")] if measure.higher_is_better else [Part("", 0.0, best, "base")]
    parts += [Part(shown["noise"], mean, noiseless, "noise"), Part(shown["training"], noiseless, best, "training")]
    marks = [
        Mark(f"commoner class {value(cost.majority)}", cost.majority, "dot"),
        Mark(f"private {value(mean)}", mean),
        Mark(f"without privacy {value(best)}", best),
    ]
    noisy = outcome.calibration.noise_scale > 0
    spread = (
        f" {words.spread_text(cost.private, shares=measure.shares)} (one standard deviation)"
        if noisy and len(cost.private) > 1
        else ""
    )
    message = f"Private {measure.within} {value(mean)}{spread}, {words.privacy_cost(cost)}: {words.split(cost)}."
    if not measure.higher_is_better:
        message += " Lower is better."
    if np.isnan(cost.majority):
        message += " The majority label alone has no value."
    return Gauge(f"{measure.label} on test rows", parts, [mark for mark in marks if not np.isnan(mark.at)]), message


def _attacked(outcome: Outcome) -> tuple[Gauge | None, str]:
    """The best possible attack and the same in words; none where no bound is proved."""
    if outcome.attack is None:
        return None, ""
    reached = outcome.attack.accuracy
    row = Gauge(
        "Best possible attack on one person",
        [Part("", 0.5, reached, "attack")],
        [Mark("coin toss 50 %", 0.5, "dot"), Mark(f"at most {words.percent(reached)}", reached)],
    )
    return row, (
        f"An attacker who knows all other rows guesses whether one person was there: right {words.percent(reached)} at most, "
        f"by {outcome.attack.basis}."
    )


def actions(spec: RunSpec) -> None:
    """Links to the next steps with this run."""
    with st.container(horizontal=True, vertical_alignment="center", key="buttons-next"):
        links.page_link("Audit", "Attack this")
        links.page_link("Trade-off", "Compare methods")
        links.claims_about(spec.mechanism)
        with st.popover("Share"):
            st.markdown("This address holds the whole run:")
            st.code(address_text(spec.to_query() | metric.address_of_choice()), language=None, wrap_lines=True)


def lines(outcome: Outcome, theme: Theme, overlay: Outcome | None = None) -> None:
    """Points and decision lines.

    Args:
        overlay: a run that is kept for comparison.
    """

    def picture(narrow: bool) -> Chart:
        drawn = decision_boundary.plane_of(outcome.spec, *outcome.theta.shape)
        private = drawn.scores(outcome.theta)
        crossed = int(((private.max(axis=(1, 2)) > 0) & (private.min(axis=(1, 2)) < 0)).sum())
        summary = (
            f"{len(drawn.labels)} training rows, {int(drawn.outlier.sum())} of them ringed outliers. The thick line is the model "
            f"without privacy; each thin line is one private model. {crossed} of {len(outcome.theta)} have a boundary inside the "
            + ("plot." if crossed == len(outcome.theta) else "plot; the others give every point the same label.")
        )
        summary += "" if drawn.view.exact else " A line is where the scores, fitted by a plane over the two axes, change sign."
        frame = drawn.dataset.frame.loc[drawn.dataset.frame.index[drawn.view.ids]]
        table = partial(tables.join_readable, {"row id": drawn.view.ids}, frame)
        return Chart(pictures.plane(outcome, theme, overlay, narrow=narrow), summary, table)

    charts.still_chart("lines", picture, outcome.key, overlay and overlay.key, of=outcome.spec, rows=True)


def training(outcome: Outcome, theme: Theme) -> None:
    """The decision lines after each step of training, with a button that plays them."""
    path, fresh = tasks.observe("steps", "Training step by step", lambda _: trajectory(outcome.spec), of=outcome.spec)
    if not fresh:
        return
    if path is None:
        panels.empty("Only the last model of this method is released, so there are no public steps to show. DP-GD has them.")
        return
    drawn = decision_boundary.plane_of(outcome.spec, *outcome.theta.shape)
    iterates = np.stack([drawn.scores(theta) for theta in path.theta])
    measure = outcome.cost.metric
    means = path.measure(measure.id).mean(axis=1)
    names = [f"step {k} of {path.total}: {words.metric_value(measure, a)}" for k, a in zip(path.steps, means, strict=True)]
    figure = plane.training(pictures.plane(outcome, theme), drawn.axes, iterates, names, theme)
    start, middle, end = (words.metric_value(measure, float(means[k])) for k in (0, len(means) // 2, -1))
    summary = (
        f"Training in {path.total} steps with the noise of the whole run, {path.theta.shape[1]} private models. The mean test "
        f"{measure.within} is {start} at the start, {middle} after {path.steps[len(means) // 2]} steps and {end} at the end."
    )
    charts.chart(figure, "training", summary, rows=True, of=outcome.spec)


def first_picture(outcome: Outcome, theme: Theme, overlay: Outcome | None) -> None:
    """The first picture: training step by step, or decision lines."""
    if TRAINING.value():
        training(outcome, theme)
    else:
        lines(outcome, theme, overlay)
    panels.privacy_warning("The points are the data, and the thick line was trained without noise.")
