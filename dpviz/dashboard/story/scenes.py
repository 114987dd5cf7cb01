"""The five scenes: a title, a sentence or two, one control, one picture, and a link to the page that takes it apart."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from dpviz.auditing import watch_run
from dpviz.common.progress import Monitor
from dpviz.dashboard.components import charts, panels
from dpviz.dashboard.frame import address, links, sidebar
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.dashboard.story import playing
from dpviz.dashboard.story.settings import BETS, MOST, PRESENT, SCENE, SCENES, TRAININGS, WHO_LEAVES
from dpviz.experiments.run.setup import setting_of, setup_for
from dpviz.experiments.studies import decision_boundary, inspected, story
from dpviz.figures import story as pictures
from dpviz.figures.style import Look, Theme
from dpviz.mechanisms import HasRule, NoisesRows
from dpviz.reporting import Chart, words
from dpviz.reporting.pictures import method_look, plane
from dpviz.spending.of_run import totals

GRID = sidebar.EPSILONS[::10]  # two budgets for each factor of ten: each costs as much as a run
GAMES = 200  # models trained with the person, and as many without
_LOOK = Path(__file__).with_name("story.css").read_text(encoding="utf-8")
_PRESENTED = Path(__file__).with_name("presenter.css").read_text(encoding="utf-8")
_SCROLL = (
    """<script>setTimeout(() => document.querySelector(".st-key-scene-{0}")?.scrollIntoView({{block: "start"}}), 400)</script>"""
)
_ARRIVED = "dpviz.scene"  # the scene that the browser was scrolled to


def look(theme: Theme) -> None:
    """The look of the page, and that of the presenter where it is on; scrolls to the scene that the address names."""
    css = _LOOK + (_PRESENTED if PRESENT.value() else "")
    st.html(f"<style>{css.replace('INK', theme.ink).replace('PAPER', theme.paper)}</style>")
    wanted = SCENE.value()
    if wanted and st.session_state.get(_ARRIVED) != wanted and not PRESENT.value():
        st.html(_SCROLL.format(wanted), unsafe_allow_javascript=True)
    st.session_state[_ARRIVED] = wanted


def draw(outcome: Outcome, theme: Theme) -> None:
    """All scenes, or the one that is presented."""
    presented = int(SCENE.value() or 1) if PRESENT.value() else None
    for number, scene in enumerate((line_moves, costs, one_leaves, attacker_scene, composition_scene), 1):
        if presented in (None, number):
            with st.container(key=f"scene-{number}"):
                with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"scene-head-{number}"):
                    links.page_link(links.FIRST, f"{number}", scene=str(number))
                    st.header(SCENES[str(number)], anchor=False)
                scene(outcome, theme)


def _lines(outcome: Outcome, theme: Theme, summary: str, **more: Any) -> Chart:
    """The plane with decision lines."""
    return Chart(plane(outcome, theme, height=380, rings=False, **more), summary)


def line_moves(outcome: Outcome, theme: Theme) -> None:
    """Private models as lines in the plane, and the rows that received noise."""
    spec, kept = outcome.spec, None
    noises = isinstance(spec.build(), NoisesRows | HasRule)
    if noises:
        kept = tasks.current_result(
            "story-rows", "Finding who received noise", partial(inspected.inspect, spec), of=spec, kept=False
        )
    marked = (
        ""
        if kept is None or kept.ever is None
        else f" Diamonds: {int(kept.ever.sum()):,} of {len(kept.ever):,} rows received noise."
    )
    panels.text(f"Each thin line is one private model. A smaller ε means more noise, and the lines fan out.{marked}")

    def picture(narrow: bool) -> Chart:
        ids = decision_boundary.plane_of(spec, 1, outcome.theta.shape[1]).view.ids
        mask = None if kept is None or kept.ever is None else kept.ever[np.searchsorted(kept.row_ids, ids)]
        drawn = f"each thin line one of {len(outcome.theta)} private models."
        summary = f"{len(ids):,} training rows; the thick line is the model without privacy, {drawn}{marked}"
        return _lines(outcome, theme, summary, narrow=narrow, noised=mask)

    charts.still_chart("lines", picture, outcome.key, marked, of=spec, rows=True, wide=True)
    other = None if noises else story.noising_run(spec)
    with st.container(horizontal=True, vertical_alignment="center", key="buttons-scene-1"):
        if other is not None:
            st.button("Show a method that puts noise on rows", on_click=address.set_run, args=(other,), key="noising")
        links.page_link("One model", "Take this model apart")


def costs(outcome: Outcome, theme: Theme) -> None:
    """The metric and the odds of an attack over ε, with a marker at the chosen one."""
    spec, cost = outcome.spec, outcome.cost
    measure = cost.metric
    panels.headline(*words.headline(words.title(spec), cost, outcome.calibration, outcome.attack), of=spec)
    work = partial(story.cost_over, replace(spec, epsilon=1.0), GRID, measure.id)
    curve = tasks.current_result(
        "story-cost", "Training over ε", work, of=replace(spec, epsilon=1.0), given=measure.id, short=False
    )
    if curve is None or not cost.has_value or not len(curve):
        return
    right = None if outcome.attack is None else outcome.attack.accuracy

    def picture(_: bool) -> Chart:
        levels = [(cost.non_private, Look("without privacy", theme.ink, "solid", ""))]
        if not np.isnan(cost.majority):
            levels.append((cost.majority, Look("always the commoner class", theme.majority, "dash", "")))
        chosen, look_of = (spec.epsilon, cost.mean, right), method_look(spec.mechanism, theme)
        figure = pictures.cost_over(curve, levels, chosen, look_of, theme, title=measure.within, shares=measure.shares)
        first, last = (words.metric_value(measure, float(v)) for v in curve["mean"].iloc[[0, -1]])
        summary = (
            f"Test {measure.within} over ε, mean and 10 to 90 % of the private models: {first} at ε = "
            f"{curve['epsilon'].iloc[0]:g}, {last} at ε = {curve['epsilon'].iloc[-1]:g}. The dots are at ε = "
            f"{words.three(spec.epsilon)}."
        )
        return Chart(figure, summary, lambda: curve)

    charts.still_chart("cost", picture, outcome.key, measure.id, of=spec, wide=True)
    with st.container(horizontal=True, key="buttons-scene-2"):
        links.page_link("Trade-off", "Compare all methods")


def one_leaves(outcome: Outcome, theme: Theme) -> None:
    """The model without privacy with a person and retrained without, beside what the noise moves."""
    spec = outcome.spec
    panels.text("Train again without one person. The dashed line is that model; the thin lines are what the noise does.")
    who = WHO_LEAVES.draw(label_visibility="collapsed")
    if playing.plays():
        return
    influence = inspected.row_influence(spec)
    if not influence.at_minimum:
        panels.empty("Without privacy this network has not reached a minimum, so retraining moves it whoever leaves.")
        return
    if not inspected.cheap(influence):
        panels.empty("Retraining this network takes long. The page Person does it when asked.")
        return
    work = partial(story.departure, spec, outcome.theta, who)
    gone = tasks.current_result("story-person", "Retraining without the person", work, of=spec, given=who, kept=False)
    if gone is None:
        return
    share = "" if not gone.noise > 0 else f", and the noise by {words.three(gone.noise)}"
    st.markdown(
        f"{words.markdown(inspected.row_name(setup_for(spec).dataset, gone.row_id))} moves the parameters by "
        f"**{words.three(gone.moved)}**{share} (Euclidean distance)."
    )

    def picture(narrow: bool) -> Chart:
        ids = decision_boundary.plane_of(spec, 1, outcome.theta.shape[1]).view.ids
        at = int(np.searchsorted(ids, gone.row_id))
        person = at if at < len(ids) and ids[at] == gone.row_id else None
        summary = f"Row {gone.row_id} leaves: retrained without it the parameters change by {words.three(gone.moved)}{share}."
        return _lines(outcome, theme, summary, narrow=narrow, person=person, without=gone.after)

    charts.still_chart("person", picture, outcome.key, who, of=spec, rows=True, wide=True)
    with st.container(horizontal=True, key="buttons-scene-3"):
        links.page_link("Person", "Who is that?", row=str(gone.row_id))


def attacker_scene(outcome: Outcome, theme: Theme) -> None:
    """Distributions that an attacker sees with the person and without: the worst possible ones, or those of attacked models."""
    spec, who, attack = replace(outcome.spec, seeds=1), WHO_LEAVES.value(), outcome.attack
    limit = "" if attack is None else f" No attacker is right more often than {words.percent(attack.accuracy)}."
    panels.text(f"An attacker sees one private model and bets: was this person in the data?{limit}")
    bets = BETS.draw() and not playing.plays()
    if bets:

        def work(monitor: Monitor) -> Any:
            row = int(setup_for(spec).split.train[story.leaver(spec, who)])
            *_, last = watch_run(spec, "without", row, None, GAMES, monitor=monitor, looks=1)
            return last

        played = tasks.current_result("story-bet", "Training models with and without the person", work, of=spec, given=who)
        if played is None:
            return
        cloud, result = played[1].cloud, played[1]
        low, high = result.guessed_right_limits
        summary = f"In {2 * GAMES} models this attacker is right {words.percent(result.guessed_right)} of the time"
        st.markdown(f"{summary} ({words.percent(low)} to {words.percent(high)}); a coin is right half of the time.")
    elif attack is None:
        panels.empty("Nothing is proved about this method, so no limit can be drawn. Attack it to see what is found.")
        return
    else:
        cloud, summary = story.best_bet(attack.accuracy), "What the best possible attacker would measure"

    def picture(_: bool) -> Chart:
        figure = pictures.two_histograms(cloud, ("with this person", "without"), theme)
        return Chart(figure, f"{summary}: histograms with the person and without.{limit}", lambda: cloud)

    charts.still_chart("bet", picture, outcome.key, who, bets, of=outcome.spec, wide=True)
    with st.container(horizontal=True, key="buttons-scene-4"):
        links.page_link("Audit", "Attack it yourself")
        links.page_link("Guarantees", "What is proved?")


def composition_scene(outcome: Outcome, theme: Theme) -> None:
    """The total epsilon of several trainings on the same people."""
    spec = outcome.spec
    panels.text("Every training on the same people spends privacy, and budgets add up.")
    count = int(TRAININGS.draw(marks=range(1, MOST + 1), label_visibility="collapsed"))
    one = outcome.calibration.proved_budget
    if one is None:
        panels.empty("Nothing is proved about this method, so nothing can be added up.")
        return
    work = partial(totals, spec.build(), setting_of(spec), outcome.calibration, MOST)
    sums = tasks.current_result("story-total", "Adding up", work, of=spec, given=MOST)
    if sums is None:
        return
    total = sums[count - 1]
    said = f"{count} trainings cost ε = {words.three(total)} together."
    if not math.isfinite(total):
        said = f"At this δ no ε holds for {count} trainings together: the δ of every training adds up."
        st.markdown(said)

    def picture(_: bool) -> Chart:
        figure = pictures.total_bars(sums, count, one.epsilon, method_look(spec.mechanism, theme), theme)
        return Chart(figure, f"{said} Their plain sum is {words.three(count * one.epsilon)}.")

    charts.still_chart("total", picture, outcome.key, count, of=spec, wide=True)
    with st.container(horizontal=True, key="buttons-scene-5"):
        links.page_link("Accounting", "How budgets add up")


def entries() -> None:
    """The two ways on."""
    with st.container(horizontal=True, key="entries"):
        links.page_link("Data", "Use my data →", upload="true")
        links.page_link("Lessons", "Lessons →")
