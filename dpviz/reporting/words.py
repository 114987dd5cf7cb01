"""Numbers and guarantees in words. Free of streamlit, so that every sentence can be tested."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from dpviz.common.digits import three
from dpviz.experiments.run.metrics import METRICS, Metric
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.cost import Cost
from dpviz.experiments.sweeps.curves import Needed
from dpviz.mechanisms import Calibration, Mechanism, list_mechanisms
from dpviz.mechanisms.attack import Attack
from dpviz.models import STARTS
from dpviz.papers.saved import refutation
from dpviz.papers.verdict import Outcome
from dpviz.privacy.budget import Budget, Neighbouring, Status, status_sentence

RELATIONS = {
    Neighbouring.REPLACE_ONE: "replace-one: one person's row is exchanged for any other, n is public",
    Neighbouring.ADD_REMOVE: "add-remove: one person's row is there or not",
}
#: word, sign (never colour alone) and badge colour
LABELS = {
    Status.PROVED: ("proved", "✓", "green"),
    Status.PROVED_IF: ("proved if …", "◐", "blue"),
    Status.CLAIM: ("paper's claim", "✎", "orange"),
    Status.NONE: ("no guarantee", "✗", "red"),
}
REFUTED = ("refuted by audit", "✗", "red")
#: sign (never colour alone) and badge colour of what a check of a paper's sentence says
VERDICTS = {
    Outcome.HOLDS: ("✓", "green"),
    Outcome.ONLY_IF: ("◐", "blue"),
    Outcome.FAILS: ("✗", "red"),
    Outcome.BETTER: ("↑", "green"),
    Outcome.UNDECIDED: ("–", "gray"),
}

NO_MINIMUM = "The least objective of a network is not known, so a private one may come out below 0."


_SPECIAL = frozenset("\\`*_{}[]()<>#+!|~$:@&^=")
_SIGNS = re.compile(r" (?=[%…±])|(?<=[±≥]) ")
_HYPHEN = re.compile(r"(?<=[A-Z]-)(?=[A-Z])")
_EQUATION = re.compile(r" (?=\\?[=≥])|(?<=[=≥]) ")
_WRITTEN_OUT = re.compile(r"(?:https?|ftp|mailto|xmpp)(?=:)|www(?=\.)|(?=@)|:(?=[\w+/-]+:)", re.IGNORECASE)


def minimum(convex: bool) -> str:
    """The reference of optimality gaps."""
    return "the minimum without privacy" if convex else f"the best of {STARTS} long trainings without privacy"


def keep_together(text: str) -> str:
    """The same text in which no line ends between a number and its sign."""
    return _SIGNS.sub("\u00a0", text)


def sentence(text: str) -> str:
    """The same Markdown in which no line ends within "ε = 1" or "DP-GD" either, for large type."""
    return _HYPHEN.sub("\u2060", _EQUATION.sub("\u00a0", keep_together(text)))


def title(spec: RunSpec) -> str:
    """A run in a few words."""
    return f"{spec.build().label} at ε = {three(spec.epsilon)}"


def percent(share: float) -> str:
    """0.8213 → "82.1 %"."""
    return f"{100 * share:.1f}\u00a0%"


def times(value: float) -> str:
    """ "1 time", "0.4 times"."""
    return f"{three(value)} time{'' if value == 1 else 's'}"


def two(value: float) -> str:
    """A slope: −1.97."""
    return "none" if math.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def budget(value: Budget) -> str:
    """ "ε = 1, δ = 10⁻⁵", or "ε = 1" where delta is 0."""
    return f"ε = {three(value.epsilon)}" + (f", δ = {three(value.delta)}" if value.delta else "")


def spread_text(values: np.ndarray, *, shares: bool) -> str:
    """ "± 0.3 over 10 noise draws", one standard deviation (as every ± of the pages), in points where values are shares."""
    draws = f"{len(values)} noise draw{'s' if len(values) != 1 else ''}"
    return f"in {draws}" if len(values) == 1 else f"± {deviation(values, shares=shares)} over {draws}"


def deviation(values: np.ndarray, *, shares: bool = True) -> str:
    """One standard deviation, in points where values are shares; that of a single value is 0."""
    size = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return f"{100 * size:.1f}" if shares else f"{size:.3f}"


def attacks(cal: Calibration, attack: Attack | None) -> str:
    """The limit on an attacker, or the lack of one. Never a claim as a bound."""
    if cal.status is Status.NONE:
        return "nothing limits attacks"
    if attack is None:
        return "no limit on attacks is proved"
    return f"an attacker guesses right at most {percent(attack.accuracy)} of the time"


def part(points: float) -> str:
    """A part of a cost in percentage points: "2.3", "nothing" below 0.05, "−0.4" where it gained."""
    return "nothing" if abs(points) < 0.0005 else f"{100 * points:.1f}".replace("-", "−")


def parts(cost: Cost) -> dict[str, str]:
    """The parts of what a run loses by name, as changes of the metric: "noise −5.3", "training +1.8"; "" for nothing."""
    sign = -1 if cost.metric.higher_is_better else 1
    changes = {"training": sign * cost.training, "noise": sign * cost.noise}
    sizes = {name: amount(cost.metric, abs(change)) for name, change in changes.items()}
    return {
        name: "" if sizes[name] == "nothing" else f"{name} {'+' if change > 0 else '−'}{sizes[name]}"
        for name, change in changes.items()
    }


def split(cost: Cost) -> str:
    """The parts of what a run loses in words: "training −0.4, noise −5.3"."""
    return ", ".join(filter(None, parts(cost).values())) or "no part that can be seen"


#: difference, in shares or of a loss, that is no small one
LARGE = 0.03


def privacy_cost(cost: Cost) -> str:
    """The cost of privacy: "privacy costs 5.3 points"; what the test rows and draws cannot tell from 0 is no measurable cost.

    A large difference that they cannot tell from 0 is shown as its interval: it may be a cost.
    """
    if not cost.measurable and abs(cost.total) < LARGE * (1 if cost.metric.shares else cost.non_private):
        return "no measurable cost"
    if not cost.measurable:
        low, high = (amount(cost.metric, cost.total + side * cost.error) for side in (-1, 1))
        return f"too few test rows to tell: between {low} and {high}{' points' if cost.metric.shares else ''}"
    size = amount(cost.metric, abs(cost.total)) + (" points" if cost.metric.shares else "")
    return f"privacy costs {size}" if cost.total > 0 else f"{size} better than without privacy"


def headline(title: str, cost: Cost, cal: Calibration, attack: Attack | None) -> tuple[str, str]:
    """The answer of a page about one run: what it reaches and what that costs, and what limits an attacker.

    Args:
        title: its method and ε.
    """
    limit = attacks(cal, attack)
    second = f"{limit[:1].upper()}{limit[1:]}."
    if not cost.has_value:
        return f"{title}: {cost.metric.within} has no value here: {NO_VALUE[cost.metric.needs]}.", second
    without = metric_value(cost.metric, cost.non_private)
    return f"{title} has {target_text(cost.metric, cost.mean)}; without privacy, {without}: {privacy_cost(cost)}.", second


#: what is said wherever a metric on test rows is read
OUTSIDE = "Scores on test rows are not private: no ε covers them."

#: why a metric may have no value, by what it needs
NO_VALUE = {
    "labels": "no test row is of the positive class, and none is called so",
    "ranks": "the method releases no scores, or all test rows are of one class",
    "probabilities": "the model gives no probabilities",
}


def metric_value(metric: Metric, value: float) -> str:
    """A value of a metric: "82.1 %", or "0.412" for a loss; "no value" where it has none."""
    if math.isnan(value):
        return "no value"
    return percent(value) if metric.shares else f"{value:.3f}"


def target_text(metric: Metric, value: float) -> str:
    """A value of a metric that is asked for: "80.0 % accuracy", "a log loss of 0.412"."""
    return f"{percent(value)} {metric.within}" if metric.shares else f"a {metric.within} of {value:.3f}"


def metric_range(metric: Metric, low: float, high: float) -> str:
    """A range of a metric's values, in points for shares: "80.1 to 82.3"."""
    if math.isnan(low) or math.isnan(high):
        return "no value"
    return f"{100 * low:.1f} to {100 * high:.1f}" if metric.shares else f"{low:.3f} to {high:.3f}"


