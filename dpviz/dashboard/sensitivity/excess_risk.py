"""Observed excess risk beside bounds and beside every published rate."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import streamlit as st

from dpviz.dashboard.components import charts, panels, repeat, tables
from dpviz.dashboard.frame import fields
from dpviz.dashboard.jobs import tasks
from dpviz.experiments.run.setup import mechanism_of, setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import excess_risk
from dpviz.experiments.sweeps.curves import loglog_slope
from dpviz.figures import lines
from dpviz.figures.style import Look, Theme
from dpviz.mechanisms import CountsSteps, HasExcessTheory
from dpviz.models import get_model
from dpviz.papers import rate_curves
from dpviz.reporting import pictures, words

EXCESS_OVER = fields.choice("risk", "Excess risk over", {"epsilon": "ε", "n": "rows n", "d": "parameters d"}, "epsilon")
SIZES = fields.choice(
    "sizes",
    "Largest census",
    {"quick": "30,000 people", "large": "100,000", "huge": "400,000 (minutes)"},
    "quick",
    "How far the synthetic census goes where something is drawn over n.",
)
CONTROLS = (EXCESS_OVER, SIZES)
NO_RATES = (
    "The published rates are functions of G, L and μ: bounds on a row's gradient and curvature, and strong convexity. A network "
    "has none of them, so no rate speaks of it. Choose a linear model to see the tables."
)

CENSUS = {
    "quick": (1_000, 3_000, 10_000, 30_000),
    "large": (1_000, 10_000, 30_000, 100_000),
    "huge": (1_000, 10_000, 100_000, 400_000),
}
LIGHT = 20_000_000  # training rows times parameters up to which points over ε are trained unasked
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
#: what `Mechanism.excess_theory` may give -> its name
FORMULAS = {"bound": "bound", "near the minimum": "second-order prediction"}


def _grid(spec: RunSpec, over: excess_risk.Axis) -> tuple[float, ...]:
    """The grid of an axis on which excess risk is measured."""
    if over.key == "n":
        return CENSUS[SIZES.value()]
    d = setting_of(spec).d
    return tuple(d * 2**k for k in range(5)) if over.key == "d" else EPSILONS


@dataclass(frozen=True)
class Found:
    """Measured points with every formula and rate beside them."""

    spec: RunSpec
    over: excess_risk.Axis
    points: list[excess_risk.Excess]
    formulas: list[dict[str, float]]
    published: list[rate_curves.RateCurve]

    @cached_property
    def x(self) -> list[float]:
        """The points' places on the axis."""
        return [self.over.of(e) for e in self.points]

    @cached_property
    def slope(self) -> float:
        """Fitted to the points, logarithmic on both axes."""
        return loglog_slope(self.x, [e.mean for e in self.points])[0]

    @cached_property
    def lines(self) -> list[tuple[str, list[float], float]]:
        """(name, values, slope) of every formula with all constants that says something here."""
        every = ((label, [f.get(key, np.nan) for f in self.formulas]) for key, label in FORMULAS.items())
        return [(label, values, loglog_slope(self.x, values)[0]) for label, values in every if np.isfinite(values).any()]


def picture(spec: RunSpec, theme: Theme) -> Found | None:
    """Bounds, published rates and observed excess empirical risk of the run's method; None until something was trained."""
    st.subheader("Bounds, rates and what is observed", anchor=False)
    above, (left, right) = st.container(), st.columns(2)
    axis = EXCESS_OVER.draw(place=left)
    if axis == "n":
        SIZES.draw(place=right)
    with above:
        return _shown(spec, theme, excess_risk.AXES[axis])


