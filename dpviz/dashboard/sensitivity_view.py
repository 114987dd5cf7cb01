"""Where the sensitivity comes from: over training, over n and every knob, and beside what retraining shows."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz import observed
from dpviz.dashboard import background, parts, why, words
from dpviz.dashboard.own import Choice
from dpviz.engine import bench
from dpviz.figures import lines
from dpviz.figures.style import Look, Theme, shade
from dpviz.mechanisms import Mechanism, mechanisms
from dpviz.models import Setting, get_model
from dpviz.privacy.budget import Budget
from dpviz.spec import RunSpec
from dpviz.validate import InvalidInput

RECURSION = r"\Delta_j\leftarrow\rho\,\Delta_j\;\bigl(+\,\tfrac{2\eta G}{\nu}\text{ if batch }j\bigr),\qquad" \
    r"\rho=\max(|1-\eta\mu|,|1-\eta L|)"  # fmt: skip
SIZES = (1_000, 3_000, 10_000, 30_000)


def setting_of(spec: RunSpec) -> Setting:
    """Public facts about a run, without training anything."""
    return bench(spec).problem.setting


def algorithms(setting: Setting) -> dict[str, Mechanism]:
    """Mechanisms whose query is the end of a recursion, by id."""
    made = {name: cls() for name, cls in mechanisms().items() if cls.refusal(setting) is None}
    return {name: m for name, m in made.items() if m.sensitivity_trace(setting) is not None}


def algorithm_choice(spec: RunSpec) -> Choice:
    """Whose recursion is shown: the run's own, or that of the algorithm with most parts to switch."""
    found = algorithms(get_model(spec.model).setting(1000, 10, 1e-2))
    switches = {name: sum(k.kind == "switch" for k in m.knobs().values()) for name, m in found.items()}
    default = spec.mechanism if spec.mechanism in found else max(switches, key=lambda n: switches[n], default="")
    return Choice("algorithm", "Algorithm", {name: m.label for name, m in found.items()}, default)


def over_training(spec: RunSpec, theme: Theme) -> None:
    """The recursion as it runs, and four answers."""
    st.header("Where it comes from: two runs drifting apart", anchor=False)
    setting = setting_of(spec)
    choice = algorithm_choice(spec)
    if not choice.options:
        parts.empty("No algorithm here trains this model step by step with a proved distance between two runs; it needs convexity.")
        return
    name = choice.draw()
    mechanism = spec.build() if name == spec.mechanism else mechanisms()[name]()
    trace = mechanism.sensitivity_trace(setting)
    assert trace is not None
    keep = _thin(trace)
    fig = lines.trace(trace.epoch[keep], trace.value[keep], trace.positions.tolist(), (trace.event == "average")[keep],
                      trace.restarts, theme)  # fmt: skip
    summary = (
        f"{mechanism.label}: worst-case distance of two runs that differ in one row, {len(trace.positions)} of the batches that may hold "
        f"it. It ends between {words.three(float(trace.value[-1].min()))} and {words.three(float(trace.value[-1].max()))}."
    )
    parts.chart(fig, "trace", summary, lambda: _trace_table(trace))
    st.markdown(f"**Where does it come from?** {words.markdown(why.where(trace, setting))}")
    st.markdown(f"**Why does averaging help?** {words.markdown(why.averaging(trace, _without_averaging(mechanism, setting)))}")
    releases = mechanism.releases(setting)
    if releases is not None:
        budget = Budget(spec.epsilon, spec.delta)
        st.markdown(f"**Does the permutation help?** {words.markdown(why.permutation(releases, budget, trace))}")
    stronger = replace(setting, lam=10 * setting.lam, unit_step=1 / (setting.beta + 10 * setting.lam))
    st.markdown(f"**What does λ buy?** {words.markdown(why.regularisation(mechanism, setting, stronger))}")
    _variants(mechanism, setting, theme)
    with st.expander("One pass under the magnifier"):
        _one_pass(trace, theme)
    _formula(RECURSION, "Chen, Lee, Kifer 2019, Lemma 2 and Algorithms 2 and 3; the closed form that calibrates the noise is [ours].")


