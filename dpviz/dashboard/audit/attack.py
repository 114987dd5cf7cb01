"""Attacks on one mechanism and on all of them: controls, numbers and pictures; the page puts them below each other."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from dpviz.auditing import SCORES, AuditResult, Pair, watch_run
from dpviz.auditing.result import BY_BOUND, BY_NOISE, EXCEEDED, NO_CLAIM
from dpviz.auditing.runs import CHOSEN, KINDS, KINDS_OF_PERSONS, WORST
from dpviz.common.limits import most_in_demo
from dpviz.dashboard.components import charts, panels, repeat
from dpviz.dashboard.frame import fields
from dpviz.dashboard.jobs import tasks, watching
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.dashboard.jobs.job import Job
from dpviz.experiments.run.resolve import dataset_of, resolve
from dpviz.experiments.run.setup import setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures import membership as pictures
from dpviz.figures.story import two_histograms
from dpviz.figures.style import Theme
from dpviz.privacy.audit_bounds import epsilon_ceiling, power
from dpviz.privacy.budget import Budget, corner, trade_off
from dpviz.reporting import words
from dpviz.reporting.calls import shell_call, with_spec

RUNS = ("200", "1000", "5000", "20000")
WEAK = 0.8  # share of the noise in the example of what so many trainings can show
UNSAFE = 0.75  # share of correct guesses from which an allowed attack is not left to sound safe
LARGE = 300_000  # training rows times parameters from which fewer models are trained unasked
_power = lru_cache(256)(power)
#: verdicts in words, sign and colour, never colour alone; an audit never confirms
_SHOWN = {EXCEEDED: ("✗", "red"), NO_CLAIM: ("–", "gray")}


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """The page's fields in the address: neighbouring pair, rows, and models trained on each dataset."""
    persons = attacks_persons(spec)
    ids = f"The id of a training row{' of the person' if persons else ''}, as on the other pages."
    label, kinds = ("Who is attacked", KINDS_OF_PERSONS) if persons else ("Which row is attacked", KINDS)
    return (
        fields.choice("pair", label, kinds, "most-influential", few=0),
        fields.choice(
            "runs",
            "Models trained on each dataset",
            {n: f"{int(n):,}" for n in RUNS if int(n) <= most_in_demo("trainings")},
            _usual(spec),
            few=0,
        ),
        fields.row("row", "Row of the person" if persons else "Row", spec, ids),
        fields.row("other", "Replaced by row", spec, ids),
    )


def attacks_persons(spec: RunSpec) -> bool:
    """True where all rows of one person are attacked."""
    return fields.read_or_default(lambda: bool(dataset_of(spec).person_rows), False)


def _usual(spec: RunSpec) -> str:
    """The default number of trained models: fewer on large tables."""
    setting = fields.read_or_default(lambda: setting_of(spec), None)
    return "1000" if setting is None or setting.n * setting.m <= LARGE else "200"


class Asked(NamedTuple):
    """The chosen attack: the kind of pair, ids of its rows, and the models trained on each dataset."""

    pair: str
    row: int | None
    other: int | None
    runs: int


def controls(own: fields.Group) -> Asked:
    """Draws them, rows only where the pair uses them."""
    asked = [key for key, pairs in CHOSEN.items() if own["pair"].value() in pairs]
    places = st.columns(2 + len(asked))
    pair, runs = own["pair"].draw(place=places[0]), int(own["runs"].draw(place=places[1]))
    chosen = {key: own[key].draw(place=place, placeholder="row id") for key, place in zip(asked, places[2:], strict=True)}
    return Asked(pair, chosen.get("row"), chosen.get("other"), runs)


def attack(spec: RunSpec, asked: Asked) -> Job[Any]:
    """The game as a task: started at once for the settings on the screen."""
    fixed = replace(spec, seeds=1)
    key = f"audit {resolve(fixed).key()} {asked.pair} {asked.row} {asked.other} {asked.runs}"
    return tasks.attack_job(key, lambda monitor: watch_run(fixed, *asked, monitor=monitor), "audit", fixed.dataset)


