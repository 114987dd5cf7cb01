"""Repeated cross validation of the page's methods at its ε, the way papers report accuracy."""

from dataclasses import replace

import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import panels, repeat, tables
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.trade_off import running, settings
from dpviz.dashboard.trade_off.answers import labels
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.sweeps.cells import CellStore
from dpviz.experiments.sweeps.folds import cross_validate, summarise_splits
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.reporting import words
from dpviz.reporting.calls import sweep_shell_call

FOLDS = 5  # where the run has one split


def section(view: running.View) -> None:
    """A number of repeats, a button, and means over all folds with both spreads."""
    spec, metric = view.spec, view.choices.metric
    st.subheader("Cross-validate the methods of the picture", anchor=False)
    repeats = settings.REPEATS.draw()
    folds = spec.folds or FOLDS
    sweep = replace(view.sweep, epsilons=(spec.epsilon,), folds=folds, split_seed=0, published_split=False)
    folding = f"{repeats} × {folds} folds"
    found, fresh = tasks.observe(
        "folds",
        "Cross validation",
        lambda monitor: cross_validate(_able(sweep), repeats, store=CellStore.personal(), monitor=monitor),
        given=(repeats, sweep.key()),
        dataset=spec.dataset,
        ask=f"Train on {folding}, {sweep.seeds} noise draws each",
    )
    if not fresh:
        return
    sweep = replace(sweep, mechanisms={name: params for name, params in sweep.named.items() if name in {*found["mechanism"]}})
    without = [labels()[name] for name in view.sweep.named if name not in sweep.named]
    if without:
        panels.note(f"Without {', '.join(without)}, which cannot be calibrated at this ε.")
    columns = ["mean", "standard_error", "noise_sd", "split_sd"]
    means = summarise_splits(found, folds, metric.column).set_index("mechanism")[columns]
    rows = [(labels()[name], *(words.metric_value(metric, v) for v in values)) for name, values in means.T.items()]
    tables.table(rows, ("Method", f"Mean {metric.within}", "Standard error", "Spread over noise", "Spread over splits"))
    best = words.metric_value(metric, float(found[f"non_private_{metric.column}"].mean()))
    st.caption(
        f"{folding}: {repeats} permutations of the rows, each fold the test rows once. Non-private {best} on the same folds. "
        "Training rows of different folds overlap, and the standard error counts that (Nadeau, Bengio 2003). Spreads are "
        "standard deviations; splits are without the noise."
    )
    tables.download(lambda: found, "folds", "Save every fold (CSV)")
    repeat.shell(f"{sweep_shell_call(sweep)} --repeats={repeats}")


def _able(sweep: SweepSpec) -> SweepSpec:
    """The methods that can be calibrated at the sweep's epsilon: one that cannot would end all.

    Raises:
        InvalidInput: none can.
    """
    able, problem = {}, None
    for name, params in sweep.named.items():
        try:
            calibration_of(sweep.run(name, sweep.epsilons[0]))
            able[name] = params
        except InvalidInput as refusal:
            problem = refusal
    if not able and problem is not None:
        raise problem
    return replace(sweep, mechanisms=able)
