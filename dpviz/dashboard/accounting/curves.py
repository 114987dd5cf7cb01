"""Curves of one release: Rényi, delta over epsilon, composition, relations, and the attacker's view."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.kit import parts, words
from dpviz.dashboard.shell.fields import Choice, Number
from dpviz.experiments.spec import RunSpec
from dpviz.figures import lines
from dpviz.figures.odds import attacker_curve
from dpviz.figures.style import Look, Theme, shade
from dpviz.mechanisms import Calibration, Mechanism
from dpviz.privacy.accounting import releases as accountants
from dpviz.privacy.accounting.gaussian import gaussian_epsilon
from dpviz.privacy.accounting.mixture import rdp_to_epsilon
from dpviz.privacy.accounting.releases import Releases
from dpviz.privacy.accounting.steps import CannotAccount, Method, Steps, epsilon_of
from dpviz.privacy.budget import Budget, Neighbouring, attack_accuracy, corner, trade_off

COMPOSE = Choice(
    "relation", "Neighbours", {"replace-one": "replace-one (proved by two hops)", "add-remove": "add-remove"}, "replace-one"
)
RATE = Number("q", "Sampling rate q", 1e-4, 1.0, help="Chance of a row to be in a batch; 1 is full batches.")
MULTIPLIER = Number("z", "Noise multiplier z", 0.3, 100.0, help="Noise over what one row contributes.")
CONTROLS = (COMPOSE, RATE, MULTIPLIER)


def renyi(spec: RunSpec, theme: Theme, mechanism: Mechanism, released: Releases, cal: Calibration) -> None:
    """The Rényi curve and what it gives at each order."""
    st.header("Rényi: one line per order, and the best order", anchor=False)
    if cal.noise_scale <= 0:
        return
    orders, curve, relation = accountants.renyi(released, cal.noise_scale)
    look = parts.method_look(mechanism.id, theme)
    drawn, said = [lines.Line("R(α), the Rényi divergence itself", orders - 1, curve, Look("", theme.majority, "dash", "x"))], []
    for k, (name, label) in enumerate((("mironov", "Mironov's conversion"), ("improved", "improved conversion"))):
        values = rdp_to_epsilon(orders, curve, cal.budget.delta, name)
        order, best = accountants.best_order(released, cal.noise_scale, cal.budget.delta, name)
        one = replace(look, dash=("solid", "dot")[k], colour=shade(look.colour, 0.3 * k))
        drawn.append(lines.Line(f"ε(α), {label}", orders - 1, np.where(values > 0, values, np.nan), one))
        drawn.append(lines.Line("", [order - 1], [best], replace(one, symbol=("diamond", "square")[k]), points=True))
        said.append(f"{label}: ε = {words.three(best)} at α = {words.three(order)}")
    exact = accountants.epsilon(released, cal.noise_scale, cal.budget.delta)
    ceiling = 30 * max(exact, 1e-3)
    fig = lines.curves(drawn, theme, x="α − 1", y="ε", y_range=(max(1e-3, exact / 30), ceiling))
    summary = (
        f"At σ = {words.three(cal.noise_scale)} and δ = {words.three(cal.budget.delta)} ({relation.value}): {'; '.join(said)}. "
        f"Without a detour through Rényi the proved ε is {words.three(exact)} under replace-one."
    )
    parts.chart(fig, "renyi", summary, lambda: pd.DataFrame({"alpha": orders, "rdp": curve}))
    with st.expander("How is this computed?"):
        st.latex(
            r"\varepsilon(\alpha)=R(\alpha)+\frac{\ln(1/\delta)}{\alpha-1}\ \text{(Mironov 2017)},\qquad "
            r"R(\alpha)+\ln\frac{\alpha-1}{\alpha}-\frac{\ln\delta+\ln\alpha}{\alpha-1}\ \text{(Canonne, Kamath, Steinke 2020)}"
        )


def delta_curve(theme: Theme, mechanism: Mechanism, released: Releases, cal: Calibration) -> None:
    """delta(eps) at this noise, by every proof."""
    st.header("The whole curve: δ for every ε", anchor=False)
    exact = accountants.epsilon(released, cal.noise_scale, cal.budget.delta)
    grid = np.geomspace(max(exact, 1e-3) / 12, max(exact, 1e-3) * 4, 25)
    look = parts.method_look(mechanism.id, theme)
    tight = np.array([accountants.log_delta(released, cal.noise_scale, float(e)) for e in grid])
    orders, curve, relation = accountants.renyi(released, cal.noise_scale)
    drawn = [lines.Line("tightest proof", grid, np.exp(tight), look)]
    if relation is Neighbouring.REPLACE_ONE:
        for k, name in enumerate(("improved", "mironov")):
            log_d = (orders[None] - 1) * (curve[None] - grid[:, None])
            if name == "improved":
                log_d = log_d + (orders - 1) * np.log1p(-1 / orders) - np.log(orders)
            values = np.exp(np.minimum(log_d.min(axis=1), 0))
            label = "Rényi, " + ("improved conversion" if name == "improved" else "Mironov's conversion")
            drawn.append(lines.Line(label, grid, values, Look("", theme.majority, ("dash", "dot")[k], "x")))
    drawn.append(
        lines.Line(
            "this run's budget", [cal.budget.epsilon], [cal.budget.delta], Look("", theme.noise, "solid", "diamond"), points=True
        )
    )
    fig = lines.curves(drawn, theme, x="ε", y="δ", y_range=(max(1e-16, cal.budget.delta / 1e6), 1.0))
    here = words.three(math.exp(accountants.log_delta(released, cal.noise_scale, cal.budget.epsilon)))
    summary = (
        "At this noise every (ε, δ) on or above the line holds, all at once. "
        f"At ε = {words.three(cal.budget.epsilon)} the proved δ is {here}."
    )
    parts.chart(fig, "delta-curve", summary, lambda: pd.DataFrame({"epsilon": grid, "delta": np.exp(tight)}))


def composition(theme: Theme, released: Releases, spec: RunSpec) -> None:
    """epsilon over the number of steps with subsampling."""
    st.header("Composition: ε over steps", anchor=False)
    columns = st.columns(3)
    with columns[0]:
        relation = Neighbouring(COMPOSE.draw())
    with columns[1]:
        q = RATE.draw(released.rate if released.rate < 1 else 0.1)
    with columns[2]:
        z = MULTIPLIER.draw(1.0)
    steps = [1, 3, 10, 30, 100, 300, 1000, 3000, 10000]
    route = "two-hop" if relation is Neighbouring.REPLACE_ONE and q < 1 else "none"
    plans = [
        ("PLD", Method("pld", relation, route)),
        ("RDP, improved conversion", Method("rdp", relation, route)),
        ("RDP, Mironov's conversion", Method("rdp", relation, route, "mironov")),
        ("zCDP", Method("zcdp", relation)),
    ]
    drawn, refused, values = [], [], {}
    for k, (name, method) in enumerate(plans):
        try:
            values[name] = [epsilon_of(Steps(z, q, t), method, spec.budget.delta) for t in steps]
        except CannotAccount as problem:
            refused.append(f"{name}: {problem.cause}")
            continue
        look = Look("", shade(theme.families["gradient"], 0.28 * k), ("solid", "dash", "dot", "dashdot")[k], "circle")
        drawn.append(lines.Line(name, steps, values[name], look))
    one = epsilon_of(Steps(z, q, 1), plans[0][1], spec.budget.delta)
    if "PLD" in values and one > 0:
        split = [_naive(z, q, t, plans[0][1], spec.budget.delta) for t in steps]
        drawn.append(lines.Line("adding up ε and δ of single steps", steps, split, Look("", theme.majority, "longdash", "x")))
        values["naive"] = split
    fig = lines.curves(drawn, theme, x="steps T", y="ε")
    at = steps.index(1000)
    summary = (
        f"ε after T steps at δ = {words.three(spec.budget.delta)}, {relation.value}, q = {q:g}, z = {z:g}; at T = 1000: "
        + "; ".join(f"{name} {words.three(v[at])}" for name, v in values.items())
        + "."
    )
    parts.chart(fig, "composition", summary, lambda: pd.DataFrame({"steps": steps, **values}))
    for text in refused:
        st.caption(words.markdown(text + "."))


def _naive(z: float, q: float, steps: int, method: Method, delta: float) -> float:
    return steps * epsilon_of(Steps(z, q, 1), method, delta / steps)


def relations(theme: Theme, released: Releases, cal: Calibration) -> None:
    """The same noise under each neighbouring relation."""
    st.header("Who is compared: replace-one or add-remove", anchor=False)
    delta, row = cal.budget.delta, released.worst / 2
    z = cal.noise_scale / row
    there, other = "add-remove: a row is there or not", "replace-one: one row becomes another"
    items = []
    if released.rate == 1:
        # the whole batch is in every release: a removal moves a sum of gradients by exactly half of what a replacement does
        half = float(gaussian_epsilon(delta, released.total / 2 / cal.noise_scale))
        known = released.count > 1
        items = [
            lines.Bar(
                there + ("" if known else ", if half the distance is proved"), half, f"ε = {words.three(half)}", solid=known
            ),
            _relation(other, accountants.epsilon(released, cal.noise_scale, delta), strong=True),
        ]
    else:
        steps = Steps(z, released.rate, released.count)
        one = Neighbouring.REPLACE_ONE
        items = [
            _relation(there, epsilon_of(steps, Method("pld", Neighbouring.ADD_REMOVE), delta)),
            _relation("replace-one by two hops", epsilon_of(steps, Method("pld", one, "two-hop"), delta), strong=True),
            _relation(
                "replace-one by the opposite pair, not proved",
                epsilon_of(steps, Method("pld", one, "opposite"), delta),
                solid=False,
            ),
            _relation(
                "z halved in an add-remove accountant: not what replace-one means",
                epsilon_of(replace(steps, noise_multiplier=z / 2), Method("pld", Neighbouring.ADD_REMOVE), delta),
                solid=False,
            ),
        ]
    summary = (
        "The same noise, σ = " + words.three(cal.noise_scale) + ": " + "; ".join(f"{b.name}: {b.words}" for b in items) + "."
    )
    fig = lines.bars(items, Look("", theme.families["gradient"], "solid", "x"), theme, x="ε at the same δ")
    parts.chart(
        fig,
        "relations",
        summary,
        lambda: pd.DataFrame({"relation": [b.name for b in items], "epsilon": [b.value for b in items]}),
    )


def _relation(name: str, value: float, *, solid: bool = True, strong: bool = False) -> lines.Bar:
    return lines.Bar(name, value, f"ε = {words.three(value)}", solid=solid, strong=strong)


def attacker(theme: Theme, released: Releases, cal: Calibration) -> None:
    """The trade-off curve of the test, from the proof and from (epsilon, delta) alone."""
    st.header("The attacker's view", anchor=False)
    budget = Budget(max(accountants.epsilon(released, cal.noise_scale, cal.budget.delta), 1e-6), cal.budget.delta)
    alarms = np.unique(np.r_[np.geomspace(1e-4, 0.5, 60), np.linspace(0.01, 0.99, 60), 0, 1, corner(budget)])
    real = accountants.detections(released, cal.noise_scale, alarms)
    allowed = 1 - trade_off(budget, alarms)
    best = int(np.argmax(real - alarms))
    win, loose = 0.5 + (real[best] - alarms[best]) / 2, attack_accuracy(budget)
    fig = attacker_curve(alarms, real, (float(alarms[best]), float(real[best])), theme)
    fig.add_scatter(
        x=100 * alarms,
        y=100 * allowed,
        mode="lines",
        name="what (ε, δ) alone would allow",
        line={"color": theme.ink, "width": 2, "dash": "dot"},
    )
    at = float(np.interp(0.01, alarms, real))
    summary = (
        f"Whoever accuses 1 % of the innocent finds at most {words.percent(at)} of the guilty. An even bet is won "
        f"{words.percent(float(win))} of the "
        f"time at most; the pair {words.budget(budget)} alone, without the whole curve, would allow {words.percent(loose)}."
    )
    data = pd.DataFrame({"false_alarms": alarms, "detections_at_most": real, "by_epsilon_delta_alone": allowed})
    parts.chart(fig, "test", summary, lambda: data)
    with st.expander("How is this computed?"):
        st.latex(
            r"1-f(a)=\Phi(\Phi^{-1}(a)+\mu)\ \text{(Dong, Roth, Su 2022)},\qquad "
            r"f(a)=\max(0,\,1-\delta-e^\varepsilon a,\,e^{-\varepsilon}(1-\delta-a))"
        )
        st.markdown(
            "For one Gaussian the first is exact. For sampled batches and random sensitivities the second is "
            "used at many points of δ(ε)."
        )
