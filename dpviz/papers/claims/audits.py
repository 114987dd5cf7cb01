"""Claims about privacy: attacked on a neighbouring pair."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpviz.auditing import AuditResult, Pair, audit
from dpviz.auditing.pairs import make
from dpviz.models import get_model
from dpviz.papers.claims.context import Context, Test
from dpviz.papers.claims.tables import COLUMNS
from dpviz.papers.verdict import Outcome, Picture, Verdict
from dpviz.privacy.budget import Budget

CONFIDENCE = 0.99
DELTA = 1e-5
CLAIMED = 1.0


def opposed_rows_pair(n: int) -> Pair:
    """The pair on which noise on rows hardly reaches the model."""
    return make("opposed", get_model("logistic"), n, 2, 1e-3)


def misclassified_pair(n: int) -> Pair:
    """The pair on which one misclassified row changes the minimiser most, for methods that start there."""
    return make("pushed", get_model("logistic"), n, 2, 1e-2)


def stays_private(
    mechanism: str,
    readings: Mapping[str, dict[str, Any]],
    pair: Callable[[int], Pair],
    n: int,
    runs: tuple[int, int],
    constants: str = "",
) -> Test:
    """The model keeps the claimed epsilon against an attacker who knows all rows but one.

    Args:
        readings: name -> knobs, each attacked by itself.
        pair: number of rows -> the neighbouring pair.
        runs: models trained on each dataset, as usual and in full.
        constants: what the theorem leaves open and how it is set here, in one sentence; "" for nothing.
    """

    def test(context: Context) -> Verdict:
        chosen, n_runs = pair(n), context.choose(*runs)
        confidence = 1 - (1 - CONFIDENCE) / len(readings)
        results = {
            name: audit(
                context.build(mechanism, **knobs),
                chosen.first,
                chosen.second,
                Budget(CLAIMED, DELTA),
                n_runs,
                context.seed,
                confidence=confidence,
                monitor=here.monitor,
            )
            for here, (name, knobs) in context.parts([*readings.items()])
        }
        outcome, because = _judged(results, chosen)
        return Verdict(
            outcome,
            because,
            f"Fails if a lower bound on ε at δ = {DELTA:g}, {CONFIDENCE:.0%} confidence for all attacks together "
            "(Clopper-Pearson), exceeds the claim. Holds only if moreover the engine's calibration proves the claim. Otherwise "
            f"it is undecided: an audit can refute and never confirm.{' ' if constants else ''}{constants}",
            (("Claimed", f"ε = {CLAIMED:g}, δ = {DELTA:g}"), *_numbers(results)),
            "",
            _table(mechanism, results),
            Picture("", "ε", limit=CLAIMED, limit_label="claimed"),
            f"{n_runs:,} models trained on each dataset, seed {context.seed}; n = {chosen.first.n}.",
        )

    return test


def _judged(results: Mapping[str, AuditResult], pair: Pair) -> tuple[Outcome, str]:
    """The outcome and its reason; the bound free of assumptions counts alone, as the rule says."""
    broken = [name for name, result in results.items() if result.epsilon_lower > CLAIMED]
    if broken:
        return Outcome.FAILS, f"The attacker shows more than the claimed ε = {CLAIMED:g} for: {', '.join(broken)}. {pair.why}"
    certified = [result.calibration.proved_budget for result in results.values()]
    slack = 1 + 1e-9
    if all(c is not None and c.epsilon <= CLAIMED * slack and c.delta <= DELTA * slack for c in certified):
        return Outcome.HOLDS, "The engine's own calibration proves the budget with all constants, and no violation was found."
    return Outcome.UNDECIDED, "No violation found; that is no proof, and the engine knows none."


def _numbers(results: Mapping[str, AuditResult]) -> list[tuple[str, str]]:
    """The numbers of each attack."""
    out = []
    for name, result in results.items():
        counts = result.counts
        errors = f"{counts.false_positives:g} and {counts.false_negatives:g} of {counts.trials} a side, attacker {result.score}"
        shown = f"{result.epsilon_lower:.2f} (this many runs can show {result.ceiling:.2f})"
        out += [(f"ε at least, {name}", shown), (f"Errors, {name}", errors)]
    return out


def _table(mechanism: str, results: Mapping[str, AuditResult]) -> pd.DataFrame:
    """Audited, largest possible and claimed epsilon of each attack."""
    rows = [
        ("attacks", series, of, name, epsilon, np.nan, np.nan)
        for name, result in results.items()
        for series, of, epsilon in (
            ("audited, at least", mechanism, result.epsilon_lower),
            ("most that these runs can show", "", result.ceiling),
            ("claimed", "", CLAIMED),
        )
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))
