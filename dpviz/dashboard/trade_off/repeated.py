"""Repeated cross validation of the page's methods at its ε, the way papers report accuracy."""

from dataclasses import replace

import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.kit import repeat, tables, words
from dpviz.dashboard.trade_off import running, settings
from dpviz.dashboard.trade_off.answers import labels
from dpviz.dashboard.work import tasks
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.sweeps.cells import CellStore
from dpviz.experiments.sweeps.folds import cross_validate, summarise_splits
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.reporting.calls import sweep_shell_call

FOLDS = 5  # where the run has one split


def section(view: running.View) -> None:
    """A number of repeats, a button, and means over all folds with both spreads, folded away until opened."""
    spec, metric = view.spec, view.choices.metric
    with st.expander(f"Cross-validate these methods at ε = {words.three(spec.epsilon)}"):
        repeats = settings.REPEATS.draw()
        folds = spec.folds or FOLDS
        sweep = replace(view.sweep, epsilons=(spec.epsilon,), folds=folds, split_seed=0, published_split=False)
        refused = _refused(sweep)
        for name, problem in refused.items():
            st.caption(words.markdown(f"Without {labels()[name]}: {problem.cause}."))
        able = {name: params for name, params in sweep.named.items() if name not in refused}
        if not able:
            return
        sweep = replace(sweep, mechanisms=able)
        said = f"{repeats} × {folds} folds"
        found, fresh = tasks.observe(
            f"folds {repeats} {sweep.key()}",
            "Cross validation",
            lambda monitor: cross_validate(sweep, repeats, store=CellStore.personal(), monitor=monitor),
            section="folds",
            dataset=spec.dataset,
            ask=f"Train on {said}, {sweep.seeds} noise draws each",
        )
        if not fresh:
            return
        columns = ["mean", "standard_error", "noise_sd", "split_sd"]
        means = summarise_splits(found, folds, metric.column).set_index("mechanism")[columns]
        rows = [(labels()[name], *(words.measured(metric, v) for v in values)) for name, values in means.T.items()]
        tables.table(rows, ("Method", f"Mean {metric.within}", "Standard error", "Spread over noise", "Spread over splits"))
        best = words.measured(metric, float(found[f"non_private_{metric.column}"].mean()))
        st.caption(
            f"{said}: {repeats} permutations of the rows, each fold the test rows once. Non-private {best} on the same folds. "
            "Training rows of different folds overlap, and the standard error counts that (Nadeau, Bengio 2003). Spreads are "
            "standard deviations; splits are without the noise."
        )
        tables.download(lambda: found, "folds", "Save every fold (CSV)")
        repeat.shell(f"{sweep_shell_call(sweep)} --repeats={repeats}")


def _refused(sweep: SweepSpec) -> dict[str, InvalidInput]:
    """The methods that cannot be calibrated at the sweep's epsilon, with the reason: one of them would end all."""
    found = {}
    for name in sweep.named:
        try:
            calibration_of(sweep.run(name, sweep.epsilons[0]))
        except InvalidInput as problem:
            found[name] = problem
    return found
