"""The origin of the sensitivity: over training, over n and every knob, and beside what retraining shows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.dashboard.components import charts, guarantee, panels, repeat
from dpviz.dashboard.frame import fields, links, pinned
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.sensitivity import explanation
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import calibration_of, mechanism_of, setting_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import observed, scaling
from dpviz.figures import lines, recursion
from dpviz.figures.style import Theme
from dpviz.mechanisms import BoundsSensitivity, HasTrace, Mechanism, ReleasesGaussians, list_mechanisms, protection
from dpviz.mechanisms.knobs import Switch
from dpviz.models import Setting, get_model
from dpviz.reporting import pictures, shell_call, words

LONGEST = 7  # words of a query that the first sentence names
FITTING = 5.0  # bars of so many times the bound in use fit into the picture; longer ones are cut, so that this one is seen

RECURSION = (
    r"\Delta_j\leftarrow\rho\,\Delta_j\;\bigl(+\,\tfrac{2\eta G}{\nu}\text{ if batch }j\bigr),\qquad"
    r"\rho=\max(|1-\eta\mu|,|1-\eta L|)"
)


def algorithm_choice(spec: RunSpec) -> fields.Field[str]:
    """The method whose recursion is shown: the run's, or another one by choice."""
    setting, methods = get_model(spec.model).setting(1000, 10, 1e-2), list_mechanisms().items()
    mechanisms = {n: cls() for n, cls in methods if issubclass(cls, HasTrace) and cls.refusal(setting) is None}
    own = list_mechanisms()[spec.mechanism].label
    names = {name: m.label for name, m in mechanisms.items() if name != spec.mechanism}
    return fields.choice("algorithm", "Method", {spec.mechanism: own} | names, spec.mechanism, few=0)


def training_section(spec: RunSpec, theme: Theme, choice: fields.Field[str]) -> None:
    """The recursion as it runs, and four answers."""
    setting = setting_of(spec)
    name = choice.draw()
    mechanism = spec.build() if name == spec.mechanism else list_mechanisms()[name]()
    if not isinstance(mechanism, HasTrace) or mechanism.refusal(setting) is not None:
        source = words.markdown(calibration_of(spec).sensitivity_source)
        panels.empty(
            f"**{words.markdown(mechanism.label)}** bounds what one row changes in one formula ({source}), so nothing adds up "
            "over training. Methods that add noise to the end of a training have such a picture: choose one above."
        )
        return
    run = spec if name == spec.mechanism else replace(spec, mechanism=name, params={})
    mechanism = protection.settle(mechanism, setting, resolve(spec).budget)
    trace = mechanism.sensitivity_trace(setting)
    keep = _thin(trace)
    fig = recursion.trace(
        trace.epoch[keep], trace.value[keep], trace.positions.tolist(), (trace.event == "average")[keep], trace.restarts, theme
    )
    summary = (
        f"{mechanism.label}: worst-case distance of two runs that differ in one row, {len(trace.positions)} of "
        f"the batches that may hold "
        f"it. It ends between {words.three(float(trace.value[-1].min()))} and {words.three(float(trace.value[-1].max()))}."
    )
    charts.chart(fig, "trace", summary, lambda: _trace_table(trace), of=run)
    st.markdown(f"**Where does it come from?** {words.markdown(explanation.final_terms(trace, setting))}")
    st.markdown(
        f"**Why does averaging help?** {words.markdown(explanation.averaging(trace, _without_averaging(mechanism, setting)))}"
    )
    facts = replace(setting, preparations=())
    event = protection.releases(mechanism, facts) if isinstance(mechanism, ReleasesGaussians) else None
    if event is not None:
        budget = resolve(spec).of_method
        st.markdown(f"**Does the permutation help?** {words.markdown(explanation.permutation(event, budget, trace))}")
        steps = None if setting.person_rows > 1 else mechanism.noise_in_steps(setting)
        if steps is not None:
            st.markdown(f"**What if every step had noise?** {words.markdown(explanation.iteration(event, steps, budget))}")
    stronger = replace(setting, lam=10 * setting.lam, unit_step=1 / (setting.beta + 10 * setting.lam))
    st.markdown(f"**What does λ buy?** {words.markdown(explanation.regularisation(mechanism, setting, stronger))}")
    with st.expander("How is this computed?"):
        st.latex(RECURSION)
        st.markdown("Chen, Lee, Kifer 2019, Lemma 2 and Algorithms 2 and 3; the closed form that calibrates the noise is ours.")
        repeat.python_of(
            run,
            "setting = setting_of(spec)\n"
            "spec.build().settle(setting, resolve(spec).budget).sensitivity_trace(setting).value[-1].max()",
            "from dpviz.experiments.run.resolve import resolve",
            "from dpviz.experiments.run.setup import setting_of",
        )