def headline(task: Job[Any], spec: RunSpec) -> None:
    """The attack's result in one sentence, redrawn while it goes on."""

    def draw() -> None:
        if task.results:
            pair, result = task.results[-1]
            panels.headline(*sentence(result, pair, spec, task.over), of=spec)
        else:
            differ = "the rows of one person" if attacks_persons(spec) else "one row"
            panels.headline(f"{words.title(spec)}: models are trained on two datasets that differ in {differ}.", of=spec)

    watching.draw_live(task, draw, every=1.0)


def other_run(a: Outcome) -> None:
    """The bound by the guarantee of run A, in words."""
    allows = "no bound on attacks is proved"
    if a.attack is not None:
        allows = f"at most {words.percent(a.attack.accuracy)} of guesses are right"
    panels.text(f"A is {words.title(a.spec)}: {allows}.")


def show(task: Job[Any], spec: RunSpec, theme: Theme, overlay: Outcome | None) -> None:
    """The attack so far as two pictures, redrawn while it goes on.

    Args:
        spec: the run that is attacked.
        overlay: what run A gave.
    """

    def draw(found: tuple[Pair, AuditResult]) -> None:
        chosen, result = found
        left, right = st.columns(2, gap="large")
        with left:
            a = None if overlay is None or overlay.attack is None else overlay.attack.accuracy
            _guesses(result, chosen, task.over, spec, theme, a)
        with right:
            _clouds(result, chosen, spec, theme)

    tasks.follow(task, draw, "Training models on both datasets", every=1.0)
    panels.note("Attacked models have the run’s hyperparameters, automatic ones too, also where the pair has fewer rows.")


def details(task: Job[Any], spec: RunSpec, asked: Asked, theme: Theme) -> None:
    """Explanations of the verdict, folded away; the bounds count when the attack is over."""

    def draw(found: tuple[Pair, AuditResult]) -> None:
        if task.over:
            with st.expander("Lower bounds on ε"):
                _numbers(found[1], found[0])
            with st.expander("False alarms and detections"):
                _curve(found[1], spec, theme)
            _how(spec, asked)

    tasks.follow(task, draw)


def sentence(result: AuditResult, pair: Pair, spec: RunSpec, over: bool) -> tuple[str, ...]:
    """Sentences on an attack: its accuracy, the bound by the guarantee, and the verdict."""
    cal, right = result.calibration, words.percent(result.guessed_right)
    does = f"with {words.title(spec)} an attacker guesses {pair.asks} right {right} of the time"
    if not (over and result.runs == result.requested):
        return (f"After {result.runs:,} of {result.requested:,} models trained on each dataset: {does}.",)
    low, high = result.guessed_right_limits
    says = f"No better than a coin: {does}." if low <= 0.5 <= high else f"Yes: {does}; a coin toss is right half of the time."
    promise = cal.proved_budget or cal.claimed_budget
    if result.verdict == NO_CLAIM or promise is None or result.allowed is None:
        return says, "This method claims no privacy."
    allows = f"{'A proved' if cal.proved_budget else 'The claimed'} ε = {words.three(promise.epsilon)}"
    allows += f" allows up to {words.percent(result.allowed)}"
    if result.verdict == EXCEEDED:
        by = result.evidence_against(cal.claimed_budget) or result.evidence_against(cal.proved_budget)
        how = f"ε is at least {words.three(result.epsilon_lower)}" if by == BY_BOUND else by
        return says, f"{allows}: claim exceeded ({how})."
    if result.guessed_right >= UNSAFE:
        return says, f"{allows}: no violation, and hardly any protection."
    if low <= result.allowed < result.guessed_right:
        allows += f", below the measured share but inside its confidence limits ({words.percent(low)} to {words.percent(high)})"
    return says, f"{allows}: no violation found."


