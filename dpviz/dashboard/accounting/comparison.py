"""From a sensitivity to noise, by every accountant; what the noise leaves to an attacker; papers beside what is needed."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.common.progress import Monitor
from dpviz.dashboard.accounting import ledger
from dpviz.dashboard.accounting.curves import CONTROLS
from dpviz.dashboard.components import charts, guarantee, panels, repeat, tables
from dpviz.dashboard.frame import fields, links, metric, pinned
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.experiments.run.metrics import levels_of
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import setting_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import noise_comparison
from dpviz.figures import lines
from dpviz.figures.style import Theme
from dpviz.mechanisms import Calibration, list_mechanisms
from dpviz.mechanisms.attack import Attack, strongest_attack
from dpviz.privacy.accounting import tables as curves
from dpviz.privacy.budget import Status
from dpviz.reporting import pictures, shell_call, words


def compare_choice(spec: RunSpec) -> fields.Field[str]:
    """The method whose releases are accounted for: the run's, or another one by choice."""
    others = (name for name in noise_comparison.accountable_methods(spec) if name != spec.mechanism)
    options = {name: list_mechanisms()[name].label for name in (spec.mechanism, *others)}
    return fields.choice("compare", "Method", options, spec.mechanism, few=0)


def subject_of(spec: RunSpec, choice: fields.Field[str]) -> noise_comparison.Accounted:
    """The run that is accounted for, by the control: the page's own, or one of another method at its defaults."""
    run = noise_comparison.change_method(spec, choice.draw())
    if run is not spec:
        mine = list_mechanisms()[spec.mechanism].label
        panels.note(f"You asked for this method, at its defaults; the sidebar’s is {mine}.")
    subject = noise_comparison.accounted_release(run)
    if subject.released is not None and subject.calibration.method_budget is not None:
        panels.note(
            f"A part of ε pays for what was found privately in the rows before training. Accountants are compared "
            f"on the method itself, which has {words.budget(subject.compared.budget)}."
        )
    return subject


def compute_options(subject: noise_comparison.Accounted) -> tuple[list[curves.Option], Attack | None] | None:
    """The noise that each accountant asks for, and the best possible attack; None until they are there, after seconds."""

    def compute(monitor: Monitor) -> tuple[list[curves.Option], Attack | None]:
        attack = strongest_attack(subject.mechanism, setting_of(subject.run), subject.calibration)
        monitor(0.5)
        return [] if subject.released is None else curves.options(subject.released, subject.compared.budget), attack

    return tasks.current_result("accounting", "Accounting", compute, of=subject.run, kept=False)


def headline(subject: noise_comparison.Accounted, accountants: Sequence[curves.Option], attack: Attack | None) -> None:
    """The noise that the tightest proof needs, and the one that needs most; or the method's own noise; in one sentence."""
    cal, title = subject.calibration, f"{subject.mechanism.label} at {words.budget(subject.calibration.budget)}"
    if subject.released is None:
        noise = (
            f"it adds {cal.noise_family.name} noise of scale {words.three(cal.noise_scale)}"
            if cal.noise_scale > 0
            else "no noise"
        )
        panels.headline(f"{title}: {noise}; {words.attacks(cal, attack)}.", of=subject.run)
        return
    smallest = min((o for o in reversed(accountants) if o.status is Status.PROVED), key=lambda o: o.sigma)
    largest = max((o for o in accountants if math.isfinite(o.sigma)), key=lambda o: o.sigma)
    panels.headline(
        f"{title}: the tightest proof needs noise σ = {words.three(smallest.sigma)}; "
        f"others ask for up to {words.three(largest.sigma / smallest.sigma)} times as much.",
        of=subject.run,
    )


def own_noise(subject: noise_comparison.Accounted) -> None:
    """A note on the noise of a method whose releases no accountant can compare."""
    cal = subject.calibration
    st.header("How its noise is set", anchor=False)
    rows = [
        ("Noise", cal.noise_text if cal.noise_scale > 0 else "none"),
        ("Sensitivity", f"{cal.sensitivity_text}: {cal.sensitivity_source}"),
        ("Accountant", cal.accountant),
        ("Guarantee", words.guarantee(cal, subject.mechanism)),
    ]
    tables.table(rows, (subject.mechanism.label, "value"))
    st.caption(
        "Accountants are compared for methods whose steps all release the same Gaussian query. This method "
        f"{'is calibrated otherwise' if cal.noise_scale > 0 else 'adds no noise'}. Another method can be chosen above."
    )