def _without_averaging(mechanism: Mechanism, setting: Setting) -> float | None:
    """The end of the recursion with the switch off that does the averaging."""
    for name, knob in mechanism.knobs().items():
        if knob.kind == "switch" and getattr(mechanism, name):
            other = replace(mechanism, **{name: False})  # type: ignore[arg-type]
            trace = other.sensitivity_trace(setting)
            if trace is not None and "average" not in trace.event:
                return float(trace.value[-1].max())
    return None


def _thin(trace: Any, most: int = 4000) -> np.ndarray:
    """Points that are drawn: all where there are few, otherwise every so many and each averaging."""
    count = len(trace.epoch)
    if count <= most:
        return np.arange(count)
    at = np.flatnonzero(trace.event == "average")
    return np.unique(np.r_[np.linspace(0, count - 1, most).astype(int), at, np.maximum(at - 1, 0)])


def _trace_table(trace: Any) -> pd.DataFrame:
    table = pd.DataFrame({"epoch": trace.epoch, "event": trace.event, "step": trace.step, "rho": trace.rho})
    for j, position in enumerate(trace.positions):
        table[f"batch {position}"] = trace.value[:, j]
    return table


def _one_pass(trace: Any, theme: Theme) -> None:
    first = 1.0 if trace.epoch[-1] >= 2 else 0.0
    inside = np.flatnonzero((trace.epoch >= first - 1e-9) & (trace.epoch <= first + 1 + 1e-9))
    pick = np.unique(np.linspace(0, len(trace.positions) - 1, 3).round().astype(int))
    fig = lines.trace(trace.epoch[inside], trace.value[inside][:, pick], trace.positions[pick].tolist(),
                      (trace.event == "average")[inside], (), theme, height=320)  # fmt: skip
    summary = (
        f"Pass {int(first) + 1}: each curve falls a little at every step (contraction) and jumps once, when the batch with the replaced "
        "row has its turn (expansion). An early jump is contracted by all batches that follow; a late one is not."
    )
    parts.chart(fig, "one-pass", summary)


def _variants(mechanism: Mechanism, setting: Setting, theme: Theme) -> None:
    """The end of the recursion with each part switched, as bars."""
    switches = [name for name, knob in mechanism.knobs().items() if knob.kind == "switch"]
    if not switches:
        return
    cases: dict[str, float] = {}
    for bits in range(1 << len(switches)):
        chosen = {name: bool(bits >> k & 1) for k, name in enumerate(switches)}
        label = ", ".join(f"{mechanism.knobs()[n].label.lower()} {'on' if on else 'off'}" for n, on in chosen.items())
        cases[label] = replace(mechanism, **chosen).sensitivity_bounds(setting)[0].value  # type: ignore[arg-type]
    now = mechanism.sensitivity_bounds(setting)[0].value
    items = [lines.Bar(k, v, words.three(v), strong=v == now) for k, v in cases.items()]
    look = parts.method_look(mechanism.id, theme)
    summary = "The same training with its parts switched: " + "; ".join(f"{k}: {words.three(v)}" for k, v in cases.items()) + "."
    parts.chart(lines.bars(items, look, theme, x="worst-case distance at the end"), "variants", summary,
                lambda: pd.DataFrame({"variant": list(cases), "sensitivity": list(cases.values())}))  # fmt: skip


def over_choice(spec: RunSpec) -> Choice:
    """What the sensitivity is drawn over."""
    knobs = {name: knob.label for name, knob in spec.build().knobs().items() if knob.log and knob.kind in ("number", "whole")}
    knobs |= {name: k.label for name, k in spec.build().knobs().items() if k.unit == "rows"}
    moving = {name: label for name, label in knobs.items() if name in ("n", "lam") or _matters(spec, name)}
    return Choice("over", "Over", {"n": "number of rows n", "lam": "regularisation λ", **moving}, "n")