def _shown(spec: RunSpec, theme: Theme, over: excess_risk.Axis) -> Found | None:
    """The picture over one axis."""
    if over.key == "d" and not setting_of(spec).linear:
        panels.empty("More features are more parameters in several ways for this model; choose a linear model to draw over d.")
        return None
    points = _measured(spec, over)
    if points is None:
        return None
    spec = tasks.last_run(f"excess-{over.key}")
    if max(e.mean for e in points) <= 0:
        none = f"The excess empirical risk is 0 at every point: this method releases {words.minimum(True)}."
        above = f"No point lies above {words.minimum(False)}, so there is nothing to draw on a logarithmic axis."
        panels.empty(none if setting_of(spec).linear else above)
        return None
    found = Found(spec, over, points, excess_risk.theory(spec, points), rate_curves.rate_curves(spec, over, points))
    _picture(theme, found)
    return found


def details(spec: RunSpec, found: Found) -> None:
    """Slopes and values of every line of the picture, what decides them, and how they are computed."""
    over, points = found.over, found.points
    with st.expander("Slopes and values of every bound and rate"):
        middle = len(points) // 2
        rows = [("observed", found.slope, points[middle].mean, "trained")]
        rows += [(label, fitted, values[middle], "all constants known [ours]") for label, values, fitted in found.lines]
        rows += [
            (f"rate: {c.row.method} ({c.table}){' ← this method' if c.own else ''}", c.slope, c.value, "O(·) taken as 1")
            for c in found.published
        ]
        texts = [(line, words.two(slope), words.three(value), constants) for line, slope, value, constants in rows]
        tables.table(texts, ("", f"slope over {over.title}", f"value at {words.three(over.of(points[middle]))}", "constants"))
        _regime(found)
    _how(spec, over, _grid(spec, over))


def _measured(spec: RunSpec, over: excess_risk.Axis) -> list[excess_risk.Excess] | None:
    """The measured points, on request where training takes long; None until they are there."""
    setting, section, grid = setting_of(spec), f"excess-{over.key}", _grid(spec, over)
    light = over.key == "epsilon" and setting.n * setting.m < LIGHT
    points, fresh = tasks.observe(
        section,
        f"Training on {over.data}",
        lambda monitor: over.measure(spec, grid, monitor=monitor),
        of=spec,
        given=grid,
        ask="" if light else f"Train on {over.data} and draw what happens",
    )
    if points is None:
        st.caption("The picture appears when its points are trained.")
        return None
    if not fresh:
        tasks.note_before(section)
    if not rate_curves.applies_to(spec):
        st.caption(f"{words.NO_MINIMUM} {NO_RATES}")
    return points


def _picture(theme: Theme, found: Found) -> None:
    """The measured points with every line that stands beside them."""
    spec, over, x, slope, published = found.spec, found.over, found.x, found.slope, found.published
    y = [e.mean for e in found.points]
    table = excess_risk.table(found.points, found.formulas)
    spread = 2 * table["standard_error"].fillna(0.0)
    own = lines.Line(
        f"observed (slope {words.two(slope)})",
        x,
        y,
        replace(pictures.method_look(spec.mechanism, theme), symbol="circle"),
        points=True,
        low=[max(a - s, a / 10) for a, s in zip(y, spread, strict=True)],
        high=[a + s for a, s in zip(y, spread, strict=True)],
    )
    drawn = [*_rates(theme, x, [c for c in published if not c.own]), own]
    middle, above = len(x) // 2, ""
    for k, (label, values, fitted) in enumerate(found.lines):
        if label == FORMULAS["bound"] and y[middle] > 0 and np.isfinite(values[middle]):
            ratio, at = words.three(values[middle] / y[middle]), words.three(x[middle])
            above = f" At {over.title} = {at} the bound is {ratio} times what is observed; its slope is {words.two(fitted)}."
        look = Look("", theme.ink, "solid" if label == FORMULAS["bound"] else "dot", "x")
        drawn.append(lines.Line(f"{label} ({words.two(fitted)})", x, values, look, width=2 if k else 3))
    for c in published:
        if c.own:
            name = f"{c.row.method} ({words.two(c.slope)})"
            drawn.append(lines.Line(name, x, c.scaled, Look("", theme.majority, "dash", "x")))
    marked = x[middle]
    marks = ((marked, "rates pass here"),) if published else ()
    draws = len(found.points[0].gap)
    summary = f"Excess empirical risk over {over.title}, mean of {draws} noise draws: observed slope {words.two(slope)}.{above}"
    if published:
        summary += (
            f" Published rates hide their constants, so each is drawn through the observed point at {words.three(marked)}: "
            "only slopes compare."
        )
    fig = lines.curves(drawn, theme, x=over.title, y="excess empirical risk", marks=marks, height=300)
    charts.chart(fig, f"excess-{over.key}", summary, lambda: table, of=spec)
    panels.privacy_warning(
        f"Excess risk compares with the training objective of {words.minimum(rate_curves.applies_to(spec))}, at the same λ."
    )


