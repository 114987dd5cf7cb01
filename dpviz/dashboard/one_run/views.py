"""The answer and the pictures of one run; the first page puts them below each other, and what explains them in `details`."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import charts, panels, recorder, tables
from dpviz.dashboard.frame import guessing, links, metric, sidebar
from dpviz.dashboard.jobs import cached_runs, tasks, watching
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.dashboard.one_run import playing
from dpviz.dashboard.one_run.settings import TRAINING
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import decision_boundary
from dpviz.figures.gauges import Gauge, Mark, Part, gauges
from dpviz.figures.style import Theme
from dpviz.models import get_model
from dpviz.reporting import pictures, words
from dpviz.reporting.calls import written
from dpviz.reporting.pictures import method_look

QUICK = 0.35  # seconds of a run that a page draws before its sidebar
PATIENCE = 0.35  # seconds that the page waits for a run before it is drawn without it
ALMOST = 0.55  # the same for a run that should be there by then
#: what was shown before is paler until the new run is there
_PALE = "<style>.st-key-headline, .stMain .stPlotlyChart, .stMain .dpviz-picture {opacity: .45}</style>"


def run(spec: RunSpec) -> Outcome | None:
    """The outcome of a run, or that of the run before until it is there; None where there is none, said so."""
    last = _before()
    meanwhile = "" if last is None else f"Until then the page shows the run before: {words.title(last.spec)}."
    patience = ALMOST if _alike(last, spec, ALMOST) else PATIENCE
    outcome, fresh = tasks.result_of("run", tasks.training(spec), meanwhile=meanwhile, patience=patience)
    outcome = outcome if fresh else last
    if not fresh and outcome is not None:
        st.html(_PALE)
        recorder.close("This run was not there when the report was saved. Save it again.")
    playing.hold(not fresh and not watching.over(st.session_state["watched.run"]))  # each value is shown
    return None if outcome is None else metric.measured(outcome)


def soon(spec: RunSpec) -> bool:
    """True where a run has pictures at once: it is in memory, or a quick one that differs in ε only was just shown."""
    if cached_runs.stored(spec) is not None:
        return True
    return _alike(_before(), spec, QUICK)


def _before() -> Outcome | None:
    """The run that was shown last; None where its data has changed or gone since."""
    last: Outcome | None = tasks.before("run")
    with suppress(InvalidInput):
        if last is not None and st.session_state["observed.run"].key == tasks.training(last.spec).key:
            return last
    return None


def _alike(last: Outcome | None, spec: RunSpec, seconds: float) -> bool:
    """True where the run before differs in ε only and took at most so long."""
    return last is not None and last.seconds <= seconds and replace(last.spec, epsilon=spec.epsilon) == spec


def around(beside: DeltaGenerator, controls: sidebar.Sidebar) -> None:
    """Everything but the answer: the slider of ε, the buttons beside it, three ways to begin, and the sidebar."""
    with beside:
        playing.controls(controls.spec)
        with st.container(horizontal=True, key="buttons-start"):
            links.to(links.FIRST, "See it", dataset="teaching")
            links.to("Data", "Use my data", upload="true")
            links.to("Paper claims", "Test a paper")
    controls.draw()


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
    method = method_look(outcome.spec.mechanism, theme)
    useful, message = _useful(outcome)
    message = message if useful is None else f"{message} {words.OUTSIDE}"
    attack, limit = _attacked(outcome)
    if overlay is not None:
        useful, attack = _with_overlay(useful, attack, outcome, overlay)

    def draw(rows: list[Gauge | None], key: str, summary: str, *, shares: bool = True) -> None:
        there = [row for row in rows if row is not None]
        table = outcome.cost.table if key == "cost" else None
        if there:
            charts.chart(gauges(there, method, theme, shares=shares), key, summary, table, still=True, of=outcome.spec)

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
    if useful is not None and overlay.cost.there and measure.id == outcome.cost.metric.id:
        mean = float(overlay.cost.private.mean())
        useful = replace(useful, marks=[*useful.marks, Mark(f"A {words.measured(measure, mean)}", mean, "dot")])
    if attack is not None and overlay.attack is not None:
        reached = overlay.attack.accuracy
        attack = replace(attack, marks=[*attack.marks, Mark(f"A {words.percent(reached)}", reached, "dot")])
    return useful, attack


def _useful(outcome: Outcome) -> tuple[Gauge | None, str]:
    """The metric with the parts of its cost, and the same in words; no gauge where it has no value."""
    cost, measure = outcome.cost, outcome.cost.metric
    if not cost.there:
        return None, f"{measure.label} has no value here: {words.NO_VALUE[measure.needs]}. Choose another metric in the sidebar."

    def value(number: float) -> str:
        return words.measured(measure, number)

    model = get_model(outcome.spec.model)
    mean, noiseless, best = cost.mean, float(cost.noiseless.mean()), cost.non_private
    lost, shown = words.lost(cost)[1], words.parts(cost)
    shown = {name: shown[name] if lost[name] else "" for name in lost}
    parts = [Part("", 0.0, mean, "base")] if measure.higher_is_better else [Part("", 0.0, best, "base")]
    parts += [Part(shown["noise"], mean, noiseless, "noise"), Part(shown["training"], noiseless, best, "training")]
    marks = [
        Mark(f"majority {value(cost.majority)}", cost.majority, "dot"),
        Mark(f"private {value(mean)}", mean),
        Mark(f"non-private {value(best)}", best),
    ]
    noisy = outcome.calibration.noise_scale > 0
    spread = (
        f" {words.spread(cost.private, shares=measure.shares)} (one standard deviation)"
        if noisy and len(cost.private) > 1
        else ""
    )
    message = f"Private {measure.within} {value(mean)}{spread}, {words.against(cost)}: {words.split(cost)}."
    if not measure.higher_is_better:
        message += " Lower is better."
    if np.isnan(cost.majority):
        message += " The majority label alone has no value."
    if cost.ordinary is not None:
        parts.append(Part(shown["bounding rows"], best, cost.ordinary, "preparation"))
        marks.append(Mark(f"ordinary {value(cost.ordinary)}", cost.ordinary))
        message += (
            f" The ordinary model, a logistic regression on standardised columns without bounds, has {value(cost.ordinary)}. "
            f"Non-private, {value(best)}, is {'the optimum' if model.convex else words.minimum(False)} on bounded rows."
        )
        if model.id != RunSpec.model:
            message += f" “Bounding rows” also holds what changes from that model to this one, {model.label.lower()}."
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
    with st.container(horizontal=True, key="buttons-next"):
        links.to("Audit", "Attack this")
        links.to("Trade-off", "Compare methods")
        links.claims_about(spec.mechanism)
        with st.popover("Share"):
            st.markdown("This address holds the whole run:")
            st.code(written(spec.to_query() | metric.in_address()), language=None, wrap_lines=True)


def accuracies(outcome: Outcome, theme: Theme, overlay: Outcome | None = None) -> None:
    """The metric of every noise draw between the two baselines."""
    cost, measure = outcome.cost, outcome.cost.metric
    if not cost.there:
        return
    beside = overlay is not None and overlay.cost.there and overlay.cost.metric.id == measure.id
    made = pictures.accuracies(outcome, cost, theme, overlay.cost if overlay is not None and beside else None)
    charts.chart(made.figure, "accuracy", made.words, made.table, still=True, of=outcome.spec)


def lines(outcome: Outcome, theme: Theme, overlay: Outcome | None = None) -> bool:
    """Points and decision lines of two-dimensional sets; False, and nothing drawn, for others.

    Args:
        overlay: a run that is kept for comparison.
    """
    picture = decision_boundary.plane_of(outcome.spec, *outcome.theta.shape)
    if picture is None:
        return False
    private = picture.scores(outcome.theta)
    fig = playing.boundaries(picture, private, outcome, theme, overlay)
    crossed = int(((private.max(axis=(1, 2)) > 0) & (private.min(axis=(1, 2)) < 0)).sum())
    bends = "" if picture.straight else " A network’s line may bend and have several pieces."
    summary = (
        f"{picture.dataset.n} points, {int(picture.outlier.sum())} of them ringed outliers. The thick line is the non-private "
        f"model; each thin line is one noise draw.{bends} {crossed} of {len(outcome.theta)} draws have a boundary inside the plot"
        + ("." if crossed == len(outcome.theta) else "; the others give every point the same label.")
    )
    frame = picture.dataset.frame
    table = partial(tables.behind, {"row id": frame.index}, frame)
    charts.chart(fig, "lines", summary, table, rows=True, still=True, of=outcome.spec)
    panels.not_private("The points are the data, and the thick line was trained without noise.")
    return True


def first(outcome: Outcome, theme: Theme, overlay: Outcome | None = None) -> None:
    """The first picture: training step by step, decision lines, or the distribution of the metric.

    Args:
        overlay: a run that is kept for comparison.
    """
    if TRAINING.value() and playing.flat(outcome.spec):
        playing.training(outcome, theme)
    elif not lines(outcome, theme, overlay):
        accuracies(outcome, theme, overlay)
