"""Rules that turn sentences of papers into comparisons. A claim and a figure that say the same share one check.

The papers speak in words ("competitive", "similar", "almost 0"). What each word means is fixed here before anything is
computed. Every rule has a floor: what noise draws alone would explain is undecided and counts neither for nor against.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpviz.experiments.sweeps.curves import QUANTITIES
from dpviz.models import get_model
from dpviz.papers.numbers import Floats, Interval, Missing, complete_draws, difference, draws, log_ratio, paired_mean, places
from dpviz.papers.verdict import Comparison, Scope, Verdict, combine, summary

MARGIN = 0.005  # a lead counts from half a point
CLOSE = 0.01  # accuracies within one point are almost the same
CLOSE_GAP = math.log(2.0)  # gaps within a factor of two are almost the same
LEAD_GAP = math.log(1.05)  # a smaller gap counts from 5 %
ALMOST_ZERO = 0.01  # of F(0) - F(minimum), all that there is to be learned
SHARP = 0.05  # five points up and down again are a sharp fluctuation
RISE = 0.05  # with less to gain than five points no surge can be seen
SURGE = 0.5  # share of the way from majority to the non-private model
NOTHING = 0.01  # with all numbers in one point of accuracy, or 0.01 of the objective, methods cannot be distinguished
TINY = 1e-4  # of F(0) - F(minimum): below it, ratios of gaps say nothing
FLOOR_WORDS = (
    "Undecided where noise and splits do not let one tell (99 % intervals, paired over the splits where there are several), or "
    "where majority, the non-private model and all methods lie so close together that nothing could"
)


@dataclass(frozen=True)
class Check:
    """A rule for a sentence of a paper.

    Attributes:
        meaning: the rule in words, thresholds included.
        scope: where the sentence claims to be true; every place is one dataset and model.
        compare: (name of a place, its rows of a sweep's table) -> comparisons, one where the scope is not everywhere.
        methods, quantity: what it compares; none for a rule that has a floor of its own.
    """

    meaning: str
    scope: Scope
    compare: Callable[[str, pd.DataFrame], list[Comparison]]
    methods: tuple[str, ...] = ()
    quantity: str = "accuracy"

    def comparisons(self, table: pd.DataFrame) -> list[Comparison]:
        """All comparisons that a table allows."""
        return [one for place, part in places(table) for one in self._at(place, part)]

    def _at(self, place: str, part: pd.DataFrame) -> list[Comparison]:
        """The comparisons at one place."""
        try:
            here = self.compare(place, part)
            if not here:
                raise Missing(f"there are no complete numbers of {', '.join(self.methods)}")
            why = tie_reason(part, self.methods, self.quantity) if self.methods else ""
        except Missing as missing:
            return [Comparison(place, None, str(missing))]
        return [replace(one, holds=None, numbers=f"{one.numbers}, where {why}") for one in here] if why else here

    def __call__(self, table: pd.DataFrame) -> Verdict:
        """The verdict on a sweep's table."""
        comparisons = self.comparisons(table)
        return Verdict(combine(comparisons, self.scope), summary(comparisons, self.scope), self.rule)

    @property
    def rule(self) -> str:
        """The rule, where it has to be met, and what is left undecided."""
        return f"{self.meaning.rstrip('.')}, {self.scope}. {FLOOR_WORDS}."


def percent(quantity: str) -> bool:
    """True where a quantity is an accuracy, and differences are in points."""
    return quantity.endswith("accuracy")


def points(share: float, half: float = 0.0) -> str:
    """0.0123 is "+1.2 points"; with the half width of its interval "+1.2 ± 0.4 points"."""
    around = f" ± {100 * half:.1f}" if 0 < half < math.inf else ""
    return f"{round(100 * share, 1) + 0.0:+.1f}{around} points"  # never −0.0


def tie_reason(part: pd.DataFrame, methods: Sequence[str], quantity: str) -> str:
    """The reason for which nothing can be distinguished at one place, whatever the methods do; "" where something can."""
    means = np.concatenate(
        [values.mean(axis=1).to_numpy() for values in complete_draws(part, list(methods), quantity).values()] or [[]]
    )
    if percent(quantity):
        all_of_them = [*means, *part[["non_private_accuracy", "majority_accuracy"]].mean()]
        words = f"majority, non-private and all methods lie within {100 * NOTHING:g} point"
        return words if max(all_of_them) - min(all_of_them) < NOTHING else ""
    scale = learnable(part)
    above = means if quantity == "optimality_gap" else means - lowest_objective(part)
    if scale < NOTHING and (above < NOTHING).all():
        return f"only {scale:.2g} of the objective can be learned"
    if quantity == "optimality_gap" and len(above) and (above < TINY * scale).all():
        return f"all gaps are below {100 * TINY:g} % of what can be learned"
    return ""


def _ratio(log: float) -> str:
    return f"{math.exp(min(log, 700.0)):.2g}"


def leads(mechanism: str, other: str, quantity: str = "accuracy", scope: Scope = Scope.EVERY, margin: float = MARGIN) -> Check:
    """Better than another method on average over the grid of epsilon."""

    def compare(place: str, part: pd.DataFrame) -> list[Comparison]:
        a, b = (draws(part, name, quantity) for name in (mechanism, other))
        if percent(quantity):
            lead = difference(a.mean(), b.mean())
            message = f"{points(lead.mean, lead.half)} against {other} on average over ε"
            return [Comparison(place, lead.leads(margin), message, -lead.mean)]
        ratio = log_ratio(a, b)
        holds = Interval(-ratio.mean, ratio.half).leads(LEAD_GAP)
        return [Comparison(place, holds, f"its gap is {_ratio(ratio.mean)} times that of {other} on average over ε", ratio.mean)]

    size = f"at least {100 * margin:g} points" if percent(quantity) else "at least 5 %"
    return Check(
        f"{'Higher' if QUANTITIES[quantity] else 'Lower'} by {size} on average over the ε grid",
        scope,
        compare,
        (mechanism, other),
        quantity,
    )


def matches(mechanism: str, others: Sequence[str], quantity: str = "accuracy", margin: float = CLOSE) -> Check:
    """At every epsilon as good as each of the others, or better: behind by `margin` at most, or ahead by at least -`margin`."""
    sign = 1 if QUANTITIES[quantity] else -1

    def compare(place: str, part: pd.DataFrame) -> list[Comparison]:
        own = draws(part, mechanism, quantity)
        comparisons = []
        for other, theirs in complete_draws(part, list(others), quantity).items():
            for epsilon in own.index:
                lead = difference(sign * own.loc[epsilon], sign * theirs.loc[epsilon])
                size = points(lead.mean, lead.half) if percent(quantity) else f"{0.0 - lead.mean:+.3g} in the objective"
                message = f"{size} against {other} at ε = {epsilon:g}"
                comparisons.append(Comparison(f"{other} on {place}", lead.at_least(-margin), message, -lead.mean))
        return comparisons

    size = f"{100 * abs(margin):g} point{'' if margin == CLOSE else 's'}" if percent(quantity) else f"{abs(margin):g}"
    meaning = f"At every ε {f'at most {size} worse' if margin > 0 else f'at least {size} better'} than each of the others"
    return Check(meaning, Scope.EVERY, compare, (mechanism, *others), quantity)


def resembles(mechanism: str, others: Sequence[str], quantity: str = "accuracy") -> Check:
    """Like at least one of the others, on average over the grid."""

    def compare(place: str, part: pd.DataFrame) -> list[Comparison]:
        own = draws(part, mechanism, quantity)
        comparisons = []
        for other, theirs in complete_draws(part, list(others), quantity).items():
            if percent(quantity):
                each, limit = [difference(own.loc[e], theirs.loc[e]) for e in own.index], CLOSE
            else:
                each, limit = [log_ratio(own.loc[[e]], theirs.loc[[e]]) for e in own.index], CLOSE_GAP
            away = Interval(float(np.mean([abs(d.mean) for d in each])), float(np.mean([d.half for d in each])))
            size = f"{100 * away.mean:.1f} points" if percent(quantity) else f"a factor {_ratio(away.mean)}"
            better = [(d.mean > 0) == QUANTITIES[quantity] for d in each]
            side = ", and better at every ε" if all(better) else "" if any(better) else ", and worse at every ε"
            message = f"{size} from {other}, the nearest, on average over ε{side}"
            comparisons.append(Comparison(place, away.at_most(limit), message, away.mean, better=all(better)))
        return sorted(comparisons, key=lambda c: c.severity)[:1]

    size = "Within 1 point" if percent(quantity) else "Within a factor of 2"
    meaning = f"{size} of one of the others, on average over the ε grid; better than claimed if further and ahead at every ε"
    return Check(meaning, Scope.EVERY, compare, (mechanism, *others), quantity)


def _gain(values: pd.DataFrame, start: int, end: int, quantity: str) -> Interval:
    """Gain of one method from one budget to another, in accuracy or as the logarithm of a ratio."""
    if percent(quantity):
        return paired_mean(values.iloc[end] - values.iloc[start])
    return log_ratio(values.iloc[[end]], values.iloc[[start]])


def rises(mechanisms: Sequence[str], quantity: str = "accuracy") -> Check:
    """More budget helps: the last mean is better than the first, and no step goes back by more than is almost the same."""
    sign = 1 if QUANTITIES[quantity] else -1
    allowed = CLOSE if percent(quantity) else CLOSE_GAP

    def change(values: pd.DataFrame, start: int, end: int) -> Interval:
        gain = _gain(values, start, end, quantity)
        return Interval(sign * gain.mean, gain.half)

    def compare(place: str, part: pd.DataFrame) -> list[Comparison]:
        comparisons = []
        for mechanism, values in complete_draws(part, list(mechanisms), quantity).items():
            if len(values) < 2:
                continue
            whole = change(values, 0, -1)
            back = min((change(values, k, k + 1) for k in range(len(values) - 1)), key=lambda step: step.mean)
            failed = back.at_least(-allowed) is False or (whole.mean < 0 and whole.at_least(0) is False)
            holds = False if failed else True if whole.mean - whole.half > 0 and back.mean >= -allowed else None
            size = [points(v) if percent(quantity) else f"a factor {_ratio(-v)}" for v in (whole.mean, back.mean)]
            message = f"{size[0]} from the smallest ε to the largest, worst step {size[1]}"
            comparisons.append(Comparison(f"{mechanism} on {place}", holds, message, -min(back.mean, whole.mean)))
        return comparisons

    word, size = ("rises", "1 point") if sign > 0 else ("falls", "a factor of 2")
    meaning = f"The mean {word} from the smallest ε to the largest, and no step goes back by more than {size}"
    return Check(meaning, Scope.EVERY, compare, tuple(mechanisms), quantity)


def grows_apart(mechanism: str, other: str) -> Check:
    """The lead over the other is larger in the upper half of the grid than in the lower."""

    def compare(place: str, part: pd.DataFrame) -> list[Comparison]:
        a, b = (draws(part, name, "accuracy") for name in (mechanism, other))
        half = len(a) // 2
        if not half:
            return []
        low, high = (difference(a.iloc[s].mean(), b.iloc[s].mean()) for s in (slice(half), slice(-half, None)))
        own, their = (v.iloc[-half:].mean() - v.iloc[:half].mean() for v in (a, b))
        both = (high.leads(0.0), difference(own, their).leads(MARGIN))
        holds = False if False in both else None if None in both else True
        return [
            Comparison(
                place,
                holds,
                f"{points(low.mean, low.half)} at small ε, {points(high.mean, high.half)} at large",
                low.mean - high.mean,
            )
        ]

    meaning = f"The lead is positive at large ε, and at least {100 * MARGIN:g} points larger than at small ε"
    return Check(meaning, Scope.EVERY, compare, (mechanism, other))


def close_at_start(mechanism: str, other: str) -> Check:
    """At the smallest epsilon the lead is at most a point."""

    def compare(place: str, part: pd.DataFrame) -> list[Comparison]:
        a, b = (draws(part, name, "accuracy") for name in (mechanism, other))
        lead = difference(a.iloc[0], b.iloc[0])
        return [
            Comparison(
                place, lead.at_most(CLOSE), f"{points(lead.mean, lead.half)} at ε = {a.index[0]:g}", lead.mean, better=True
            )
        ]

    return Check(
        "At the smallest ε at most 1 point ahead, or behind; better than claimed if further ahead",
        Scope.EVERY,
        compare,
        (mechanism, other),
    )


def lowest_objective(part: pd.DataFrame) -> float:
    """F(minimum) of one place, from trainings that did not run away; between those of several splits.

    Raises:
        Missing: all trainings did.
    """
    finite = part[np.isfinite(part["objective"]) & np.isfinite(part["optimality_gap"])]
    if finite.empty:
        raise Missing("every training ran away")
    return float((finite["objective"] - finite["optimality_gap"]).median())


def learnable(part: pd.DataFrame) -> float:
    """F(0) - F(minimum) of one place: the objective of the model that says nothing, above the best objective."""
    return float(get_model(str(part["model"].iloc[0])).loss.value(np.zeros(1))[0] - lowest_objective(part))


def has_small_gap(mechanism: str, scope: Scope = Scope.EVERY) -> Check:
    """The optimality gap at the largest epsilon is at most 1 % of what there is to be learned."""

    def compare(place: str, part: pd.DataFrame) -> list[Comparison]:
        gaps = draws(part, mechanism, "optimality_gap").iloc[-1:]
        scale = learnable(part)
        if scale < NOTHING:
            raise Missing(f"only {scale:.2g} of the objective can be learned")
        gap = paired_mean(gaps.iloc[0] / scale)
        message = f"the gap is {100 * gap.mean:.2g} % of F(0) − F(θ*) at ε = {gaps.index[0]:g}"
        return [Comparison(place, gap.at_most(ALMOST_ZERO), message, gap.mean)]

    return Check(
        f"The gap at the largest ε is at most {100 * ALMOST_ZERO:g} % of F(0) − F(θ*), all that can be learned", scope, compare
    )


def fluctuates(mechanisms: Sequence[str], quantity: str = "accuracy", scope: Scope = Scope.EVERY) -> Check:
    """The means of some method go up and down by five points, or by a factor of two, beyond the change from first to last."""
    limit = SHARP if percent(quantity) else CLOSE_GAP

    def compare(place: str, part: pd.DataFrame) -> list[Comparison]:
        comparisons = []
        for mechanism, values in complete_draws(part, list(mechanisms), quantity).items():
            if len(values) < 2 or not np.isfinite(values.to_numpy()).any():
                continue
            each = [_gain(values, k, k + 1, quantity) for k in range(len(values) - 1)]
            mean = sum(abs(s.mean) for s in each) - abs(sum(s.mean for s in each))
            back = Interval(mean, math.sqrt(sum(s.half**2 for s in each)))
            size = f"{100 * mean:.1f} points" if percent(quantity) else f"a factor {_ratio(mean)}"
            message = f"{size} up and down beyond the change from first to last ({mechanism})"
            comparisons.append(Comparison(place, back.at_least(limit), message, -mean))
        return sorted(comparisons, key=lambda c: c.severity)[:1]

    size = "5 points" if percent(quantity) else "a factor of 2"
    meaning = f"The means go up and down by at least {size} beyond the change from first to last"
    return Check(meaning, scope, compare, tuple(mechanisms), quantity)


def surges(mechanism: str) -> Check:
    """One step of the grid makes half of the way from majority to the non-private model and ends within a point of it."""

    def compare(place: str, part: pd.DataFrame) -> list[Comparison]:
        values = draws(part, mechanism, "accuracy")
        top, floor = (float(part[name].mean()) for name in ("non_private_accuracy", "majority_accuracy"))
        mean: Floats = values.mean(axis=1).to_numpy()
        way, rise = top - floor, float(mean.max() - mean.min())
        if len(values) < 2:
            return []
        if min(way, rise) < RISE:
            message = f"{points(way)} lie between majority and non-private, and the curve spans {points(rise)}"
            return [Comparison(place, None, f"{message}: no surge can be seen below {100 * RISE:g}")]
        step = np.diff(mean)
        near = np.flatnonzero(top - mean[1:] <= CLOSE)  # steps that end where the paper's surge does
        at = int(near[step[near].argmax()]) if len(near) else int(step.argmax())
        change = paired_mean(values.iloc[at + 1] - values.iloc[at])
        half_way = change.at_least(SURGE * way)
        holds = False if not len(near) else half_way
        message = f"its largest step{' that ends there' if len(near) else ''} is {100 * step[at] / way:.0f} % of the way"
        ends = f"to {100 * (top - mean[at + 1]):.1f} points below non-private at ε = {values.index[at + 1]:g}"
        return [Comparison(place, holds, f"{message}, {ends}", -float(step[at]))]

    meaning = "One step of the grid makes half of the way from majority to non-private, and ends within 1 point of it"
    return Check(meaning, Scope.EVERY, compare)
