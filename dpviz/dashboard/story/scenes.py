"""The five scenes: a title, a sentence or two, one control, one picture, and a link to the page that takes it apart."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from dpviz.auditing import watch_run
from dpviz.common.progress import Monitor
from dpviz.dashboard.components import charts, panels
from dpviz.dashboard.frame import address, links, metric, pinned, sidebar
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.dashboard.story import playing
from dpviz.dashboard.story.settings import MOST, PRESENT, SCENE, SCENES, TRAININGS, WHO_LEAVES
from dpviz.experiments.run.setup import setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import decision_boundary, inspected, story
from dpviz.figures import plane
from dpviz.figures import story as pictures
from dpviz.figures.style import Theme
from dpviz.mechanisms import HasRule, NoisesRows
from dpviz.reporting import words
from dpviz.reporting.pictures import method_look
from dpviz.spending.of_run import totals

GRID = sidebar.EPSILONS[::5]  # four budgets for each factor of ten
GAMES = 200  # models trained with the person, and as many without
_LOOK = Path(__file__).with_name("story.css").read_text(encoding="utf-8")
_PRESENTED = Path(__file__).with_name("presenter.css").read_text(encoding="utf-8")
_SCROLL = """<script>setTimeout(() => document.querySelector(".st-key-scene-{0}")?.scrollIntoView({{block: "start"}}), 400)</script>"""
_ARRIVED = "dpviz.scene"  # the scene that the browser was scrolled to


def look(theme: Theme) -> None:
    """The look of the page, and that of the presenter where it is on; scrolls to the scene that the address names."""
    css = _LOOK + (_PRESENTED if PRESENT.value() else "")
    st.html(f"<style>{css.replace('INK', theme.ink).replace('PAPER', theme.paper)}</style>")
    wanted = SCENE.value()
    if wanted and st.session_state.get(_ARRIVED) != wanted and not PRESENT.value():
        st.html(_SCROLL.format(wanted), unsafe_allow_javascript=True)
    st.session_state[_ARRIVED] = wanted


class Scene:
    """One scene as a context: nothing is drawn where another one is presented."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.shown = not PRESENT.value() or int(SCENE.value() or 1) == number

    def start(self, *sentences: str) -> None:
        """Number, title and sentences."""
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"scene-head-{self.number}"):
            links.to(links.FIRST, f"{self.number}", scene=str(self.number))
            st.header(SCENES[str(self.number)], anchor=False)
        for one in sentences:
            st.markdown(words.markdown(one))


def draw(outcome: Outcome, theme: Theme) -> None:
    """All scenes, or the one that is presented."""
    scenes = (line_moves, costs, one_leaves, someone_bets, twice)
    for number, scene in enumerate(scenes, 1):
        one = Scene(number)
        if one.shown:
            with st.container(key=f"scene-{number}"):
                scene(one, outcome, theme)


def _lines(outcome: Outcome, theme: Theme, **more: Any) -> Any:
    """The plane with decision lines."""
    drawn = decision_boundary.plane_of(outcome.spec, *outcome.theta.shape)
    assert outcome.non_private.theta is not None
    without = more.pop("without", None)
    return plane.decision_lines(
        drawn.view.points,
        drawn.labels,
        drawn.outlier & False,
        drawn.axes,
        drawn.scores(outcome.theta),
        drawn.scores(outcome.non_private.theta[None])[0],
        replace(method_look(outcome.spec.mechanism, theme), name="private models"),
        theme,
        names=drawn.view.names,
        classes=drawn.dataset.label_names,
        narrow=charts.narrow(),
        height=380,
        without=None if without is None else drawn.scores(without)[0],
        **more,
    )


def line_moves(scene: Scene, outcome: Outcome, theme: Theme) -> None:
    """Private models as lines in the plane, and the rows that received noise."""
    spec, kept = outcome.spec, None
    noises = isinstance(spec.build(), NoisesRows | HasRule)
    if noises:
        kept, fresh = tasks.observe("story-rows", "Finding who received noise", partial(inspected.inspect, spec), of=spec, kept=False)
        kept = kept if fresh else None
    marked = "" if kept is None or kept.ever is None else f" Diamonds: {int(kept.ever.sum()):,} of {len(kept.ever):,} rows received noise."
    scene.start(f"Each thin line is one private model. A smaller ε means more noise, and the lines fan out.{marked}")
    ids = decision_boundary.plane_of(spec, 1, outcome.theta.shape[1]).view.ids
    mask = None if kept is None or kept.ever is None else kept.ever[np.searchsorted(kept.row_ids, ids)]
    summary = f"{len(ids):,} training rows; the thick line is the model without privacy, each thin line one of {len(outcome.theta)} private models."
    charts.chart(_lines(outcome, theme, noised=mask), "lines", summary + marked, rows=True, still=True, of=spec, wide=True)
    other = None if noises else story.noising_run(spec)
    with st.container(horizontal=True, key="buttons-scene-1"):
        if other is not None:
            st.button("Show a method that puts noise on rows", on_click=address.put, args=(other,), key="noising")
        links.to("One model", "Take this model apart")