def bars(
    theme: Theme, subject: noise_comparison.Accounted, accountants: Sequence[curves.Option], overlay: Calibration | None
) -> None:
    """The noise that each accountant asks for.

    Args:
        overlay: how run A is calibrated, where it perturbs the same thing.
    """
    st.header("The same noise, by each accountant", anchor=False)
    cal = subject.compared
    items = [
        lines.Bar(
            o.name,
            o.sigma,
            f"{words.three(o.sigma)}  {words.LABELS[o.status][1]}" if math.isfinite(o.sigma) else "no bound",
            solid=o.status is Status.PROVED,
            strong=o.sigma > 0 and abs(o.sigma / cal.noise_scale - 1) < 1e-4,
        )
        for o in accountants
    ]
    if overlay is not None:
        sign = words.LABELS[overlay.status][1]
        items.append(lines.Bar("A, as it runs", overlay.noise_scale, f"{words.three(overlay.noise_scale)}  {sign}"))
    look = pictures.method_look(subject.run.mechanism, theme)
    summary = (
        f"Noise σ per coordinate that each accountant needs for {words.budget(cal.budget)}. Hatched bars are not proved; the "
        f"strong bar is what {subject.mechanism.label} adds: "
        + "; ".join(f"{o.name} {words.three(o.sigma)}" for o in accountants if math.isfinite(o.sigma))
        + "."
    )
    fig = lines.bars(items, look, theme, x="noise σ")
    charts.chart(fig, "sigmas", summary, lambda: curves.accountants(accountants), of=subject.run)


def other_run(a: Outcome, attack: Attack | None, subject: noise_comparison.Accounted) -> None:
    """A comparison with run A, in words: noise and best possible attack."""
    parts, cal = [], subject.calibration
    if a.spec.mechanism == subject.run.mechanism and a.calibration.noise_scale > 0:
        ratio = words.three(cal.noise_scale / a.calibration.noise_scale)
        parts.append(f"the noise here is {ratio} times that of A")
    if a.attack is None:
        parts.append("no bound on attacks is proved for A")
    elif attack is not None:
        parts.append(pinned.compare_bounds(a.attack, attack))
    panels.text(f"A is {words.title(a.spec)}: {'; '.join(parts) or 'there is nothing to compare'}.")


def guarantee_badge(subject: noise_comparison.Accounted) -> None:
    """The guarantee, and where to attack it."""
    guarantee.badge(subject.calibration, subject.mechanism)
    links.examine(subject.run.mechanism)


def draw_sources(spec: RunSpec, accountants: Sequence[curves.Option]) -> None:
    """Formulas and sources of the accountants and of the attacker's curve, and the call."""
    with st.expander("How is this computed?"):
        for o in accountants:
            note = f" {words.markdown(o.note[:1].upper() + o.note[1:])}." if o.note else ""
            st.markdown(f"**{words.markdown(o.name)}**: σ = {words.three(o.sigma)}. {words.markdown(o.source)}.{note}")
            st.latex(o.formula)
        st.markdown("**Best possible attack**")
        st.latex(
            r"\begin{gathered}1-f(a)=\Phi(\Phi^{-1}(a)+\mu)\ \text{(Dong, Roth, Su 2022)}\\"
            r"f(a)=\max(0,\,1-\delta-e^\varepsilon a,\,e^{-\varepsilon}(1-\delta-a))\end{gathered}"
        )
        st.markdown(
            "For one Gaussian the first is exact. For sampled batches and random sensitivities the second is "
            "used at many points of δ(ε)."
        )
        repeat.python_of(
            spec,
            "found = accounted_release(spec)\ntables.options(found.released, found.compared.budget)",
            "from dpviz.experiments.studies.noise_comparison import accounted_release",
            "from dpviz.privacy.accounting import tables",
        )
        repeat.shell(f"{shell_call(spec, 'calibrate')} --accountants")