def _matters(spec: RunSpec, name: str) -> bool:
    grid = _grid(spec, name)
    ends = [_bounds(spec, name, grid[0]), _bounds(spec, name, grid[-1])]
    return any(abs(ends[0][k] - ends[1].get(k, np.nan)) > 1e-12 for k in ends[0])


def _grid(spec: RunSpec, name: str) -> list[float]:
    if name == "n":
        return list(np.unique(np.geomspace(300, 500_000, 25).round()))
    if name == "lam":
        return list(np.geomspace(1e-5, 1.0, 31))
    mechanism = spec.build()
    knob, value = mechanism.knobs()[name], float(getattr(mechanism, name))
    if value == 0 and knob.unit == "rows":
        value = float(mechanism.automatic(name, spec.n_train))
    low, high = max(knob.low, value / 30, 1 if knob.kind == "whole" else 0), min(knob.high, value * 30)
    if knob.unit == "rows":
        high = min(high, spec.n_train)
    grid = np.geomspace(low, max(high, 2 * low), 25)
    return list(np.unique(grid.round())) if knob.kind == "whole" else list(grid)


def _at(spec: RunSpec, name: str, value: float) -> tuple[Mechanism, Setting]:
    mechanism, model = spec.build(), get_model(spec.model)
    setting = setting_of(spec)
    if name == "n":
        n = int(value)
        return observed.same_share(mechanism, setting.n, n), model.setting(n, setting.d, spec.lam)
    if name == "lam":
        return mechanism, model.setting(setting.n, setting.d, float(value))
    number = int(value) if mechanism.knobs()[name].kind == "whole" else float(value)
    return replace(mechanism, **{name: number}), setting  # type: ignore[arg-type]


def _bounds(spec: RunSpec, name: str, value: float) -> dict[str, float]:
    mechanism, setting = _at(spec, name, value)
    try:
        found = {b.label: b.value for b in mechanism.sensitivity_bounds(setting)}
        return found or {"in use": mechanism.calibrate(setting, Budget(spec.epsilon, spec.delta)).sensitivity}
    except InvalidInput:
        return {}


#: slopes that one formula gives where contraction has not set in: 2 eta G/nu for a visit, 2G/(n lam) for the minimiser
THEORY = {"n": (-1.0, "everything a row does is divided by n"), "lam": (-1.0, "the minimiser moves by 2G/(nλ)"),
          "rows": (-1.0, "a visit adds 2ηG/ν"), "step_size": (1.0, "a visit adds 2ηG/ν")}  # fmt: skip