def costs(scene: Scene, outcome: Outcome, theme: Theme) -> None:
    """The metric and the odds of an attack over ε, with a marker at the chosen one."""
    spec, cost = outcome.spec, outcome.cost
    measure = cost.metric
    scene.start()
    panels.headline(*words.headline(words.title(spec), cost, outcome.calibration, outcome.attack), of=spec)
    work = partial(story.cost_over, replace(spec, epsilon=1.0), GRID, measure.id)
    curve, _ = tasks.observe("story-cost", "Training over ε", work, of=replace(spec, epsilon=1.0), given=measure.id)
    if curve is None or not cost.there or not len(curve):
        return
    levels = [pictures.Level("without privacy", cost.non_private, theme.ink)]
    if not np.isnan(cost.majority):
        levels.append(pictures.Level("always the commoner class", cost.majority, theme.majority, "dash"))
    right = None if outcome.attack is None else outcome.attack.accuracy
    chosen, look_of = (spec.epsilon, cost.mean, right), method_look(spec.mechanism, theme)
    figure = pictures.cost_over(curve, levels, chosen, look_of, theme, title=measure.within, shares=measure.shares)
    first, last = (words.measured(measure, float(v)) for v in curve["mean"].iloc[[0, -1]])
    summary = (
        f"Test {measure.within} over ε, mean and 10 to 90 % of the private models: {first} at ε = {curve['epsilon'].iloc[0]:g}, "
        f"{last} at ε = {curve['epsilon'].iloc[-1]:g}. The dots are at ε = {words.three(spec.epsilon)}."
    )
    charts.chart(figure, "cost", summary, lambda: curve, still=True, of=spec, wide=True)
    with st.container(horizontal=True, key="buttons-scene-2"):
        links.to("Trade-off", "Compare all methods")


def one_leaves(scene: Scene, outcome: Outcome, theme: Theme) -> None:
    """The model without privacy with a person and retrained without, beside what the noise moves."""
    spec = outcome.spec
    scene.start("Train again without one person. The dashed line is that model; the thin lines are what the noise does.")
    who = WHO_LEAVES.draw()
    if playing.plays():
        return
    if not inspected.cheap(inspected.row_influence(spec)):
        panels.empty("Retraining this network takes long. The page Person does it when asked.")
        return
    work = partial(story.departure, spec, who)
    gone, _ = tasks.observe("story-person", "Retraining without the person", work, of=spec, given=who, kept=False)
    if gone is None:
        return
    ids = decision_boundary.plane_of(spec, 1, outcome.theta.shape[1]).view.ids
    at = int(np.searchsorted(ids, gone.row_id))
    person = at if at < len(ids) and ids[at] == gone.row_id else None
    share = "" if not gone.noise > 0 else f" The noise moves it by {words.three(gone.noise)}."
    st.markdown(f"Row {gone.row_id} moves the model by **{words.three(gone.moved)}**.{share}")
    summary = f"Row {gone.row_id} leaves: retrained without it the parameters change by {words.three(gone.moved)}.{share}"
    figure = _lines(outcome, theme, person=person, without=gone.after)
    charts.chart(figure, "person", summary, rows=True, still=True, of=spec, wide=True)
    with st.container(horizontal=True, key="buttons-scene-3"):
        links.to("Person", "Who is that?", row=str(gone.row_id))


def someone_bets(scene: Scene, outcome: Outcome, theme: Theme) -> None:
    """What an attacker sees of models that were trained with the person and without."""
    spec, who = replace(outcome.spec, seeds=1), WHO_LEAVES.value()
    limit = "" if outcome.attack is None else f" No attacker is right more often than {words.percent(outcome.attack.accuracy)}."
    scene.start(f"An attacker sees one private model and bets: was this person in the data?{limit}")
    if playing.plays():
        return

    def work(monitor: Monitor) -> Any:
        row = story.leaver(spec, who)
        *_, last = watch_run(spec, "without", row, None, GAMES, monitor=monitor, looks=1)
        return last

    played, _ = tasks.observe("story-bet", "Training models with and without the person", work, of=spec, given=who)
    if played is None:
        return
    _, result = played
    low, high = result.guessed_right_limits
    st.markdown(
        f"In {2 * GAMES} models this attacker is right **{words.percent(result.guessed_right)}** of the time "
        f"({words.percent(low)} to {words.percent(high)}); a coin is right half of the time."
    )
    summary = (
        f"Histograms of what an attacker measures on {GAMES} models trained with the person and {GAMES} without: right "
        f"{words.percent(result.guessed_right)} of the time.{limit}"
    )
    figure = pictures.two_worlds(result.cloud, ("with this person", "without"), theme)
    charts.chart(figure, "bet", summary, lambda: result.cloud, still=True, of=outcome.spec, wide=True)
    with st.container(horizontal=True, key="buttons-scene-4"):
        links.to("Audit", "Attack it yourself")
        links.to("Guarantees", "What is proved?")


def twice(scene: Scene, outcome: Outcome, theme: Theme) -> None:
    """What several trainings on the same people cost together."""
    spec = outcome.spec
    scene.start("Every training on the same people spends privacy. Budgets add up, though to less than their plain sum.")
    count = int(TRAININGS.draw(marks=range(1, MOST + 1)))

    def work(_: Monitor) -> list[float]:
        return totals(spec.build(), setting_of(spec), outcome.calibration, MOST)

    sums, fresh = tasks.observe("story-total", "Adding up", work, of=spec)
    if not sums:
        if fresh:
            panels.empty("Nothing is proved about this method, so nothing can be added up.")
        return
    one = outcome.calibration.proved_budget
    assert one is not None
    said = f"{count} trainings cost ε = {words.three(sums[count - 1])} together."
    figure = pictures.together(sums, count, one.epsilon, method_look(spec.mechanism, theme), theme)
    charts.chart(figure, "total", f"{said} Their plain sum is {words.three(count * one.epsilon)}.", still=True, of=spec, wide=True)
    with st.container(horizontal=True, key="buttons-scene-5"):
        links.to("Accounting", "How budgets add up")


def entries() -> None:
    """The two ways on."""
    with st.container(horizontal=True, key="entries"):
        links.to("Your data", "Use my data →", upload="true")
        links.to("Lessons", "Lessons →")
