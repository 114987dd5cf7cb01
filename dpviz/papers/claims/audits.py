"""Claims about privacy: attacked on a neighbouring pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpviz.auditing import Pair, audit
from dpviz.auditing.pairs import make
from dpviz.models import get_model
from dpviz.papers.claims.base import Lab, Outcome, Picture, Test, Verdict
from dpviz.privacy.budget import Budget

CONFIDENCE = 0.99
DELTA = 1e-5


def opposed(lab: Lab, n: int) -> Pair:
    """The pair on which noise on rows hardly reaches the model."""
    return make("opposed", get_model("logistic"), n, 2, 1e-3)


def pushed(lab: Lab, n: int) -> Pair:
    """The pair on which one misclassified row moves the minimiser far, for methods that start there."""
    return make("pushed", get_model("logistic"), n, 2, 1e-2)


def stays_private(
    mechanism: str,
    readings: Mapping[str, dict[str, Any]],
    pair: Callable[[Lab, int], Pair],
    n: int,
    runs: tuple[int, int],
    claimed: float = 1.0,
) -> Test:
    """The model keeps the claimed epsilon against an attacker who knows all rows but one.

    Args:
        readings: name -> knobs, each attacked by itself.
        pair: (lab, n) -> the neighbouring pair.
        runs: trainings a side, as usual and in full.
        claimed: epsilon.
    """

    def test(lab: Lab) -> Verdict:
        chosen, n_runs = pair(lab, n), lab.choose(*runs)
        confidence = 1 - (1 - CONFIDENCE) / len(readings)
        numbers, rows, broken, proved = [], [], [], True
        for k, (name, knobs) in enumerate(readings.items()):
            built = lab.build(mechanism, **knobs)
            result = audit(
                built,
                chosen.first,
                chosen.second,
                Budget(claimed, DELTA),
                n_runs,
                lab.seed,
                confidence=confidence,
                monitor=lab.part(k, len(readings)).monitor,
            )
            if result.epsilon_lower > claimed:  # the free bound alone, as the rule says
                broken.append(name)
            certified = result.calibration.proved_budget
            proved &= (
                certified is not None and certified.epsilon <= claimed * (1 + 1e-9) and certified.delta <= DELTA * (1 + 1e-9)
            )
            numbers.append((f"ε at least, {name}", f"{result.epsilon_lower:.2f} (this many runs can show {result.ceiling:.2f})"))
            numbers.append(
                (
                    f"Errors, {name}",
                    f"{result.counts.false_positives:g} and {result.counts.false_negatives:g} of "
                    f"{result.counts.trials} a side, attacker {result.score}",
                )
            )
            rows += [(name, "audited, at least", result.epsilon_lower), (name, "most that these runs can show", result.ceiling)]
        rows += [(name, "claimed", claimed) for name in readings]
        table = pd.DataFrame(
            [
                ("attacks", series, mechanism if series.startswith("audited") else "", x, y, np.nan, np.nan)
                for x, series, y in rows
            ],
            columns=["panel", "series", "mechanism", "x", "y", "low", "high"],
        )
        if broken:
            outcome = Outcome.FAILS
            because = f"The attacker shows more than the claimed ε = {claimed:g} for: {', '.join(broken)}. {chosen.why}"
        elif proved:
            outcome = Outcome.HOLDS
            because = "The engine's own calibration proves the budget with all constants, and no violation was found."
        else:
            outcome = Outcome.UNTESTABLE
            because = "No violation found; that is no proof, and the engine knows none."
        return Verdict(
            outcome,
            f"Fails if a lower bound on ε at δ = {DELTA:g}, {CONFIDENCE:.0%} confidence for all attacks together "
            f"(Clopper-Pearson), "
            "exceeds the claim. Holds only if moreover the engine's calibration proves the claim. Otherwise not "
            "testable: an audit "
            "can refute and never confirm.",
            (("Claimed", f"ε = {claimed:g}, δ = {DELTA:g}"), *numbers),
            because,
            "",
            table,
            Picture("", "ε", limit=claimed, limit_label="claimed"),
            f"{n_runs:,} trainings on each side, seed {lab.seed}; n = {chosen.first.n}.",
        )

    return test
