"""Sensitivity over the number of rows and every setting that moves it: bounds, slopes, and what retraining shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.kit import parts, words
from dpviz.dashboard.sensitivity.recursion import setting_of
from dpviz.dashboard.shell.fields import Choice
from dpviz.dashboard.work import tasks
from dpviz.experiments import observed
from dpviz.experiments.setup import setup_for
from dpviz.experiments.spec import RunSpec
from dpviz.figures import lines
from dpviz.figures.style import Look, Theme, shade
from dpviz.mechanisms import Mechanism
from dpviz.models import Setting, get_model

SIZES = (1_000, 3_000, 10_000, 30_000)


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
    return replace(mechanism, **{name: number}), setting


def _bounds(spec: RunSpec, name: str, value: float) -> dict[str, float]:
    mechanism, setting = _at(spec, name, value)
    try:
        found = {b.label: b.value for b in mechanism.sensitivity_bounds(setting)}
        return found or {"in use": mechanism.calibrate(setting, spec.budget).sensitivity}
    except InvalidInput:
        return {}


#: slopes that one formula gives where contraction has not set in: 2 eta G/nu for a visit, 2G/(n lam) for the minimiser
THEORY = {
    "n": (-1.0, "everything a row does is divided by n"),
    "lam": (-1.0, "the minimiser moves by 2G/(nλ)"),
    "rows": (-1.0, "a visit adds 2ηG/ν"),
    "step_size": (1.0, "a visit adds 2ηG/ν"),
}


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
        drawn.append(
            lines.Line(
                f"slope {words.three(theory[0])}: {theory[1]}", grid, reference, Look("", theme.majority, "dash", "x"), width=2
            )
        )
    found = _retrained(spec, name, grid) if name in ("n", "lam") or knob else None
    if found:
        for kind, symbol in (("adversarial", "diamond"), ("worst-case data", "x"), ("random", "circle"), ("flipped", "square")):
            xs = [x for x, _ in found]
            ys = [m.largest(kind) for _, m in found]
            if not np.isfinite(ys).any() or not max(ys) > 0:
                continue
            drawn.append(lines.Line(f"observed, {kind}", xs, ys, Look("", theme.ink, "solid", symbol), points=True))
            slopes.append((f"observed, {kind}", words.two(observed.loglog_slope(xs, ys)[0]), "–", "–"))
    title = dict(choice.options)[name]
    fig = lines.curves(drawn, theme, x=title, y="sensitivity (L2)", marks=((here, "this run"),))
    fitted = "; ".join(f"{label} {slope}" for label, slope, _, _ in slopes)
    summary = f"Sensitivity of {mechanism.label} over {title}, logarithmic on both axes. Fitted slopes: {fitted}."
    parts.chart(fig, "falls", summary, lambda: pd.DataFrame(values).assign(**{name: grid}))
    parts.table(slopes, ("curve", "fitted slope", "at the left end", "at the right end"))
    if name == "n":
        st.caption(
            "Batches keep their share of the rows while n changes. A batch of a fixed rule such as √n gives flatter curves."
        )


def _retrained(spec: RunSpec, name: str, grid: list[float]) -> list[tuple[float, observed.Moves]] | None:
    """Observed moves at a few values, on request."""
    mechanism = spec.build()
    try:
        mechanism.query(
            setup_for(replace(spec, dataset="teaching")).problem, np.zeros((1, setting_of(spec).m)), observed.spawn(0, 1)
        )
    except NotImplementedError:
        st.caption("This mechanism protects no query whose movement could be observed.")
        return None
    except Exception:
        pass  # the real run says what is wrong
    if name == "n":
        sizes = st.session_state.get("sizes") or "quick"
        chosen = (*SIZES, 100_000) if sizes == "large" else SIZES
        what, rows = "Retraining on neighbouring censuses", chosen
        work: tasks.Work[Any] = lambda monitor: [  # noqa: E731
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
                problem = setup_for(replace(spec, lam=float(value)) if name == "lam" else spec).problem
                report = lambda done, k=k: monitor((k + done) / len(picks))  # noqa: E731
                try:
                    out.append((float(value), observed.observed_sensitivity(problem, here, 4, seed=spec.seed, monitor=report)))
                except InvalidInput:
                    continue
            return out

    found, _ = tasks.observe(
        key,
        what,
        work,
        section=f"moves-{name}",
        dataset=spec.dataset,
        ask="Retrain on neighbouring datasets and draw what happens",
    )
    if found is not None:
        parts.not_private("Observed points come from training on the rows without noise, again and again.")
    return found