def _without_averaging(mechanism: HasTrace, setting: Setting) -> float | None:
    """The end of the recursion with the switch off that does the averaging."""
    for name, knob in mechanism.knobs().items():
        if isinstance(knob, Switch) and getattr(mechanism, name):
            other = replace(mechanism, **{name: False})
            trace = other.sensitivity_trace(setting)
            if "average" not in trace.event:
                return float(trace.value[-1].max())
    return None


def _thin(trace: Any, most: int = 4000) -> np.ndarray:
    """Points that are drawn: all where there are few, otherwise every so many and each averaging."""
    at = np.flatnonzero(trace.event == "average")
    return np.unique(np.r_[np.linspace(0, len(trace.epoch) - 1, most).astype(int), at, np.maximum(at - 1, 0)])


def _trace_table(trace: Any) -> pd.DataFrame:
    batches = {f"batch {position}": trace.value[:, j] for j, position in enumerate(trace.positions)}
    return pd.DataFrame({"epoch": trace.epoch, "event": trace.event, "step": trace.step, "rho": trace.rho} | batches)


def headline(spec: RunSpec) -> None:
    """The sensitivity of the quantity that the mechanism protects, and its dependence on n, in one sentence."""
    cal, label = calibration_of(spec), words.title(spec)
    value, query = cal.sensitivity, cal.query
    more = scaling.used_sensitivity(spec, 10 * setting_of(spec).n)
    what = query if len(query.split()) <= LONGEST else "what the noise is added to"
    message = f"{label}: one row changes {what}{',' if ', ' in what else ''} by at most {words.three(value)}"
    if not np.isfinite(value):
        message = f"{label}: no bound is proved for what one row changes"
    elif np.isfinite(more):
        message += f"; with ten times the rows {words.three(more)}"
    panels.headline(f"{message}.", of=spec)
    kept = pinned.PINNED.value()
    if kept is not None:
        a = calibration_of(kept).sensitivity
        known = np.isfinite([a, value]).all() and a > 0
        change = ""
        if known:
            change = ", the same as here" if abs(value / a - 1) < 1e-3 else f"; here it is {words.three(value / a)} times that"
        panels.text(f"A is {words.title(kept)}: at most {words.three(a)}{change}.")


def bounds_section(spec: RunSpec, theme: Theme) -> None:
    """Every bound for this very run, and the observed movement, as bars."""
    st.header("What one row can change", anchor=False)
    setting = setting_of(spec)
    mechanism = mechanism_of(spec)
    bounds = protection.sensitivity_bounds(mechanism, setting) if isinstance(mechanism, BoundsSensitivity) else ()
    cal = calibration_of(spec)
    if not np.isfinite(cal.sensitivity):
        _movement(spec, mechanism, theme)
        return
    items = [
        lines.Bar(
            f"{'proved' if b.proved else 'worst case'}: {b.label}",
            b.value,
            words.three(b.value),
            solid=b.proved,
            strong=abs(b.value / cal.sensitivity - 1) < 1e-9,
        )
        for b in bounds
    ]
    if not any(b.strong for b in items):
        items.append(lines.Bar("in use", cal.sensitivity, words.three(cal.sensitivity), strong=True))
    kept = pinned.PINNED.value()
    if kept is not None and np.isfinite(calibration_of(kept).sensitivity):
        a = calibration_of(kept).sensitivity
        items.append(lines.Bar(f"A: {words.title(kept)}", a, words.three(a)))
    changes = _observed(spec, mechanism, bounded=True)
    text = ""
    if changes is not None:
        items += [
            lines.Bar(f"largest seen, {kind}", value, f"{words.three(value)} ({100 * value / cal.sensitivity:.0f} %)")
            for kind, value in _by_kind(changes)
        ]
        share = changes.largest() / cal.sensitivity
        loose = "The bound may be loose, or a worse neighbour exists that was not tried."
        text = f" The largest change seen is {words.three(changes.largest())}, {100 * share:.0f} % of the bound. " + (
            loose if share < 0.995 else "The bound can hardly be smaller."
        )
    longest = max(b.value for b in items if b.value <= FITTING * cal.sensitivity)
    fig = lines.bars(items, pictures.method_look(spec.mechanism, theme), theme, x="L2 distance", span=(0, 1.55 * longest))
    summary = f"The noise is scaled to {words.three(cal.sensitivity)}, the strong bar: {cal.sensitivity_source}.{text}"
    charts.chart(fig, "slack", summary, lambda: pd.DataFrame({"what": b.name, "L2 distance": b.value} for b in items), of=spec)
    if text:
        panels.privacy_warning("Observed movements come from training on the rows without noise.")


