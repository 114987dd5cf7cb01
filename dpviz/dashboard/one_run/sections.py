"""Below the picture of one run: guarantee, numbers, attack, weights, gap, formulas; a model to publish; run A beside run B."""

import uuid
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from dpviz.common.limits import demo
from dpviz.common.progress import Monitor
from dpviz.dashboard.components import charts, folds, guarantee, panels, repeat, tables
from dpviz.dashboard.frame import best_attack, pinned
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.experiments.run.resolve import dataset_of
from dpviz.experiments.run.settings import PRIVATE, SETTINGS, STANDARDISED
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures.style import Theme
from dpviz.mechanisms import Calibration, get_mechanism, list_mechanisms
from dpviz.models import get_model
from dpviz.privacy.budget import Status
from dpviz.releasing import release
from dpviz.reporting import pictures, words


def draw(outcome: Outcome, theme: Theme) -> None:
    """Explanations of the picture, folded away."""
    folds.sections(
        folds.Section("Guarantee and best possible attack", lambda: attacker(outcome, theme), sent="attack"),
        folds.Section("Numbers, weights and optimality gap", lambda: numbers_and_pictures(outcome, theme), sent="numbers"),
        folds.Section("A model to publish", lambda: publish(outcome.spec), asked="release"),
    )
    draw_sources(outcome)


def numbers(outcome: Outcome) -> None:
    """The numbers behind the first picture."""
    cal, base, floor = outcome.calibration, outcome.non_private, outcome.majority
    draws = f"over {len(outcome.accuracy)} noise draw{'s' if len(outcome.accuracy) != 1 else ''}"
    rows = [
        ("Test accuracy", _mean(outcome.accuracy), words.percent(base.accuracy), words.percent(floor.accuracy)),
        ("Training accuracy", _mean(outcome.train_accuracy), *(words.percent(o.train_accuracy) for o in (base, floor))),
        ("Training objective", f"{outcome.objective.mean():.4g}", f"{base.objective:.4g}", "–"),
        ("Optimality gap", words.three(float(pictures.gaps(outcome).mean())), "0", "–"),
    ]
    cost, measure = outcome.cost, outcome.cost.metric
    if measure.id != "accuracy":
        spread = f" {words.spread_text(cost.private, shares=measure.shares)}" if len(cost.private) > 1 and cost.has_value else ""
        private = words.metric_value(measure, cost.mean) + spread.partition(" over")[0]
        best, floor_value = words.metric_value(measure, cost.non_private), words.metric_value(measure, cost.majority)
        rows.insert(0, (f"Test {measure.within}", private, best, floor_value))
    if outcome.expected_accuracy is not None:
        expected = words.percent(outcome.expected_accuracy)
        rows.insert(-3, ("Expected test accuracy (closed form)", expected, words.percent(base.accuracy), "–"))
    label = list_mechanisms()[outcome.spec.mechanism].label
    tables.table(rows, ("", f"{label}, {draws}", "Non-private", "Majority"))
    noise = "no noise" if cal.noise_scale == 0 else f"{cal.noise_family.name} noise of scale {words.three(cal.noise_scale)}"
    bound = (
        f"is {words.three(cal.sensitivity)} ({cal.sensitivity_source})"
        if np.isfinite(cal.sensitivity)
        else f"has no bound here ({cal.sensitivity_source})"
    )
    data = dataset_of(outcome.spec)
    at = pictures.lambda_note(outcome.spec)
    at = at and f"Objective and gap of the private models are{at}. "
    spread = f"± is one standard deviation {draws}. " if len(outcome.accuracy) > 1 else ""
    panels.note(
        f"{spread}{at}The mechanism adds {noise} to {cal.query}; its sensitivity {bound}. "
        + words.preprocessing(data.declared, any(one.id == "ranges" for one in data.preparations))
    )


def attacker(outcome: Outcome, theme: Theme) -> None:
    """The guarantee, and the best possible attack at every rate of false alarms; words where nothing is proved."""
    guarantee.badge(outcome.calibration, outcome.spec.build(), fold=False)
    panels.title("Best possible attack")
    if outcome.calibration.status is Status.NONE:
        panels.empty("**Nothing is protected.** An attacker who sees the model may be sure about any one person.")
        return
    best_attack.draw("attacker", outcome.spec, theme, outcome.attack)


