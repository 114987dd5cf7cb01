"""Claims about who is at risk: whether attacks find rows of large influence more often, and what exchanging a row does."""

from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.auditing.attacks.exposure import rank_correlation
from dpviz.auditing.attacks.study import attack_run
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.influences import influence_of
from dpviz.papers.claims.context import Context
from dpviz.papers.claims.numerics import published_influence
from dpviz.papers.claims.tables import lines, percent, tenths
from dpviz.papers.verdict import Comparison, Picture, Verdict, combine, summary

ATTACK, RATE = "lira-online", 0.01
LEAST = 0.1  # rank correlation below which influence predicts next to nothing


def exposure_verdict(context: Context) -> Verdict:
    """Rows of large influence are easier to find, in models trained without noise."""
    names = context.choose(("breast-cancer", "census-2000"), ("breast-cancer", "census-2000", "wine", "census-10000"))
    shadows, targets = context.choose((256, 64), (1024, 256))
    comparisons, tables, numbers = [], [], []
    for here, name in context.parts(names):
        context.trained_on.append(name)
        spec = RunSpec(name, mechanism="non-private", lam=1e-3, row_scaling="unit", seed=context.seed)
        found = attack_run(spec, shadows, targets, attacks=[ATTACK], baseline=False, monitor=here.monitor)
        of = context.hook("influence", lambda spec: influence_of(replace(spec, seeds=1)).frame()["influence_function"])
        influence = of(found.spec)[found.row_ids].to_numpy()
        r, low, high = rank_correlation(influence, found.separation)
        holds = True if low > LEAST else False if high < LEAST else None
        limits = f"{r:.2f} (95 % limits {low:.2f} to {high:.2f})"
        comparisons.append(Comparison(f"on {name}", holds, f"rank correlation {limits}", LEAST - low))
        called = found.judged[ATTACK].scores > found.judged[ATTACK].threshold_at(RATE)
        member = found.judged[ATTACK].member
        share = np.array([(called & member)[:, rows].sum() / member[:, rows].sum() for rows in tenths(influence)])
        ends = f"{percent(share[0])} and {percent(share[-1])}"
        numbers += [
            (f"Rank correlation of influence and how far a row's signals lie apart on {name}", limits),
            (f"Members found among the tenth of rows of least and of most influence on {name}", ends),
        ]
        tables.append(lines(name, "members found", "", range(1, 11), 100 * share[:, None]))
    return Verdict(
        combine(comparisons),
        summary(comparisons),
        f"Holds on a dataset if the lower limit of the rank correlation between influence and the distance of a row's signals "
        f"with and without it is above {LEAST:g}, fails if the upper one is below. Everywhere.",
        tuple(numbers),
        "",
        pd.concat(tables),
        Picture("tenth of the rows by influence", "members found, %", limit=100 * RATE, limit_label="coin toss"),
        f"LiRA with {shadows:,} shadow and {targets:,} target models on random halves, without noise; threshold at "
        f"{percent(RATE)} false alarms over all rows; seed {context.seed}.",
    )


def exchanged_rows(context: Context) -> Verdict:
    """Exchanging a row for another one of the table moves the model by at most 2|c| (Kang-PIDP, Remark 6).

    To first order an exchange moves it by the difference of both contributions.
    """
    comparisons, tables = [], []
    for name in context.data(("breast-cancer", "census-2000"), ("breast-cancer", "census-10000")):
        problem = context.setup(name)[0].problem
        moved = context.hook("influence", published_influence)(problem, np.arange(problem.n))
        size = np.linalg.norm(moved, axis=1)
        ratio = np.array([np.linalg.norm(moved - one, axis=1).max() for one in moved]) / (2 * size)
        share = float(np.mean(ratio > 1))
        message = f"{percent(share)} of the rows move it more in an exchange, up to {ratio.max():.3g} times as much"
        comparisons.append(Comparison(f"on {name}", share == 0, message, share))
        median = np.array([[np.median(ratio[rows])] for rows in tenths(size)])
        tables.append(lines(name, "median row", "pidp-sgd", range(1, 11), median))
    return Verdict(
        combine(comparisons),
        f"{summary(comparisons)} A row of little influence can be exchanged for one of large influence, so that twice its own "
        "contribution is no bound, and the rule decides by it which rows train without noise.",
        "Holds if for every row the largest difference to the contribution of another row of the table is at most twice its own "
        "contribution, in norm; fails otherwise. Contributions are those of eq. (11). Everywhere.",
        tuple((f"Exchanges {one.what}", one.numbers) for one in comparisons),
        "",
        pd.concat(tables),
        Picture("tenth of the rows by influence", "largest exchange over 2|c|", log_y=True, limit=1.0, limit_label="Remark 6"),
        f"Split seed {context.seed}; no noise.",
    )
