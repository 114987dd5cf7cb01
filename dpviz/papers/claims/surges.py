"""The claim that the accuracy of SGD with the moments accountant jumps at one budget."""

from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.papers.checks import Check
from dpviz.papers.claims.accuracy import ACCURACY, TUNED, accuracy_lines
from dpviz.papers.claims.context import ByCheck, Context, Test
from dpviz.papers.verdict import Verdict

DELTA = 1e-8
SURGES_ON = "census-10000"


def surges(check: Check) -> Test:
    """The accuracy of SGD with the moments accountant jumps at one epsilon."""

    def test(context: Context) -> Verdict:
        budgets = list(np.geomspace(0.02, 2.0, context.choose(12, 24)))
        names, seeds = context.data((SURGES_ON,), (SURGES_ON,)), context.choose(5, 20)
        parts, rows, epochs = [], [], []
        for here, name in context.parts(names):
            # batches of sqrt(n) rows and delta as in the paper
            base = {"accountant": "rdp", "relation": "add-remove", "sampling_rate": here.setup(name)[0].problem.n ** -0.5}
            runs = [base | {"epochs": e} for e in (1.0, 5.0, 20.0)]
            measured, chosen = here.best("dp-sgd", runs, name, budgets, seeds, delta=DELTA)
            rows.append(measured.rows("dp-sgd"))
            epochs.append((f"Epochs chosen, {name}", ", ".join(f"{c['epochs']:g}" for c in chosen)))
            parts.append(accuracy_lines(name, {"best of three run lengths": ("dp-sgd", measured)}))
        verdict = check(pd.concat(rows, ignore_index=True))
        return replace(
            verdict,
            because=f"{verdict.because} Run lengths are chosen afresh at each budget; the accountant can handle every one.",
            rule=f"{check.rule} {TUNED} Neighbouring budgets differ by a factor of {budgets[1] / budgets[0]:.2f}.",
            numbers=tuple(epochs),
            table=pd.concat(parts),
            picture=ACCURACY,
            seeds=f"{context.seeds} δ = {DELTA:g} and batches of √n rows as in the paper.",
        )

    return ByCheck(check, test)