def numbers_and_pictures(outcome: Outcome, theme: Theme) -> None:
    """The numbers, and both pictures of the parameters where there is something to draw."""
    numbers(outcome)
    weights, gap = partial(pictures.weights, outcome, theme), partial(pictures.gap, outcome, outcome.cost, theme)
    for key, title, why, make in (
        ("weights", "Weights without and with noise", pictures.without_weights(outcome), weights),
        ("gap", "Optimality gap", pictures.gap_reason(outcome), gap),
    ):
        panels.title(title)
        if why:
            panels.empty(why)
        else:
            charts.deferred_chart(key, make, outcome.spec)


def draw_sources(outcome: Outcome) -> None:
    """Formulas, sources and calls."""
    cls, cal = list_mechanisms()[outcome.spec.mechanism], outcome.calibration
    formulas = [
        r"\min_\theta\; \tfrac1n\sum_i \varphi(y_if_\theta(x_i)) + \tfrac{\lambda}{2}\lVert\theta\rVert^2,\qquad f_\theta(x)="
        + get_model(outcome.spec.model).formula
    ]
    if cal.proved_budget is not None:
        formulas.append(
            r"\Pr[\text{guess right}] \le \tfrac12\Bigl(1 + \tfrac{e^{\varepsilon} - 1 + 2\delta}{e^{\varepsilon} + 1}\Bigr)"
            r"\;\text{(Kairouz, Oh, Viswanath 2015)},\qquad \Phi(\mu/2)\;\text{for Gaussian noise (Dong, Roth, Su 2022)}"
        )
    if cls.rate:
        formulas.append(rf"\text{{published utility rate: }} {cls.rate}")
    sources = [
        f"{cls.label}: {cls.citation}.",
        f"Guarantee: {cls.guarantee}",
        f"Noise: {cls.noise_enters} Scale {words.three(cal.noise_scale)} ({cal.noise_family.name}); sensitivity: "
        f"{cal.sensitivity_text}, {cal.sensitivity_source}. Accountant: {cal.accountant}. {cal.conversion}",
    ]
    repeat.computation(outcome.spec, formulas, sources, outcome.cost.metric.id)


def _mean(values: np.ndarray) -> str:
    spread = f" ± {words.deviation(values)}" if len(values) > 1 else ""
    return words.percent(float(values.mean())) + spread


#: what the page asks for each switch of `dpviz release`, but for private ranges, which need a table that is named as a file
SWITCHES = {
    "all-rows": "Train on all rows, and not on 80 % of them",
    "ranges-from-data": "Publish ranges and categories that were read from the rows",
    "i-know-this-is-not-proved": "Publish a model whose guarantee is only claimed",
}
_PRESSED = "dpviz.release"  # (run, a name for the press, answers): each press trains another model


def publish(spec: RunSpec) -> None:
    """The form, and the files of the model that was released last at this run."""
    if demo():
        panels.note("A demonstration releases no model. `dpviz release` does on a machine of your own.")
        return
    st.markdown(
        "The models above have noise from a seed and **must not be published**. One that may be is trained for it, with "
        "randomness of the operating system. **Every click gives another model and spends the budget again**; a ledger that adds "
        "up what releases cost is kept by the shell (`dpviz release --ledger`)."
    )
    if spec.row_scaling == STANDARDISED:
        panels.note("A model of standardised rows is not released yet: choose another row scaling.")
        return
    if spec.ranges == PRIVATE:
        panels.note("With private ranges the shell releases a model, of a table of your own: `dpviz release table.csv`.")
        return
    with st.form("release", border=False):
        rows, looked, unproved = (st.checkbox(label) for label in SWITCHES.values())
        tried = st.number_input("Settings that were tried on these rows, for the card", 1, 10_000, value=None, step=1)
        asked = st.form_submit_button(f"Train a model and spend ε = {words.three(spec.epsilon)}")
    if asked:
        how = {"all_rows": rows, "ranges_from_data": looked, "unproved": unproved, "tried": tried}
        st.session_state[_PRESSED] = spec, uuid.uuid4().hex, how
    run, press, how = st.session_state.get(_PRESSED, (None, "", {}))
    if run != spec:
        return

    def work(monitor: Monitor) -> tuple[bytes, Calibration]:
        # the seed of the address belongs to the explorer
        made = release(replace(spec, seed=RunSpec.seed), monitor=monitor, call="the app", **how)
        return made.to_zip(), made.calibration

    made = tasks.current_result("release", "Training a model to publish", work, of=spec, given=press)
    if made is not None:
        content, cal = made
        st.success(f"Released: {cal.sentence}; proved: {cal.proved_budget or 'nothing'}. Read card.md before you publish it.")
        st.download_button("Download model.json and card.md (ZIP)", content, "model.zip", on_click="ignore", key="release-zip")