def amount(metric: Metric, value: float) -> str:
    """A part of a cost: points for shares (`part`), three decimals for losses."""
    return part(value) if metric.shares else "nothing" if abs(value) < 5e-4 else f"{value:.3f}".replace("-", "−")


def label(cal: Calibration, of: Mechanism) -> tuple[str, str, str]:
    """Word, sign and badge colour of a guarantee; those of a refutation where an audit refuted what `of` claims here."""
    return LABELS[cal.status] if refutation(of, cal) is None else REFUTED


def claim(cal: Calibration, of: Mechanism) -> str:
    """The claim of the paper, with the constant that it leaves open as it is set here; "" where it claims nothing."""
    if cal.claimed_budget is None:
        return ""
    constant = of.open_constant
    at = f" for some constant {constant}, which is {three(getattr(of, constant))} here" if constant else ""
    return f"The paper claims {budget(cal.claimed_budget)}{at}"


def guarantee(cal: Calibration, of: Mechanism) -> str:
    """The badge's text: sign, status and the budget that goes with it."""
    word, sign, _ = label(cal, of)
    shown = cal.proved_budget if cal.status in (Status.PROVED, Status.PROVED_IF) else cal.claimed_budget
    sentence = f"{sign} {status_sentence(cal.status, cal.looked_at, word)}"
    return f"{sentence}: {budget(shown)}" if shown is not None else sentence