def _rates(theme: Theme, x: list[float], others: list[rate_curves.RateCurve]) -> list[lines.Line]:
    """One thin grey line for every slope that the rates of other methods have."""
    out: dict[str, lines.Line] = {}
    for c in others:
        label = "" if out else "other methods’ rates"
        name = f"{c.row.method}: slope {words.two(c.slope)}"
        grey = Look("", theme.majority, "solid", "x")
        out.setdefault(words.two(c.slope), lines.Line(label, x, c.scaled, grey, width=1, text=[name] * len(x)))
    return list(out.values())


def _how(spec: RunSpec, over: excess_risk.Axis, grid: tuple[float, ...]) -> None:
    with st.expander("How are bounds on the excess risk computed?"):
        st.latex(
            r"\mathbb E\,F(\theta)-\min F,\qquad "
            r"F(\theta)=\tfrac1n\sum_i\varphi(y_if_\theta(x_i))+\tfrac\lambda2\lVert\theta\rVert^2,\quad f_\theta(x)="
            + get_model(spec.model).formula
        )
        st.markdown(
            "Bounds with all constants, elementary [ours], for linear models: output noise, then noisy full-batch descent for "
            "the step 1/L; other steps below 2/L contract by 1 − μη(2 − Lη) instead."
        )
        st.latex(
            r"\tfrac L2\,\mathbb E\lVert b\rVert^2,\qquad (1-\tfrac\mu "
            r"L)^T(F_0-F^*)+\tfrac{d\sigma^2}{2\mu}\bigl(1-(1-\tfrac\mu L)^T\bigr)"
        )
        call = f"excess_risk.excess_over_{over.key}(spec, {list(grid)})"
        repeat.python_of(spec, call, "from dpviz.experiments.studies import excess_risk")


def _regime(found: Found) -> None:
    """A note on the larger term, noise or optimisation, and the settings at which the rate holds."""
    spec = found.spec
    worst, setting = excess_risk.share_of_the_start(found.formulas), setting_of(spec)
    mechanism = mechanism_of(spec)
    settled = mechanism.forgets_start if isinstance(mechanism, HasExcessTheory) else {}
    if worst is None and not (settled and setting.convex):
        return
    if worst is not None and worst < 0.05:
        st.caption(
            f"Noise decides here: at most {100 * worst:.2g} % of the bound comes from stopping early, so the slope is that of "
            "the noise."
        )
        return
    steps = f"{mechanism.step_count(setting)} steps" if isinstance(mechanism, CountsSteps) else "the steps"
    message = (
        "No bound with all its constants holds here: it needs gradients that are not clipped, and steps below 2/L."
        if worst is None
        else f"Up to {100 * worst:.0f} % of the bound comes from stopping after {steps}, (1−μ/L)^T. That part does not fall with "
        "n or ε, so the published slope appears only where it is small: with more steps, or a larger λ."
    )
    st.info(message, icon="ℹ️")

    def move() -> None:
        st.session_state["lam"] = 0.05
        st.session_state["mechanism"] = spec.mechanism  # it may have been automatic
        for name, value in settled.items():
            st.session_state[f"{spec.mechanism}.{name}"] = value

    if settled:
        knobs = ", ".join(f"{mechanism.knobs()[name].label.lower()} {value:g}" for name, value in settled.items())
        st.button(f"Choose settings where noise decides: λ = 0.05, {knobs}", on_click=move)
