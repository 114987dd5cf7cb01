"""What a paper says its figure shows, as checks on a computed sweep that can come out either way.

The papers speak in words ("competitive", "similar", "almost 0"). What each word is taken to mean is fixed here, before
anything is computed, and stands in the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.experiments import curves

Floats = NDArray[np.float64]

SIMILAR = 0.01  # accuracies within one point are alike
SIMILAR_GAP = 2.0  # gaps within a factor of two are alike
ALMOST_ZERO = 0.01  # an optimality gap up to this is almost 0
SHARP = 0.05  # five points up and down again are a sharp fluctuation


@dataclass(frozen=True)
class Verdict:
    """Whether our numbers show what a paper states.

    Attributes:
        shown: None where it cannot be judged.
        why: the numbers behind it.
    """

    shown: bool | None
    why: str


Check = Callable[[pd.DataFrame], Verdict]


@dataclass(frozen=True)
class Statement:
    """A sentence of a paper and the check that it became.

    Attributes:
        text: what the paper says, close to its words.
        meaning: what is checked.
        check: sweep table -> verdict.
    """

    text: str
    meaning: str
    check: Check


class _Missing(Exception):
    pass


def _means(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Means with epsilon as rows and mechanisms as columns."""
    summary = curves.summarise(table, quantity) if len(table) else pd.DataFrame(columns=["mechanism", "epsilon", "mean"])
    return summary.pivot(index="epsilon", columns="mechanism", values="mean").sort_index()


def _of(means: pd.DataFrame, mechanism: str) -> pd.Series:
    if mechanism not in means or means[mechanism].isna().any():
        raise _Missing(f"there are no complete numbers of {mechanism}")
    return means[mechanism]


def _judge(quantity: str, decide: Callable[[pd.DataFrame], Verdict]) -> Check:
    def check(table: pd.DataFrame) -> Verdict:
        try:
            return decide(_means(table, quantity))
        except _Missing as missing:
            return Verdict(None, str(missing))

    return check


def rises(text: str, mechanisms: Sequence[str], quantity: str = "accuracy") -> Statement:
    """More budget does not hurt: the last mean is the better end, and no step goes back by more than a point (or, for
    gaps, by more than a factor of two)."""
    better = curves.QUANTITIES[quantity]

    def decide(means: pd.DataFrame) -> Verdict:
        found = [m for m in mechanisms if m in means and not means[m].isna().any()]
        if not found or len(means) < 2:
            raise _Missing("there are too few numbers")
        bad = []
        for m in found:
            values = means[m].to_numpy(float) if better else np.log(np.maximum(means[m].to_numpy(float), 1e-12))
            steps = np.diff(values) * (1 if better else -1)
            allowed = SIMILAR if quantity.endswith("accuracy") else np.log(SIMILAR_GAP)
            if steps.min() < -allowed or (values[-1] - values[0]) * (1 if better else -1) < 0:
                bad.append(m)
        return Verdict(
            not bad, f"{len(found) - len(bad)} of {len(found)} methods do" + (f"; not {', '.join(bad)}" if bad else "")
        )

    word = "rises" if better else "falls"
    return Statement(
        text, f"The mean {word} from the smallest ε to the largest, without a real step back.", _judge(quantity, decide)
    )


def competitive(text: str, mechanism: str, others: Sequence[str], quantity: str = "accuracy") -> Statement:
    """At every epsilon at most a point worse than the best of the others; 0.01 for objectives and gaps."""
    up = curves.QUANTITIES[quantity]

    def decide(means: pd.DataFrame) -> Verdict:
        own = _of(means, mechanism)
        rivals = [m for m in others if m in means and not means[m].isna().any()]
        if not rivals:
            raise _Missing("none of the others was computed")
        behind = means[rivals].max(axis=1) - own if up else own - means[rivals].min(axis=1)
        worst = behind.idxmax()
        rival = means[rivals].loc[worst].idxmax() if up else means[rivals].loc[worst].idxmin()
        size = f"{100 * behind.max():.1f} points behind" if up else f"{behind.max():.3g} above"
        return Verdict(
            bool(behind.max() <= SIMILAR),
            f"compared with {len(rivals)} of {len(others)}; at worst {size} {rival}, at ε = {worst:g}",
        )

    meaning = "1 point below the best" if up else f"{SIMILAR:g} above the least"
    return Statement(text, f"At every ε at most {meaning} of the others.", _judge(quantity, decide))


