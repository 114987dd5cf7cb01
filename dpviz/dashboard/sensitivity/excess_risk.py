"""Observed excess risk beside bounds and beside every published rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.kit import parts, words
from dpviz.dashboard.sensitivity.rates import NO_RATES, facts_of, speaks_of
from dpviz.dashboard.sensitivity.recursion import setting_of
from dpviz.dashboard.shell.fields import Choice
from dpviz.dashboard.work import tasks
from dpviz.experiments import observed
from dpviz.experiments.spec import RunSpec
from dpviz.figures import lines
from dpviz.figures.style import Look, Theme
from dpviz.models import get_model
from dpviz.papers import rates
from dpviz.papers.rate_tables import ROWS

EXCESS_OVER = Choice("risk", "Excess risk over", {"epsilon": "ε", "n": "rows n", "d": "parameters d"}, "epsilon")
SIZES = Choice(
    "sizes",
    "Largest census",
    {"quick": "30,000 people", "large": "100,000", "huge": "400,000 (minutes)"},
    "quick",
    "How far the synthetic census goes where something is drawn over n.",
)
CONTROLS = (EXCESS_OVER, SIZES)

CENSUS = {
    "quick": (1_000, 3_000, 10_000, 30_000),
    "large": (1_000, 10_000, 30_000, 100_000),
    "huge": (1_000, 10_000, 100_000, 400_000),
}
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class _Way:
    """One way of drawing excess risk."""

    key: str
    title: str
    grid: tuple[float, ...]
    work: Callable[[Any], list[observed.Excess]]
    at: Callable[[observed.Excess], float]
    seconds: str


def _way(spec: RunSpec) -> _Way:
    over = EXCESS_OVER.value()
    if over == "n":
        sizes = CENSUS[SIZES.value()]
        return _Way(
            "n",
            "training rows n",
            sizes,
            lambda m: observed.excess_over_n(spec, sizes, monitor=m),
            lambda e: e.n,
            "synthetic censuses",
        )
    if over == "d":
        d = setting_of(spec).d
        dims = tuple(d * 2**k for k in range(5))
        return _Way(
            "d",
            "parameters d",
            dims,
            lambda m: observed.excess_over_d(spec, dims, monitor=m),
            lambda e: e.d,
            "the same rows with features that are 0 for everybody",
        )
    return _Way(
        "epsilon",
        "ε",
        EPSILONS,
        lambda m: observed.excess_over_epsilon(spec, EPSILONS, monitor=m),
        lambda e: e.epsilon,
        "this dataset",
    )


def excess(spec: RunSpec, theme: Theme) -> None:
    """Observed excess empirical risk and every rate through one point."""
    st.header("Excess risk: observed, bounded, and as published", anchor=False)
    left, right = st.columns(2)
    with left:
        EXCESS_OVER.draw()
    if EXCESS_OVER.value() == "n":
        with right:
            SIZES.draw()
    way = _way(spec)
    setting = setting_of(spec)
    if way.key == "d" and not setting.linear:
        parts.empty("More features are more parameters in several ways for this model; choose a linear model to draw over d.")
        return
    light = way.key == "epsilon" and setting.n * setting.m < 200_000
    found, fresh = tasks.observe(
        f"excess {way.key} {way.grid} {spec.key()}",
        f"Training on {way.seconds}",
        way.work,
        section=f"excess-{way.key}",
        dataset=spec.dataset,
        ask="" if light else f"Train on {way.seconds} and draw what happens",
    )
    if found is None:
        st.caption("The observed points are drawn once they were trained.")
        return
    if not fresh:
        st.caption("These are the points of the previous setting.")
    convex = speaks_of(spec)
    parts.not_private(f"Excess risk compares with the training objective of {words.minimum(convex)}.")
    if not convex:
        st.caption(f"{words.NO_MINIMUM} {NO_RATES}")
    x = [way.at(e) for e in found]
    y = [e.mean for e in found]
    spread = [e.gap.std(ddof=1) / np.sqrt(len(e.gap)) if len(e.gap) > 1 else 0.0 for e in found]
    look = parts.method_look(spec.mechanism, theme)
    slope, _ = observed.loglog_slope(x, y)
    drawn = [
        lines.Line(
            f"observed, mean of {len(found[0].gap)} draws: slope {words.two(slope)}",
            x,
            y,
            replace(look, symbol="circle"),
            points=True,
            low=[max(a - 2 * s, a / 10) for a, s in zip(y, spread, strict=True)],
            high=[a + 2 * s for a, s in zip(y, spread, strict=True)],
        )
    ]
    rows = [("observed", words.two(slope), words.three(y[len(y) // 2]), "trained")]
    theory = [_theory(spec, e) for e in found]
    for name, dash in (("bound", "solid"), ("near the minimum", "dot")):
        values = [t.get(name, np.nan) for t in theory]
        if np.isfinite(values).any():
            fitted = observed.loglog_slope(x, values)[0]
            label = "bound with all constants" if name == "bound" else "second-order prediction"
            drawn.append(
                lines.Line(
                    f"{label}: slope {words.two(fitted)}",
                    x,
                    values,
                    Look("", theme.ink, dash, "x"),
                    width=3 if name == "bound" else 2,
                )
            )
            rows.append((label, words.two(fitted), words.three(values[len(y) // 2]), "[ours], no free factor"))
    rows += _published(spec, found, way, x, y, drawn, theme)
    marked = x[len(x) // 2]
    marks = ((marked, "rates pass through here"),) if convex else ()
    fig = lines.curves(drawn, theme, x=way.title, y="excess empirical risk", marks=marks)
    summary = f"Excess empirical risk over {way.title}: observed slope {words.two(slope)}."
    if convex:
        summary += (
            f" Published rates hide their constants, so each is drawn through the observed point at {words.three(marked)}: "
            "only slopes compare."
        )
    parts.chart(fig, f"excess-{way.key}", summary, lambda: _excess_table(found, theory))
    _regime(spec, theory, way)
    parts.table(rows, ("", f"slope over {way.title}", f"value at {words.three(marked)}", "constants"))
    with st.expander("How is this computed?"):
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
        st.code(f"from dpviz import observed\n\nobserved.excess_over_{way.key}(spec, {list(way.grid)})", language="python")


def _theory(spec: RunSpec, e: observed.Excess) -> dict[str, float]:
    here = setting_of(spec)
    if not speaks_of(spec):
        return {}
    setting = get_model(spec.model).setting(e.n, e.d if here.m == here.d else here.d, spec.lam)
    return spec.build().excess_theory(setting, e.noise_scale, e.start, e.eigenvalues) if e.noise_scale > 0 else {}


def _published(
    spec: RunSpec, found: list[observed.Excess], way: _Way, x: list[float], y: list[float], drawn: list[lines.Line], theme: Theme
) -> list[tuple[str, str, str, str]]:
    """Every published rate through the middle point: the mechanism's own in the picture, all in the table."""
    if not speaks_of(spec):
        return []
    base, middle = facts_of(spec), len(x) // 2
    out = []
    seen: set[str] = set()
    others: list[lines.Line] = []
    for table, entries in ROWS.items():
        for row in entries:
            if row.excess is None or row.excess.value is None:
                continue
            values = np.array(
                [
                    rates.value(
                        row.excess,
                        replace(base, n=e.n, d=e.d, epsilon=e.epsilon, delta=e.delta, inner=0, influential=0, radius=0.0),
                    )
                    for e in found
                ]
            )
            fitted = observed.loglog_slope(x, values)[0]
            own = row.mechanism == spec.mechanism
            scaled = values * y[middle] / values[middle]
            name = f"{row.method}: slope {words.two(fitted)}"
            if own:
                drawn.append(lines.Line(f"rate of {name}", x, scaled, Look("", theme.majority, "dash", "x")))
            elif words.two(fitted) not in seen:
                label = "" if seen else "rates of other methods"
                seen.add(words.two(fitted))
                faint = Look("", theme.grid, "solid", "x")
                others.append(lines.Line(label, x, scaled, faint, width=2, text=[name] * len(x)))
            out.append(
                (
                    f"rate: {row.method} ({rates.TABLES[table][0]})" + (" ← this method" if own else ""),
                    words.two(fitted),
                    words.three(float(values[middle])),
                    "O(·) taken as 1",
                )
            )
    drawn[:0] = others  # below the observed points
    return sorted(out, key=lambda r: "←" not in r[0])