def usefulness(subject: noise_comparison.Accounted, theme: Theme, accountants: Sequence[curves.Option]) -> None:
    """The metric with the noise of each accountant."""
    spec, mechanism, cal = subject.run, subject.mechanism, subject.calibration
    finite = [o for o in accountants if math.isfinite(o.sigma)]
    scales = [o.sigma for o in finite]
    size = setting_of(spec).n * setting_of(spec).m
    measure = metric.chosen_metric(spec)
    levels = levels_of([measure.id])
    work = partial(noise_comparison.metrics_by_noise, spec, mechanism, cal, scales, metrics=levels)
    doing, given = "Training with each of these noises", (mechanism.id, levels, scales)
    ask = "" if size < 200_000 else "Train with each of these noises and show what it does to the metric"
    result, _ = tasks.observe("accountant-accuracy", doing, work, of=spec, given=given, ask=ask)
    if result is None or len(result[measure.column]) != len(finite):
        return
    values, baselines = result[measure.column], setup_for(spec).baselines_in([measure.id])[measure.column]
    base, floor = float(baselines["non-private"]), float(baselines["majority"])
    if not np.isfinite([*values.ravel(), base]).all():
        panels.empty(f"{measure.label} has no value here: {words.NO_VALUE[measure.needs]}. Choose another metric in the sidebar.")
        return
    scale = 100 if measure.shares else 1
    items = [
        lines.Bar(
            o.name,
            scale * float(a.mean()),
            f"{words.metric_value(measure, float(a.mean()))} ± {words.deviation(a, shares=measure.shares)}",
            solid=o.status is Status.PROVED,
            strong=abs(o.sigma / cal.noise_scale - 1) < 1e-4,
        )
        for o, a in zip(finite, values, strict=True)
    ]
    summary = (
        f"Test {measure.within} with each noise, mean ± one standard deviation over {spec.seeds} noise draws, the same "
        f"draws for all; non-private "
        f"{words.metric_value(measure, base)}, majority {words.metric_value(measure, floor)}. {words.OUTSIDE}"
    )
    table = pd.DataFrame({"accountant": [o.name for o in finite], "sigma": scales, measure.column: values.mean(axis=1)})
    look = pictures.method_look(mechanism.id, theme)
    if measure.shares:
        low = 10 * math.floor((min([b.value for b in items] + [100 * v for v in (floor,) if math.isfinite(v)]) - 2) / 10)
        fig = lines.bars(items, look, theme, x=f"test {measure.within}, %", span=(max(low, 0), 118), most=100.0)
    else:
        summary += " Lower is better."
        fig = lines.bars(items, look, theme, x=f"test {measure.within}")
    charts.chart(fig, "accountant-accuracy", summary, lambda: table, of=spec)


def papers(spec: RunSpec) -> None:
    """For each mechanism: the noise that its paper adds and the noise that is needed."""
    setting, budget = setting_of(spec), resolve(spec).budget
    tables.table(
        lambda: [_published(row) for row in noise_comparison.published_noise(spec)],
        ("method", "paper's noise", "needed", "paper's over needed", "guarantee", "what the paper's noise gives"),
    )
    rule = "" if spec.lam else ", λ by each method's rule"
    panels.note(
        f"At {words.budget(budget)}, n = {setting.n:,}, default settings{rule}; each in its own unit (per coordinate, on what "
        "that method perturbs), so compare along a row. Above 1 the paper adds too much, below 1 too little."
    )


def _published(row: noise_comparison.PublishedNoise) -> tuple[str, ...]:
    """One line of the table, in words."""
    if row.in_use is None or row.published is None:
        return row.mechanism.label, "–", "–", "–", words.LABELS[Status.NONE][0], row.refusal
    proved = row.in_use.proved_budget is not None
    says = f"its noise proves {words.budget(row.published.proved_budget)}" if row.published.proved_budget else "nothing is proved"
    if proved and not row.own_constants:
        says = "the paper leaves its constant open, or is exact"
    return (
        row.mechanism.label,
        words.three(row.published.noise_scale) if row.own_constants or not proved else "–",
        words.three(row.needed) if proved else "no noise of this kind is proved",
        words.three(row.ratio) if math.isfinite(row.ratio) else "–",
        words.guarantee(row.in_use, row.mechanism()),
        says,
    )


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """All of them, for a run."""
    return (compare_choice(spec), *CONTROLS, ledger.RELEASES)