def better_than(text: str, mechanism: str, other: str, quantity: str = "accuracy") -> Statement:
    """On average over the grid."""
    up = curves.QUANTITIES[quantity]

    def decide(means: pd.DataFrame) -> Verdict:
        a, b = _of(means, mechanism), _of(means, other)
        if up:
            ahead = float((a - b).mean())
            return Verdict(ahead > 0, f"{100 * ahead:+.1f} points against {other} on average over ε")
        ratio = float(np.exp(np.mean(np.log(_floor(a)) - np.log(_floor(b)))))
        return Verdict(ratio < 1, f"its gap is {ratio:.2g} times that of {other} (geometric mean over ε)")

    return Statement(text, f"{'Higher' if up else 'Lower'} on average over the ε grid.", _judge(quantity, decide))


def similar(text: str, mechanism: str, others: Sequence[str], quantity: str = "accuracy") -> Statement:
    """Like at least one of the others on average over the grid."""
    percent = quantity.endswith("accuracy")

    def decide(means: pd.DataFrame) -> Verdict:
        own = _of(means, mechanism)
        rivals = [m for m in others if m in means and not means[m].isna().any()]
        if not rivals:
            raise _Missing("none of the others was computed")
        if percent:
            distance = {m: float((own - means[m]).abs().mean()) for m in rivals}
            near = min(distance, key=lambda m: distance[m])
            return Verdict(
                distance[near] <= SIMILAR, f"{100 * distance[near]:.1f} points from {near}, the nearest, on average over ε"
            )
        ratio = {m: float(np.exp(np.mean(np.abs(np.log(_floor(own)) - np.log(_floor(means[m])))))) for m in rivals}
        near = min(ratio, key=lambda m: ratio[m])
        return Verdict(ratio[near] <= SIMILAR_GAP, f"a factor {ratio[near]:.2g} from {near}, the nearest (geometric mean over ε)")

    meaning = "Within 1 point" if percent else "Within a factor of 2"
    return Statement(text, f"{meaning} of one of the others, on average over the ε grid.", _judge(quantity, decide))


def grows_apart(text: str, mechanism: str, other: str) -> Statement:
    """The lead over the other is larger in the upper half of the grid than in the lower."""

    def decide(means: pd.DataFrame) -> Verdict:
        lead = (_of(means, mechanism) - _of(means, other)).to_numpy(float)
        if len(lead) < 2:
            raise _Missing("there are too few numbers")
        half = len(lead) // 2
        low, high = float(lead[:half].mean()), float(lead[-half:].mean())
        return Verdict(high > low and high > 0, f"{100 * low:+.1f} points at small ε, {100 * high:+.1f} at large")

    return Statement(text, "The lead is positive at large ε, and larger than at small ε.", _judge("accuracy", decide))


def close_at_start(text: str, mechanism: str, other: str) -> Statement:
    """At the smallest epsilon the lead is at most a point."""

    def decide(means: pd.DataFrame) -> Verdict:
        lead = float((_of(means, mechanism) - _of(means, other)).iloc[0])
        return Verdict(lead <= SIMILAR, f"{100 * lead:+.1f} points at ε = {means.index[0]:g}")

    return Statement(text, "At the smallest ε at most 1 point ahead, or behind.", _judge("accuracy", decide))


def almost_zero(text: str, mechanism: str) -> Statement:
    """The optimality gap at the largest epsilon is at most 0.01."""

    def decide(means: pd.DataFrame) -> Verdict:
        gap = float(_of(means, mechanism).iloc[-1])
        return Verdict(gap <= ALMOST_ZERO, f"gap {gap:.2g} at ε = {means.index[-1]:g}")

    return Statement(text, f"The gap at the largest ε is at most {ALMOST_ZERO:g}.", _judge("optimality_gap", decide))