def _regime(spec: RunSpec, theory: list[dict[str, float]], way: _Way) -> None:
    """Whether noise or optimisation decides, and how to get where the rate holds."""
    key = "of the bound, start not yet forgotten"
    shares = [t[key] / t["bound"] for t in theory if t.get("bound")] if any(key in t for t in theory) else []
    if not shares:
        return
    worst = max(shares)
    if worst < 0.05:
        st.caption(
            f"Here noise decides: the start is forgotten up to {100 * worst:.2g} % of the bound, so the slope is "
            f"that of the noise."
        )
        return
    st.info(
        f"Up to {100 * worst:.0f} % of the bound is the start that {getattr(spec.build(), 'steps', 'the')} steps "
        f"have not yet forgotten, "
        f"(1−μ/L)^T. That part does not fall with n or ε, so the published slope shows only where it is small: "
        f"more steps, or a larger λ.",
        icon="ℹ️",
    )

    def move() -> None:
        st.session_state["lam"] = 0.05
        st.session_state[f"{spec.mechanism}.steps"] = 100
        st.session_state[f"{spec.mechanism}.step_size"] = 1.0

    if {"steps", "step_size"} <= set(spec.build().knobs()):
        st.button("Go where noise decides: λ = 0.05, 100 steps of length 1/L", on_click=move)


def _excess_table(found: list[observed.Excess], theory: list[dict[str, float]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "n": e.n,
                "d": e.d,
                "epsilon": e.epsilon,
                "delta": e.delta,
                "noise_scale": e.noise_scale,
                "mean": e.mean,
                "standard_error": e.gap.std(ddof=1) / np.sqrt(len(e.gap)) if len(e.gap) > 1 else np.nan,
                **t,
            }
            for e, t in zip(found, theory, strict=True)
        ]
    )