def falls(spec: RunSpec, theme: Theme, choice: Choice) -> None:
    """Sensitivity over n, lambda, batch size, step size: bounds, slopes, and what retraining shows."""
    st.header("How it falls", anchor=False)
    name = choice.draw()
    setting, mechanism = setting_of(spec), spec.build()
    grid = _grid(spec, name)
    values = [_bounds(spec, name, v) for v in grid]
    labels = list(dict.fromkeys(k for v in values for k in v))
    if not any(np.isfinite(v.get(k, np.nan)) for v in values for k in v):
        parts.empty(f"{words.markdown(mechanism.label)} protects no query of bounded sensitivity, so there is nothing to draw.")
        return
    look = parts.method_look(spec.mechanism, theme)
    drawn: list[lines.Line] = []
    slopes: list[tuple[str, str, str, str]] = []
    for k, label in enumerate(labels):
        y = np.array([v.get(label, np.nan) for v in values])
        slope, _ = observed.loglog_slope(grid, y)
        other = replace(look, colour=shade(look.colour, 0.3 * k), dash=("solid", "dash", "dot", "dashdot")[k % 4])
        drawn.append(lines.Line(f"worst case: {label}", grid, y, other))
        ends = [observed.loglog_slope(part, ys)[0] for part, ys in ((grid[:6], y[:6]), (grid[-6:], y[-6:]))]
        slopes.append((f"worst case: {label}", words.two(slope), words.two(ends[0]), words.two(ends[1])))
    here = {"n": float(setting.n), "lam": spec.lam}.get(name)
    if here is None:
        here = float(getattr(mechanism, name)) or float(mechanism.automatic(name, setting.n))
    knob = mechanism.knobs().get(name)
    theory = THEORY.get(name) or THEORY.get(knob.unit if knob else "")
    main = np.array([v.get(labels[0], np.nan) for v in values])
    if theory is not None and np.isfinite(main).any():
        k = int(np.nanargmin(np.abs(np.log(np.array(grid) / here)) + np.where(np.isfinite(main), 0, np.inf)))
        reference = main[k] * (np.array(grid) / grid[k]) ** theory[0]
        drawn.append(lines.Line(f"slope {words.three(theory[0])}: {theory[1]}", grid, reference, Look("", theme.majority, "dash", "x"), width=2))
    found = _retrained(spec, name, grid) if name in ("n", "lam") or knob else None
    if found:
        for kind, symbol in (("adversarial", "diamond"), ("worst-case data", "x"), ("random", "circle"), ("flipped", "square")):
            xs = [x for x, _ in found]
            ys = [m.largest(kind) for _, m in found]
            if not np.isfinite(ys).any() or not max(ys) > 0:
                continue
            drawn.append(lines.Line(f"observed, {kind}", xs, ys, Look("", theme.noise, "solid", symbol), points=True))
            slopes.append((f"observed, {kind}", words.two(observed.loglog_slope(xs, ys)[0]), "–", "–"))
    title = dict(choice.options)[name]
    fig = lines.curves(drawn, theme, x=title, y="sensitivity (L2)", marks=((here, "this run"),))
    fitted = "; ".join(f"{label} {slope}" for label, slope, _, _ in slopes)
    summary = f"Sensitivity of {mechanism.label} over {title}, logarithmic on both axes. Fitted slopes: {fitted}."
    parts.chart(fig, "falls", summary, lambda: pd.DataFrame(values).assign(**{name: grid}))
    parts.table(slopes, ("curve", "fitted slope", "at the left end", "at the right end"))
    if name == "n":
        st.caption("Batches keep their share of the rows while n changes. A batch of a fixed rule such as √n gives flatter curves.")


def _retrained(spec: RunSpec, name: str, grid: list[float]) -> list[tuple[float, observed.Moves]] | None:
    """Observed moves at a few values, on request."""
    mechanism = spec.build()
    try:
        mechanism.query(bench(replace(spec, dataset="teaching")).problem, np.zeros((1, setting_of(spec).m)), observed.spawn(0, 1))
    except NotImplementedError:
        st.caption("This mechanism protects no query whose movement could be observed.")
        return None
    except Exception:
        pass  # the real run says what is wrong
    if name == "n":
        sizes = st.session_state.get("sizes") or "quick"
        chosen = (*SIZES, 100_000) if sizes == "large" else SIZES
        what, rows = "Retraining on neighbouring censuses", chosen
        work: background.Work = lambda monitor: [  # noqa: E731
            (float(n), m) for n, m in observed.sensitivity_over_n(spec, rows, 4, monitor=monitor)
        ]
        key = f"moves n {chosen} {spec.key()}"
    else:
        picks = [grid[k] for k in np.unique(np.linspace(0, len(grid) - 1, 5).round().astype(int))]
        what, key = "Retraining on neighbouring datasets", f"moves {name} {spec.key()}"

        def work(monitor: Any) -> list[tuple[float, observed.Moves]]:
            out = []
            for k, value in enumerate(picks):
                here, _ = _at(spec, name, value)
                problem = bench(replace(spec, lam=float(value)) if name == "lam" else spec).problem
                report = lambda done, k=k: monitor((k + done) / len(picks))  # noqa: E731
                try:
                    out.append((float(value), observed.observed_sensitivity(problem, here, 4, seed=spec.seed, monitor=report)))
                except InvalidInput:
                    continue
            return out

    found, _ = background.observe(key, what, work, section=f"moves-{name}", ask="Retrain on neighbouring datasets and draw what happens")
    if found is not None:
        parts.not_private("Observed points come from training on the rows without noise, again and again.")
    return found  # type: ignore[no-any-return]