def fluctuates(text: str, mechanisms: Sequence[str], quantity: str = "accuracy") -> Statement:
    """The path of some method's means is longer than its way up by five points, or, for gaps, by a factor of two."""
    percent = quantity.endswith("accuracy")

    def decide(means: pd.DataFrame) -> Verdict:
        found = [m for m in mechanisms if m in means and not means[m].isna().any()]
        if not found or len(means) < 2:
            raise _Missing(f"there are no complete numbers of {', '.join(mechanisms)}")
        back = {}
        for m in found:
            values = means[m].to_numpy(float) if percent else np.log(_floor(means[m]))
            back[m] = float(np.abs(np.diff(values)).sum() - abs(values[-1] - values[0]))
        worst = max(back, key=lambda m: back[m])
        size = f"{100 * back[worst]:.1f} points" if percent else f"by a factor {np.exp(back[worst]):.2g}"
        who = f" ({worst}, the most)" if len(found) > 1 else ""
        return Verdict(
            back[worst] > (SHARP if percent else np.log(SIMILAR_GAP)),
            f"{size} up and down beyond its way from first to last{who}",
        )

    meaning = "more than 5 points" if percent else "more than a factor of 2"
    return Statement(
        text, f"The means go up and down by {meaning} beyond their way from first to last.", _judge(quantity, decide)
    )


def surges(text: str, mechanism: str) -> Statement:
    """One step of the grid makes at least half of the way from majority to no privacy and ends within a point of it."""

    def judge(table: pd.DataFrame) -> Verdict:
        try:
            values = _of(_means(table, "accuracy"), mechanism)
        except _Missing as missing:
            return Verdict(None, str(missing))
        top, floor = float(table["non_private_accuracy"].iloc[0]), float(table["majority_accuracy"].iloc[0])
        steps = values.diff().iloc[1:]
        if steps.empty or top <= floor:
            return Verdict(None, "there are too few numbers")
        near = steps[top - values[steps.index] <= SIMILAR]  # those that end where the paper's surge does
        at = (near if len(near) else steps).idxmax()
        share, close = float(steps[at] / (top - floor)), float(top - values[at])
        words = (
            f"its largest step{' that ends there' if len(near) else ''} is {100 * share:.0f} % of the way, to "
            f"{100 * close:.1f} points below no privacy at ε = {at:g}"
        )
        return Verdict(share >= 0.5 and close <= SIMILAR, words)

    return Statement(
        text, "One step of the grid makes half of the way from majority to no privacy, and ends within 1 point of it.", judge
    )


def _floor(values: pd.Series) -> Floats:
    return np.maximum(values.to_numpy(float), 1e-12)


TWICE = 2.0  # times within a factor of two are alike


def fastest(text: str, mechanism: str) -> Statement:
    """Least time at every size; the table has columns mechanism, rows, seconds."""

    def check(times: pd.DataFrame) -> Verdict:
        table = times.pivot(index="rows", columns="mechanism", values="seconds") if len(times) else pd.DataFrame()
        if mechanism not in table or table.isna().any(axis=None):
            return Verdict(None, "there are no complete times")
        first = table.idxmin(axis=1)
        others = sorted(set(first[first != mechanism]))
        return Verdict(not others, "it is" if not others else f"{', '.join(others)} takes less somewhere")

    return Statement(text, "Least time at every size.", check)


def as_fast(text: str, mechanism: str, other: str) -> Statement:
    """Within a factor of two on average over the sizes."""

    def check(times: pd.DataFrame) -> Verdict:
        table = times.pivot(index="rows", columns="mechanism", values="seconds") if len(times) else pd.DataFrame()
        if mechanism not in table or other not in table or table[[mechanism, other]].isna().any(axis=None):
            return Verdict(None, "there are no complete times")
        ratio = float(np.exp(np.log(table[mechanism] / table[other]).mean()))
        return Verdict(ratio <= TWICE, f"it takes {ratio:.2g} times as long as {other}")

    return Statement(text, "At most twice the time, on average over the sizes.", check)