def preprocessing(declared: bool, private: bool = False) -> str:
    """The values that preprocessing reads, and whether the guarantee covers them.

    Args:
        private: whether ranges of numbers were found privately.
    """
    if private:
        rest = (
            "categories are declared in advance" if declared else "categories were read from the rows, and ε does not cover this"
        )
        return f"Ranges of numbers were found privately, which a part of ε pays for; {rest}."
    if declared:
        return "Ranges and categories of this set are declared in advance: preparing the rows does not look at the data."
    return (
        "Preparing the rows looks at the data: each column's range and the list of categories are read from all rows, "
        "before any noise. ε does not cover this."
    )


def markdown(text: str) -> str:
    """Text from outside (an address, a file) as Markdown that shows it as it is: no emphasis, link, icon or formula.

    No line ends between a number and its sign (`keep_together`). Signs that Markdown obeys get a backslash. Links that are
    written out (www., http:, @) and icons (:name:) are found in the finished text, where no backslash is left; a word joiner,
    which is not seen, stands in them.
    """
    flat = _WRITTEN_OUT.sub(lambda match: match.group() + "\u2060", keep_together(" ".join(text.split())))
    return "".join("\\" + sign if sign in _SPECIAL else sign for sign in flat)


def best_method(
    names: Sequence[str],
    value: float,
    epsilon: float,
    floor: float,
    measure: Metric = METRICS["accuracy"],
    among: int = 1,
    over: bool = True,
) -> str:
    """The best proved method at a budget, in one sentence.

    Args:
        names: the best one, then those that cannot be told apart from it; none where no method is proved.
        value: the best one's metric.
        epsilon: of the budget.
        floor: the metric of the majority label, NaN where it has no value.
        measure: the metric.
        among: how many methods are compared.
        over: whether all of them are measured; otherwise the answer may still change.
    """
    if not names:
        none, lacks = ("None", "has a proved guarantee and a value") if over else ("No proved one", "is measured yet")
        return f"{none} of {among} methods {lacks} at ε = {three(epsilon)}."
    ties = len(names) - 1
    others = f" and {ties - 1} more" if ties > 2 else f" and {names[2]}" if ties == 2 else ""
    tied = f"; {names[1]}{others} {'are' if ties > 1 else 'is'} as good within the error" if ties else ""
    end = ", worse than guessing" if measure.higher_is_better and is_worse(value, floor) else ""
    shown = percent(value) if measure.id == "accuracy" else f"{measure.within} {metric_value(measure, value)}"
    return f"Best proved of {among} methods{'' if over else ' so far'} at ε = {three(epsilon)}: {names[0]}, {shown}{end}{tied}."


def needed_budget(
    least: Needed | None,
    target: float,
    labels: Mapping[str, str],
    interval: tuple[float | None, float | None] | None,
    named: str = "",
    measure: Metric = METRICS["accuracy"],
    top: float = math.nan,
) -> str:
    """The budget that a value of a metric needs, in one sentence or two.

    Args:
        least: what the proved method that needs least needs; None where no method is proved.
        interval: from `curves.needed_interval`.
        named: the mechanism that the sentence before names, which is "it" here.
        top: what the non-private model reaches; NaN where that is not known.
    """
    if least is None or least.epsilon is None:
        reached = "" if least is None else f" up to ε = {three(least.largest)}"
        none = f"For {target_text(measure, target)}: no proved method reaches it{reached}."
        out_of_reach = top < target if measure.higher_is_better else top > target
        if not out_of_reach:
            return none
        return f"{none} Nor does the non-private model, with {metric_value(measure, top)}: choose another target, or lower λ."
    name = "it" if least.mechanism == named else labels.get(least.mechanism, least.mechanism)
    return f"For {target_text(measure, target)}: {name} needs ε {'' if least.below else '≥ '}{read_off(least, interval)}."


def read_off(one: Needed, interval: tuple[float | None, float | None] | None) -> str:
    """A budget that was read off a curve, with its interval: "0.99 (0.7 to 1.4)"."""
    if one.epsilon is None:
        return f"not up to {three(one.largest)}"
    value = f"{'≤ ' if one.below else ''}{three(one.epsilon)}"
    if interval is None:
        return value
    low, high = (f"over {three(one.largest)}" if end is None else three(end) for end in interval)
    return f"{value} ({low} to {high})" if low != high else value


def is_worse(mean: float, floor: float) -> bool:
    """True where a mean lies below that of the majority label by more than what is shown."""
    return mean < floor - 0.0005


def caveat(status: str) -> str:
    """The caveat behind a name where nothing is proved, so that it is not compared as an equal."""
    return {Status.CLAIM.value: " (claim only)", Status.NONE.value: " (no guarantee)"}.get(status, "")


def duration(seconds: float) -> str:
    """ "12 s", "3 min", "2.1 h"."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f}\u00a0s"
    return f"{seconds / 60:.0f}\u00a0min" if seconds < 5400 else f"{seconds / 3600:.1f}\u00a0h"


def label_ids(text: str) -> str:
    """Mechanism ids in a sentence as labels; long ids first, since some are parts of others."""
    labels = {name: cls.label for name, cls in list_mechanisms().items() if cls.family != "reference"}
    for name in sorted(labels, key=len, reverse=True):
        text = text.replace(name, labels[name])
    return text