def _by_kind(changes: observed.ObservedSensitivity) -> list[tuple[str, float]]:
    """The largest observed change of each kind of neighbours that was tried."""
    found = ((kind, changes.largest(kind)) for kind in ("worst-case data", "adversarial", "flipped", "random"))
    return [(kind, value) for kind, value in found if np.isfinite(value)]


def _movement(spec: RunSpec, mechanism: Mechanism, theme: Theme) -> None:
    """The movement of trained parameters on neighbouring datasets, for methods without a bound."""
    changes = _observed(spec, mechanism, bounded=False)
    if changes is None:
        return
    items = [lines.Bar(f"largest seen, {kind}", value, words.three(value)) for kind, value in _by_kind(changes)]
    look = pictures.method_look(spec.mechanism, theme)
    fig = lines.bars(
        items, look, theme, x="change of the parameters (L2)", span=(0, 1.4 * max([b.value for b in items] + [1e-12]))
    )
    summary = (
        f"{mechanism.label} has no proved bound. Trained without noise on datasets that differ in one row, its parameters "
        f"change by at most {words.three(changes.largest())} here; a worse neighbour may exist that was not tried."
    )
    data = pd.DataFrame(_by_kind(changes), columns=["neighbour", "change"])
    charts.chart(fig, "slack", summary, lambda: data, of=spec)
    panels.privacy_warning("Observed changes come from training on the rows without noise.")


def _observed(spec: RunSpec, mechanism: Mechanism, *, bounded: bool) -> observed.ObservedSensitivity | None:
    """The observed movement of this run's query, or of its parameters where no bound is proved, on neighbouring datasets.

    On request where the table is large; None until it is there.
    """
    problem, budget = setup_for(spec).problem, resolve(spec).budget

    def move(monitor: Monitor) -> observed.ObservedSensitivity:
        if bounded:
            return observed.observed_sensitivity(problem, mechanism, 8, seed=spec.seed, monitor=monitor)
        return observed.observed_movement(problem, mechanism, budget, 8, seed=spec.seed, monitor=monitor)

    ask = "" if problem.rows.X.size < 200_000 else "Retrain on neighbours of this dataset"
    section = "moves-here" if bounded else "movement"
    return tasks.current_result(section, "Retraining on neighbouring datasets", move, of=spec, given=section, ask=ask)


def guarantee_badge(spec: RunSpec) -> None:
    """The guarantee of noise that is scaled to the sensitivity, a link to its audit; formulas, kinds of neighbours, the call."""
    guarantee.badge(calibration_of(spec), spec.build())
    links.examine(spec.mechanism)
    setting = setting_of(spec)
    mechanism = mechanism_of(spec)
    with st.expander("How is this computed?"):
        for b in protection.sensitivity_bounds(mechanism, setting) if isinstance(mechanism, BoundsSensitivity) else ():
            st.markdown(f"**{words.markdown(b.label)}** = {words.three(b.value)}. {words.markdown(b.source)}")
            st.latex(b.formula)
        for kind in observed.kinds_of(setting):
            st.markdown(f"- largest seen, **{kind}**: {observed.KINDS[kind]}; all randomness is shared by the two runs.")
        repeat.python_of(
            spec,
            "problem, budget = dpviz.setup_for(spec).problem, resolve(spec).budget\n"
            "observed_sensitivity(problem, spec.build().settle(problem.setting, budget), 8, seed=spec.seed).largest()",
            "from dpviz.experiments.studies.observed import observed_sensitivity",
            "from dpviz.experiments.run.resolve import resolve",
        )
        repeat.shell(shell_call(spec, "calibrate"))