def one_picture(spec: RunSpec, theme: Theme) -> None:
    """Every bound for this very run, and the observed movement, as bars."""
    st.header("Worst case, closed form and observed", anchor=False)
    setting, mechanism = setting_of(spec), spec.build()
    bounds = mechanism.sensitivity_bounds(setting)
    cal = mechanism.calibrate(setting, Budget(spec.epsilon, spec.delta))
    if not np.isfinite(cal.sensitivity):
        parts.empty(f"{words.markdown(mechanism.label)} protects no query of bounded sensitivity.")
        return
    items = [lines.Bar(b.label, b.value, words.three(b.value), solid=b.proved, strong=abs(b.value / cal.sensitivity - 1) < 1e-9)
             for b in bounds]  # fmt: skip
    if not any(b.strong for b in items):
        items.append(lines.Bar("in use", cal.sensitivity, words.three(cal.sensitivity), strong=True))
    problem = bench(spec).problem
    key = f"moves here {spec.key()}"
    work: background.Work = lambda monitor: observed.observed_sensitivity(  # noqa: E731
        problem, mechanism, 8, seed=spec.seed, monitor=monitor
    )
    moves, fresh = background.observe(
        key, "Retraining on neighbouring datasets", work, section="moves-here",
        ask="" if problem.rows.X.size < 200_000 else "Retrain on neighbours of this dataset",
    )  # fmt: skip
    text = ""
    if moves is not None and fresh:
        for kind in ("worst-case data", "adversarial", "flipped", "random"):
            value = moves.largest(kind)
            if np.isfinite(value):
                items.append(lines.Bar(f"observed, {kind}", value, f"{words.three(value)} ({100 * value / cal.sensitivity:.0f} % of the bound)"))
        text = (
            f" The largest movement seen is {words.three(moves.largest())}, {100 * moves.largest() / cal.sensitivity:.0f} % of the bound: "
            "the rest is slack, or a neighbour that was not tried."
        )
        parts.not_private("Observed movements come from training on the rows without noise.")
    fig = lines.bars(items, parts.method_look(spec.mechanism, theme), theme, x="L2 distance", span=(0, 1.55 * max(b.value for b in items)))
    summary = f"The noise is scaled to {words.three(cal.sensitivity)} (strong): {cal.sensitivity_source}.{text}"
    parts.chart(fig, "slack", summary, lambda: pd.DataFrame([{f.name: getattr(b, f.name) for f in fields(b)} for b in bounds]))
    with st.expander("How is this computed?"):
        for b in bounds:
            st.markdown(f"**{words.markdown(b.label)}** = {b.value:.10g}. {words.markdown(b.source)}")
            st.latex(b.formula)
        for kind, meaning in observed.KINDS.items():
            st.markdown(f"- observed, **{kind}**: {meaning}; all randomness is shared by the two runs.")
        st.code("from dpviz.observed import observed_sensitivity\nfrom dpviz.engine import bench\n\n"
                "observed_sensitivity(bench(spec).problem, spec.build(), 8).largest()", language="python")  # fmt: skip


def _formula(latex: str, source: str) -> None:
    with st.expander("How is this computed?"):
        st.latex(latex)
        st.markdown(words.markdown(source))
        st.code("mechanism.sensitivity_trace(setting).value[-1].max()", language="python")
