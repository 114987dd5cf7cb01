"""The answer and the pictures of one run; the first page puts them below each other, and what explains them in `details`."""

from __future__ import annotations

from urllib.parse import urlencode

import numpy as np
import streamlit as st

from dpviz.dashboard.kit import charts, panels, progress, words
from dpviz.dashboard.one_run.details import per_draw
from dpviz.dashboard.shell import links, sidebar
from dpviz.dashboard.work import cached_runs, look_ahead
from dpviz.dashboard.work.cached_runs import Outcome
from dpviz.datasets import load_dataset
from dpviz.datasets.table.encoding import add_intercept
from dpviz.experiments.spec import RunSpec
from dpviz.figures import accuracy, plane
from dpviz.figures.gauges import Gauge, Mark, Part, gauges
from dpviz.figures.style import Theme
from dpviz.models import Rows, get_model


def run(spec: RunSpec) -> Outcome | None:
    """The outcome of a run; None where there is none, said so."""
    done = progress.working(spec, cached_runs.outcome)
    if done is not None:
        look_ahead.prepare(spec, sidebar.EPSILONS)
    return done


def starts() -> None:
    """Three ways to begin."""
    with st.container(horizontal=True, key="buttons-start"):
        links.to(links.FIRST, "See it", dataset="teaching")
        links.to("Data", "Use my data")
        links.to("Paper claims", "Test a paper")


def headline(done: Outcome) -> None:
    """The answer in one sentence, with the badge of its guarantee."""
    sentence = words.headline(done.spec.epsilon, done.cost, done.calibration, done.attack)
    colour = words.LABELS[done.calibration.status][2]
    with st.container(key="headline"):
        st.markdown(f"{words.markdown(sentence)} :{colour}-badge[{words.markdown(words.guarantee(done.calibration))}]")
    mean, floor = float(done.accuracy.mean()), done.majority.accuracy
    if mean < floor - 0.0005:
        guess = f"⚠ **Worse than guessing**: the majority label alone is right {words.percent(floor)}."
        st.markdown(f"{guess} {_remedy(done)}")


def _remedy(done: Outcome) -> str:
    """What most of the cost comes from, and the setting that would help."""
    if done.cost.noise >= done.cost.training:
        return "Most is lost to noise: raise ε, use more rows, or choose a method with less noise."
    return "Most is lost to training: more steps or longer ones help, below Advanced in the sidebar."


def scale(done: Outcome, theme: Theme) -> None:
    """Accuracy with the parts of its cost, and the best possible attack, on one scale."""
    cost, mean, floor = done.cost, float(done.accuracy.mean()), done.majority.accuracy
    noiseless = float(cost.noiseless.mean())
    parts = [
        Part("private model", 0.0, mean, "base"),
        Part("noise", mean, noiseless, "noise"),
        Part("training", noiseless, cost.non_private, "training"),
    ]
    marks = [
        Mark(f"majority {words.percent(floor)}", floor, "dot"),
        Mark(f"private {words.percent(mean)}", mean),
        Mark(f"no noise {words.percent(noiseless)}", noiseless),
        Mark(f"non-private {words.percent(cost.non_private)}", cost.non_private),
    ]
    spread = f" {words.spread(done.accuracy)}" if done.calibration.noise_scale > 0 else ""
    summary = [
        f"Private accuracy {words.percent(mean)}{spread}; noise takes {words.part(cost.noise)}, training "
        f"{words.part(cost.training)} of the points up to the non-private {words.percent(cost.non_private)}."
    ]
    if cost.ordinary is not None and cost.preparation is not None:
        parts.append(Part("preparation of the rows", cost.non_private, cost.ordinary, "preparation"))
        summary.append(
            f"Scaling rows into the unit ball takes {words.part(cost.preparation)}: an ordinary logistic regression on "
            f"standardised columns is right {words.percent(cost.ordinary)}."
        )
    rows = [Gauge("Accuracy on test rows", parts, marks)]
    if done.attack is not None:
        reached = done.attack.accuracy
        label = f"at most {words.percent(reached)}"
        rows.append(
            Gauge(
                "Best possible attack on one person",
                [Part("above a coin toss", 0.5, reached, "attack")],
                [Mark("coin toss 50 %", 0.5, "dot"), Mark(label, reached)],
            )
        )
        summary.append(
            f"Somebody who knows all other rows guesses whether one person was there: right {words.percent(reached)} at most, "
            f"by {done.attack.basis}."
        )
    fig = gauges(rows, charts.method_look(done.spec.mechanism, theme), theme)
    charts.chart(fig, "cost", " ".join(summary), lambda: done.cost.table())