def _guesses(result: AuditResult, pair: Pair, over: bool, spec: RunSpec, theme: Theme, overlay: float | None) -> None:
    """The share of correct guesses beside what is allowed, also to run A, with the verdict."""
    final = over and result.runs == result.requested
    sign, colour = _SHOWN.get(result.verdict, ("○", "gray")) if final else ("…", "gray")
    low, high = result.guessed_right_limits
    st.header("How often it guesses right", anchor=False)
    st.badge(f"{sign} {result.verdict if final else 'not finished'}", color=colour)  # type: ignore[arg-type]
    fig = pictures.guesses(
        result.guessed_right, (low, high), result.allowed, theme, exceeded=final and result.verdict == EXCEEDED, overlay=overlay
    )
    summary = (
        f"Right in {words.percent(result.guessed_right)} of {2 * result.middle.trials:,} guesses ({100 * result.confidence:g} % "
        f"limits {words.percent(low)} to {words.percent(high)}); a coin toss is right in 50 %. Pair: {pair.why}"
    )
    charts.chart(fig, "guesses", summary, of=spec)


def _numbers(result: AuditResult, pair: Pair) -> None:
    cal = result.calibration
    final = result.runs == result.requested
    claim = cal.claimed_budget or cal.proved_budget
    by = result.evidence_against(cal.claimed_budget) or result.evidence_against(cal.proved_budget)
    columns = st.columns(4)
    for column, (name, budget) in zip(
        columns, (("Claimed ε", cal.claimed_budget), ("Proved ε", cal.proved_budget)), strict=False
    ):
        column.metric(name, words.three(budget.epsilon) if budget else "none")
    columns[2].metric(
        "Audited ε, at least" if final else "Audited ε, so far",
        words.three(result.epsilon_lower),
        delta=("✗ above the claim" if by == BY_BOUND else f"✗ {by}") if by and final else None,
        delta_color="inverse",
        help=f"{100 * result.confidence_of_each:g} % confidence, free of assumptions (Clopper-Pearson), at δ = "
        f"{words.three(cal.budget.delta)}.",
    )
    columns[3].metric(
        f"Most with {result.requested:,} models",
        words.three(_ceiling(result)),
        help="No attack with so many models shows a larger ε. A correct method shows far less, because its worst errors are too "
        "rare to be counted.",
    )
    panels.note(_apart(result, claim, by, final))
    start = (
        ""
        if pair.first.setting.linear
        else " Every training starts from the same weights, which the attacker knows: a start drawn anew would hide the "
        "difference behind its own noise, and no guarantee counts on that."
    )
    meaning = next((meaning for name, meaning in SCORES.items() if result.score.split()[0].startswith(name)), "")
    attacker = f"Attacker: {meaning} (In code: {result.score}.)" if meaning else f"Attacker: {result.score}."
    panels.note(f"Pair: {pair.why} n = {pair.first.n:,}, {pair.first.m} parameters. {attacker}{start}")
    for warning in result.warnings:
        panels.warning(warning)


def _apart(result: AuditResult, claim: Budget | None, by: str, final: bool) -> str:
    """The tighter bounds, each with its assumption, and what the free bound can see at all."""
    gaussian, measured, p = result.gaussian_epsilon_lower, result.measured_epsilon_lower, result.p_value(claim)
    sentences = []
    if gaussian is not None:
        sentences.append(
            f"Under an assumption, and so apart: ε is at least {words.three(gaussian)} if the trade-off is Gaussian. "
            f"{result.assumption}"
        )
    if measured is not None:
        sentences.append(
            f"If moreover the two models without noise are where they are declared to be, the noise measured around them shows "
            f"ε of at least {words.three(measured)}."
        )
    if not sentences:
        sentences.append(
            "No tighter bound under a Gaussian assumption: nothing says that this mechanism's trade-off is Gaussian."
        )
    if p is not None and by and by != BY_BOUND:
        what = "So little noise" if by == BY_NOISE else "So few errors"
        sentences.append(f"{what} would have probability {p:.2g} if the claim held; that is what speaks against it.")
    if final and claim is not None and claim.delta > 0:
        free = _power(claim, result.counts.trials, WEAK, result.confidence_of_each)[0]
        counted = _power(claim, result.middle.trials, WEAK, result.confidence_of_each)[1]
        sentences.append(
            f"How much so many models can show: if a method added {100 * WEAK:g} % of the Gaussian noise that its claim needs, "
            f"the bound without assumptions would refute it in {words.percent(free)} of such audits, and errors counted under "
            f"the Gaussian assumption in {words.percent(counted)}"
            + (", and the measured noise nearly always." if measured is not None else ".")
        )
    return " ".join(sentences)