def differences(a: Outcome, b: Outcome) -> None:
    """The differences between the runs, in a sentence and in a table."""
    panels.text(sentence(a, b))
    rows = [(name, x, y) for name, x, y in zip(("Run", *_NAMES), _column(a), _column(b), strict=True)]
    tables.table([("Settings that differ", *_settings(a.spec, b.spec)), *rows[1:]], ("", f"A: {rows[0][1]}", f"B: {rows[0][2]}"))


_NAMES = ("Private", "Cost of privacy", "Its parts", "Without privacy", "An attacker is right at most", "Guarantee")


def _column(outcome: Outcome) -> tuple[str, ...]:
    """The table's column for one run."""
    cost, measure = outcome.cost, outcome.cost.metric
    values = (
        (
            words.metric_value(measure, float(cost.private.mean())),
            words.privacy_cost(cost),
            words.split(cost),
            words.metric_value(measure, cost.non_private),
        )
        if cost.has_value
        else ("no value",) * 4
    )
    limit = "–" if outcome.attack is None else words.percent(outcome.attack.accuracy)
    return (words.title(outcome.spec), *values, limit, words.guarantee(outcome.calibration, outcome.spec.build()))


def _settings(a: RunSpec, b: RunSpec) -> tuple[str, str]:
    """The settings that differ, under the names of their controls; one that is left out is at its default."""
    one, other = _values(a), _values(b)
    keys = [k for k in one | other if one.get(k) != other.get(k)]
    texts = [", ".join(f"{k} {values[k]}" for k in keys if k in values) or "none" for values in (one, other)]
    return texts[0], texts[1]


def _values(spec: RunSpec) -> dict[str, str]:
    """All settings of a run in words, those of its mechanism too."""
    mechanism = get_mechanism(spec.mechanism)
    run = {k: v for k, v in spec.to_dict().items() if k in SETTINGS and v is not None}
    own = mechanism.defaults() | dict(spec.params)
    knobs = mechanism.knobs()
    settings = {SETTINGS[k].label: SETTINGS[k].in_words(v) for k, v in run.items()}
    return settings | {
        knobs[k].label: "automatic" if knobs[k].automatic and not v else knobs[k].in_words(v) for k, v in own.items()
    }


def sentence(a: Outcome, b: Outcome) -> str:
    """The difference of B from A, with the spread that it has to exceed."""
    measure = b.cost.metric
    parts = []
    if a.spec.dataset != b.spec.dataset:
        parts.append("the datasets differ")
    if a.cost.has_value and b.cost.has_value and a.cost.metric.id == measure.id:
        change = float(b.cost.private.mean() - a.cost.private.mean())
        size = words.amount(measure, abs(change))
        unit = " points" if measure.shares and size != "nothing" else ""
        way = "higher" if change > 0 else "lower"
        equal = f"{measure.within} is the same"
        parts.append(equal if size == "nothing" else f"{measure.within} is {size}{unit} {way}")
    if a.attack is not None and b.attack is not None:
        parts.append(pinned.compare_bounds(a.attack, b.attack))
    elif (a.attack is None) != (b.attack is None):
        parts.append(f"only {'A' if b.attack is None else 'B'} has a proved bound on attacks")
    return f"B against A: {'; '.join(parts) or 'nothing can be compared'}."
