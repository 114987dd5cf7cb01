"""Two runs side by side: A is kept, B is the one that the controls move."""

from dpviz.dashboard.components import panels, tables
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import get_mechanism
from dpviz.mechanisms.attack import Attack, comparable_bounds
from dpviz.reporting import words


def differences(a: Outcome, b: Outcome) -> None:
    """The differences between the runs, in a sentence and in a table."""
    panels.text(sentence(a, b))
    rows = [(name, x, y) for name, x, y in zip(("Run", *_NAMES), _column(a), _column(b), strict=True)]
    tables.table([("Settings that differ", *_settings(a.spec, b.spec)), *rows[1:]], ("", f"A: {rows[0][1]}", f"B: {rows[0][2]}"))


_NAMES = ("Private", "Cost of privacy", "Its parts", "Without privacy", "An attacker is right at most", "Guarantee")


def _column(outcome: Outcome) -> tuple[str, ...]:
    """The table's column for one run."""
    cost, measure = outcome.cost, outcome.cost.metric
    if not cost.there:
        values = ("no value",) * 4
    else:
        values = (
            words.metric_value(measure, float(cost.private.mean())),
            words.privacy_cost(cost),
            words.split(cost),
            words.metric_value(measure, cost.non_private),
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


def compare_bounds(a: Attack, b: Attack) -> str:
    """A comparison of the bounds on an attacker, both computed in the same way."""
    one, other = comparable_bounds(a, b)
    size, more = words.part(abs(other - one)), "more" if other > one else "less"
    by = " by (ε, δ) alone" if (one, other) != (a.accuracy, b.accuracy) else ""
    if size == "nothing":
        return f"the bound on attacks is the same{by}"
    return f"an attacker may guess right {size} points {more} often{by}"


def sentence(a: Outcome, b: Outcome) -> str:
    """The difference of B from A, with the spread that it has to exceed."""
    measure = b.cost.metric
    parts = []
    if a.spec.dataset != b.spec.dataset:
        parts.append("the datasets differ")
    if a.cost.there and b.cost.there and a.cost.metric.id == measure.id:
        change = float(b.cost.private.mean() - a.cost.private.mean())
        size = words.amount(measure, abs(change))
        unit = " points" if measure.shares and size != "nothing" else ""
        way = "higher" if change > 0 else "lower"
        equal = f"{measure.within} is the same"
        parts.append(equal if size == "nothing" else f"{measure.within} is {size}{unit} {way}")
    if a.attack is not None and b.attack is not None:
        parts.append(compare_bounds(a.attack, b.attack))
    elif (a.attack is None) != (b.attack is None):
        parts.append(f"only {'A' if b.attack is None else 'B'} has a proved bound on attacks")
    return f"B against A: {'; '.join(parts) or 'nothing can be compared'}."
