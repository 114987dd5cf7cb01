"""The note that a model is no better than the majority label, or loses much to training: the same on every page."""

from functools import partial

import streamlit as st

from dpviz.dashboard.frame import address, metric
from dpviz.dashboard.jobs import tasks, watching
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.majority_baseline import majority_baseline, training_loss_note
from dpviz.experiments.studies.trials import trials
from dpviz.reporting import words

_SOON = 0.3  # seconds: a run that is done by then needs no second look


def say(outcome: Outcome) -> None:
    """The note about a run; nothing where its models are better."""
    spec = outcome.spec
    if spec.mechanism == "majority":
        return
    poor = majority_baseline(outcome.cost, spec)
    if poor is None:
        short = training_loss_note(outcome.cost, spec, resolve(spec).lam)
        if short is not None:
            st.markdown(f"⚠ {words.markdown(short)}")
        return
    measure = outcome.cost.metric
    says = "is right" if measure.id == "accuracy" else f"has {measure.within}"
    what = "Worse than guessing" if poor.worse else "No better than guessing"
    guess = (
        f"⚠ **{what}**: the majority label alone {says} {words.metric_value(measure, outcome.cost.majority)} on the test rows."
    )
    with st.container(key="guessing"):
        st.markdown(f"{guess} {words.markdown(poor.fix)}")


def draw_trial(outcome: Outcome) -> None:
    """A trial, on request, of another setting for a run that `say` speaks of: advice is given where it helps."""
    spec, measure = outcome.spec, outcome.cost.metric
    poor = majority_baseline(outcome.cost, spec)
    if spec.mechanism == "majority" or not (poor or training_loss_note(outcome.cost, spec, 0.0)):
        return
    ask, work = "Does another setting help? Try it", partial(trials, spec, measure.id)
    found = tasks.current_result("trials", "Trying other settings", work, of=spec, given=measure.id, ask=ask)
    if found is None:
        return
    best = next((trial for trial in found if trial.helps), None)
    if best is None:
        st.markdown(
            f"None of {len(found)} other settings (longer or shorter training, other λ) is better: this is privacy’s cost."
        )
        return
    gain = words.amount(measure, best.gain) + (" points" if measure.shares else "")
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.markdown(
        words.markdown(
            f"Of {len(found)} other settings, {best.change} is best: {measure.within} {words.metric_value(measure, best.mean)}, "
            f"{gain} better with the same noise. It was found on the test rows, which ε does not cover."
        )
    )
    right.button("Use it", on_click=address.set_run, args=(best.spec,), key="use-trial")


def watch(spec: RunSpec) -> None:
    """The note on pages that train no such model themselves: the run is computed beside the page."""
    task = watching.watch(tasks.training(spec), "watched.guessing")
    if not watching.is_over(task):
        watching.wait(task, _SOON)
    tasks.follow(task, lambda outcome: say(metric.measure_outcome(outcome)), every=1.0)