def actions(spec: RunSpec) -> None:
    """What to do next with this run."""
    with st.container(horizontal=True, key="buttons-next"):
        links.to("Audit", "Attack this")
        links.to("Trade-off", "Compare methods")
        links.claims_about(spec.mechanism)
        with st.popover("Share"):
            st.markdown("This address holds the whole run:")
            st.code(f"?{urlencode(spec.to_query())}" if spec.to_query() else "/", language=None, wrap_lines=True)


def accuracies(done: Outcome, theme: Theme) -> None:
    """Accuracy of every noise draw between the two baselines."""
    method = charts.method_look(done.spec.mechanism, theme)
    fig = accuracy.accuracy_distribution(
        done.accuracy, done.non_private.accuracy, done.majority.accuracy, method, theme, expected=done.expected_accuracy
    )
    expected = "" if done.expected_accuracy is None else f", {words.percent(done.expected_accuracy)} expected over all draws"
    summary = (
        f"Each dot is one noise draw, the triangle their mean: {words.percent(float(done.accuracy.mean()))} "
        f"({words.spread(done.accuracy)}, one standard deviation){expected}; "
        f"non-private {words.percent(done.non_private.accuracy)}, majority {words.percent(done.majority.accuracy)}."
    )
    charts.chart(fig, "accuracy", summary, lambda: per_draw(done))


def lines(done: Outcome, theme: Theme) -> bool:
    """Points and decision lines of two-dimensional sets; False, and nothing drawn, for others."""
    dataset = load_dataset(done.spec.dataset, intercept=done.spec.intercept)
    if dataset.plane is None:
        return False
    model = get_model(done.spec.model)
    # lines of linear models are exact on any grid; curved ones need a fine one, within bounds for many draws
    straight = done.theta.shape[1] == len(dataset.feature_names)
    fine = min(161, int((5e5 / len(done.theta)) ** 0.5))
    axis = np.linspace(-1.05, 1.05, 43 if straight else max(43, fine))
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    rows = Rows(add_intercept(grid) if dataset.intercept else grid, np.ones(len(grid)))
    assert done.non_private.theta is not None
    theta = np.vstack([done.theta, done.non_private.theta])
    scores = model.scores(theta, rows).T.reshape(len(theta), len(axis), len(axis))
    points = dataset.frame[list(dataset.plane)].to_numpy(float)
    ring = dataset.frame["kind"].eq("outlier").to_numpy() if "kind" in dataset.frame else np.zeros(dataset.n, bool)
    fig = plane.decision_lines(
        points,
        dataset.y,
        ring,
        (axis, axis),
        scores[:-1],
        scores[-1],
        charts.method_look(done.spec.mechanism, theme),
        theme,
        names=dataset.plane,
        classes=dataset.label_names,
    )
    crossed = int(((scores[:-1].max(axis=(1, 2)) > 0) & (scores[:-1].min(axis=(1, 2)) < 0)).sum())
    summary = (
        f"{dataset.n} points, {int(ring.sum())} of them ringed outliers. The thick line is the non-private model; each thin "
        f"line is one noise draw.{'' if straight else ' A network’s line may bend and have several pieces.'} "
        f"{crossed} of {len(done.theta)} draws cut the picture"
        + ("." if crossed == len(done.theta) else "; the others call every point the same.")
    )
    charts.chart(fig, "lines", summary, lambda: dataset.frame.reset_index(names="row id"))
    panels.not_private("The points are the data, and the thick line was trained without noise.")
    return True
