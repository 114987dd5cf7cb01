"""The numbers of the trade-off page: a table of methods, downloads, and how they are computed."""

import streamlit as st

from dpviz.dashboard.components import panels, repeat, tables
from dpviz.dashboard.frame import links, pinned, sidebar
from dpviz.dashboard.trade_off import running
from dpviz.dashboard.trade_off.answers import labels, no_value, rows_at_budget
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.sweeps import curves
from dpviz.models import get_model
from dpviz.reporting import words
from dpviz.reporting.calls import sweep_call, sweep_shell_call


def method_table(view: running.View) -> None:
    """One row per method, sorted by guarantee and metric at the chosen budget."""
    table = view.table()
    if not len(table) or no_value(view, table):
        return
    measure = view.choices.metric
    a = view.overlay if view.overlay is not None and view.overlay.cost.metric.id == measure.id else None
    methods = rows_at_budget(view)  # first: what is asked for later may know more methods, and never fewer
    gaps, draws = view.summary("optimality_gap"), view.summary()
    target, (best, floor) = view.choices.want, view.baselines(table)
    budgets = {} if target is None else {one.mechanism: one for one in view.needed(target)}
    convex = get_model(view.spec.model).convex
    rows = []
    for here in methods:
        mechanism = str(here["mechanism"])
        gap, some = (curves.row_at(one, mechanism, view.spec.epsilon) for one in (gaps, draws))
        assert gap is not None
        assert some is not None
        run = view.sweep.run(mechanism, view.spec.epsilon)
        label, sign, _ = words.label(calibration_of(run), run.build())
        below = " ⚠ worse than guessing" if measure.higher_is_better and words.is_worse(float(here["mean"]), floor) else ""
        rows.append(
            (
                labels()[mechanism],
                f"{sign} {label}",
                words.three(here["epsilon"]),
                f"{words.metric_value(measure, float(here['mean']))}{below}",
                words.metric_range(measure, float(some["low"]), float(some["high"])),
                *([] if target is None else [_needed(view, budgets.get(mechanism), target)]),
                words.three(max(gap["mean"], 0.0) if convex else gap["mean"]),
                str(here["draws"]),
                *([] if a is None else [pinned.difference_from(measure, float(here["mean"]), a.cost.mean)]),
            )
        )
    wanted = () if target is None else (f"ε for {words.metric_value(measure, target)}",)
    columns = ("Method", "Guarantee", "At ε", measure.label, "10–90 % of draws", *wanted, "Gap", "Draws")
    tables.table(rows, columns if a is None else (*columns, f"Against A: {words.metric_value(measure, a.cost.mean)}"))
    delta = words.three(resolve(view.spec).budget.delta)
    panels.note(
        f"{sidebar.dataset_label(view.spec.dataset)}, {get_model(view.spec.model).label.lower()}, "
        f"{_regularised(view)}, δ = {delta}; non-private "
        f"{words.metric_value(measure, best)}, majority label {words.metric_value(measure, floor)}, both on the test rows. "
        f"{words.OUTSIDE}"
    )
    if not convex:
        st.caption(f"The gap is to {words.minimum(convex)}. {words.NO_MINIMUM}")


def _needed(view: running.View, one: curves.Needed | None, target: float) -> str:
    """The ε that a method needs for a value, in words."""
    return "no value" if one is None else words.read_off(one, view.interval(one.mechanism, target))


def _regularised(view: running.View) -> str:
    """λ of all methods that are compared, which the rule sets for each method and ε where it is left automatic."""
    values = {resolve(view.sweep.run(name, view.spec.epsilon)).lam for name in view.sweep.named}
    if len(values) == 1:
        return f"λ = {words.three(*values)} at this ε"
    return f"λ by each method’s rule, {words.three(min(values))} to {words.three(max(values))} at this ε"


def downloads(view: running.View) -> None:
    """Downloads: the curve, every draw, and the spec that repeats it in a shell."""
    with st.container(horizontal=True):
        tables.download(view.table, "draws", "Save every draw (CSV)")
        st.download_button(
            "Save the settings (TOML)",
            view.sweep.to_toml,  # made when pressed: a file made now is gone with the next run of the page
            "dpviz-sweep.toml",
            "application/toml",
            type="tertiary",
            icon=":material/download:",
            on_click="ignore",
        )


def section(view: running.View) -> None:
    """The numbers of the methods that are drawn, downloads, formulas, sources and calls."""
    with st.expander("Numbers of these curves, and how they are computed"):
        running.draw_live(view, method_table, every=running.PICTURES)
        downloads(view)
        links.examine(view.spec.mechanism)
        st.markdown(
            "Every method trains all its noise draws at all budgets together; draw *s* uses the same standard noise at every "
            "ε. The mean is exact where the distribution of the released parameters is known (mean of Φ(margin / (σ‖x‖)) over "
            "the test rows); where training itself is random it is exact over the noise and averaged over the trainings. "
            "Intervals of the mean are percentile bootstrap intervals (Efron 1979) over the draws. ε for a value is read off the "
            "isotonic regression of the means, linearly in log ε; nothing is extrapolated."
        )
        if view.choices.odds:
            st.latex(
                r"\Pr[\text{right guess}] \le \tfrac12(1 + \mathrm{TV}) \le "
                r"\tfrac12\Bigl(1 + \tfrac{e^{\varepsilon} - 1 + 2\delta}{e^{\varepsilon} + 1}\Bigr)"
            )
            st.markdown(
                "TV is the total variation between the outputs on two neighbours. Where the distribution of the noise bounds it, "
                "the axis shows the first bound, otherwise the second (Kairouz, Oh, Viswanath 2015). It is that of the sidebar’s "
                "method and is drawn only where its ε is proved."
            )
        st.markdown("The same numbers from a shell; `dpviz sweep dpviz-sweep.toml` takes the settings saved above:")
        repeat.shell(sweep_shell_call(view.sweep))
        st.markdown("and from Python:")
        repeat.python(sweep_call(view.sweep))