def _ceiling(result: AuditResult) -> float:
    """The largest epsilon that the counted part of all N runs can show."""
    counted = result.counts.trials * result.requested // max(result.runs, 1)
    return epsilon_ceiling(max(counted, 1), result.calibration.budget.delta, result.counts_confidence)


def _clouds(result: AuditResult, pair: Pair, spec: RunSpec, theme: Theme) -> None:
    st.header("What the attacker sees", anchor=False)
    what = "person" if attacks_persons(spec) else "row"
    sides = (f"with the {what}", f"without the {what}") if pair.name == "without" else ("first dataset", "second dataset")
    means = result.cloud.groupby("side")["u"].agg(["mean", "std"])
    apart = abs(means["mean"].iloc[1] - means["mean"].iloc[0]) / max(float(means["std"].mean()), 1e-300)
    summary = "Histograms of what the attacker measures on at most 1,000 models of each dataset. The two " + (
        f"groups lie {words.three(apart)} standard deviations apart." if apart < 1e6 else "groups do not overlap at all."
    )
    charts.chart(two_histograms(result.cloud, sides, theme, height=300), "clouds", summary, lambda: result.cloud, of=spec)


def _curve(result: AuditResult, spec: RunSpec, theme: Theme) -> None:
    claim = result.calibration.claimed_budget or result.calibration.proved_budget
    allowed, label = None, ""
    if claim is not None:
        alarms = np.unique(np.r_[np.linspace(0, 1, 201), corner(claim)])
        allowed, label = (alarms, 1 - trade_off(claim, alarms)), words.budget(claim)
    counts = result.counts
    summary = (
        f"At its threshold the attacker raises {counts.false_positives:g} false alarms in {counts.trials:,} and misses "
        f"{counts.false_negatives:g} in {counts.trials:,}"
        + (f"; {label} allows what lies below the dotted line." if label else ".")
    )
    charts.chart(pictures.attack(result.curve, theme, allowed, label), "roc", summary, lambda: result.curve, of=spec)


def _how(spec: RunSpec, asked: Asked) -> None:
    with st.expander("How is this computed?"):
        st.latex(r"\varepsilon\ge\ln\frac{1-\delta-\overline{\mathrm{FN}}}{\overline{\mathrm{FP}}}")
        st.markdown(
            "Both errors with upper Clopper-Pearson limits (Kairouz, Oh, Viswanath 2015, Theorem 2.1); what chooses "
            "the attack is "
            "never counted. The largest of the two forms is taken. A bound above the claim refutes it; one below says nothing."
        )
        repeat.python(_call(spec, asked))
        repeat.shell(_shell(spec, asked))


def _call(spec: RunSpec, asked: Asked) -> str:
    """The call that repeats an audit."""
    arguments = {"kind": asked.pair, "row": asked.row, "other": asked.other, "runs": asked.runs}
    plain = {"kind": WORST, "row": None, "other": None}
    given = "".join(f", {name}={value!r}" for name, value in arguments.items() if name == "runs" or value != plain[name])
    return with_spec(spec, f"dpviz.audit_run(spec{given}).epsilon_lower")


def _shell(spec: RunSpec, asked: Asked) -> str:
    flags = {"pair": asked.pair, "row": asked.row, "other": asked.other, "runs": asked.runs}
    return " ".join([shell_call(spec, "audit"), *(f"--{k}={v}" for k, v in flags.items() if v not in (None, ""))])
