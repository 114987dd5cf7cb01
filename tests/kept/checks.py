"""Examples of `dpviz.papers.checks`, of the numbers and places that they look at, and of claims on chosen measurements."""

import math
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from support import make_problem
from support_kept import numbers_in, words

import dpviz
from dpviz.papers import checks, numbers
from dpviz.papers.claims import audits, bagdasaryan, numerics
from dpviz.papers.claims.context import Context
from dpviz.papers.verdict import Scope


def losses(cost: float, extra: float, spread: float) -> np.ndarray:
    """(2, E, S) accuracy that a small and a large group lose, at three budgets; `extra` more by the small one."""
    return cost + np.multiply.outer([extra, 0.0], np.ones((3, 30))) + spread * np.cos(np.arange(180.0)).reshape(2, 3, 30)


def checks_examples() -> Iterator[Any]:
    t = dpviz.sweep("teaching", mechanisms=["output-gaussian", "dp-gd", "cms-output"], epsilons=[0.2, 1.0, 5.0], seeds=4)
    some = [
        checks.leads("dp-gd", "output-gaussian"),
        checks.leads("dp-gd", "output-gaussian", "optimality_gap"),
        checks.leads("output-gaussian", "dp-gd"),
        *(
            check
            for quantity in ("accuracy", "optimality_gap", "objective")
            for check in (
                checks.matches("dp-gd", ["output-gaussian", "cms-output"], quantity),
                checks.matches("dp-gd", ["output-gaussian"], quantity, -0.02),
                checks.resembles("cms-output", ["output-gaussian", "dp-gd"], quantity),
                checks.rises(["dp-gd", "cms-output"], quantity),
                checks.fluctuates(["output-gaussian", "dp-gd"], quantity, Scope.SOME),
            )
        ),
        checks.grows_apart("dp-gd", "output-gaussian"),
        checks.close_at_start("dp-gd", "output-gaussian"),
        checks.has_small_gap("dp-gd"),
        checks.surges("dp-gd"),
    ]
    yield from [
        [[c.holds, c.severity, c.better] for check in some for c in check.comparisons(t)],
        *(
            " ".join(check(part).because for check in some)
            for part in (t, t[t["epsilon"] == 1.0], t[t["seed"] == 0], t.assign(objective=0.6931, optimality_gap=1e-4))
        ),
        checks.has_small_gap("dp-gd")(t.assign(objective=np.inf, optimality_gap=np.inf)).because,
        " | ".join(
            checks.tie_reason(part, ["dp-gd", "cms-output"], quantity)
            for part in (
                t.assign(non_private_accuracy=0.9, majority_accuracy=0.9, expected_accuracy=0.9005),
                t.assign(objective=0.693, optimality_gap=0.0001),
                t.assign(objective=0.5, optimality_gap=1e-9),
                t.assign(objective=0.5, optimality_gap=0.1),
            )
            for quantity in ("accuracy", "optimality_gap", "objective")
        ),
        *(
            " ".join(f"{v.headline}: {v.because}" for check in some for v in [check(part)])
            for part in (
                t[t["mechanism"] != "dp-gd"],
                t[:0],
                t[t["epsilon"] > 0.2].assign(
                    expected_accuracy=np.nan,
                    accuracy=lambda few: (
                        0.8 + np.where((few["mechanism"] == "cms-output") & (few["epsilon"] > 1), 0.1, few["seed"] / 900)
                    ),
                ),
                # curves that jump, go up and down, hardly move, and reach the top in their last step; gaps that fall
                *(
                    t.assign(
                        expected_accuracy=np.nan,
                        majority_accuracy=0.52,
                        non_private_accuracy=0.905,
                        accuracy=t["epsilon"].map(curve) + 0.001 * t["seed"] - t["mechanism"].map(behind),
                        optimality_gap=gaps,
                        objective=0.3 + gaps,
                    )
                    for behind in [{"dp-gd": 0.0, "output-gaussian": 0.006, "cms-output": 0.02}]
                    for gaps in [
                        t["epsilon"].map({0.2: 0.3, 1.0: 0.012, 5.0: 0.0003}) * (1 + t["seed"] / 9 + t["mechanism"].map(behind))
                    ]
                    for curve in (
                        {0.2: 0.55, 1.0: 0.88, 5.0: 0.9},
                        {0.2: 0.9, 1.0: 0.6, 5.0: 0.85},
                        {0.2: 0.55, 1.0: 0.56, 5.0: 0.897},
                    )
                ),
            )
        ),
        " ".join(check.rule for check in some),
        checks.points(0.0123, 0.004) + checks.points(-0.0004) + checks.points(0.5, math.inf),
        [
            numbers.difference(t[t.mechanism == "dp-gd"].accuracy, t[t.mechanism == "cms-output"].accuracy),
            numbers.paired_mean(t.accuracy),
            numbers.draws(t, "dp-gd", "accuracy"),
            numbers.log_ratio(numbers.draws(t, "dp-gd", "optimality_gap"), numbers.draws(t, "cms-output", "optimality_gap")),
        ],
        [
            f(x)
            for i in (
                numbers.Interval(0.3, 0.1),
                numbers.Interval(0.05, 0.1),
                numbers.Interval(-0.2, 0.1),
                numbers.Interval(math.nan, 1.0),
            )
            for f in (i.at_least, i.at_most, i.leads)
            for x in (0.0, 0.1)
        ],
        numbers.quantile(7.0),
        # splits of their own, one draw, trainings that ran away
        *(
            [
                [
                    *numbers.complete_draws(part, ["dp-gd", "none", "majority"], "accuracy").values(),
                    numbers.difference(*(numbers.draws(part, name, "accuracy").mean() for name in ("dp-gd", "cms-output"))),
                    numbers.paired_mean(
                        numbers.draws(part, "dp-gd", "accuracy").iloc[2] - numbers.draws(part, "dp-gd", "accuracy").iloc[0]
                    ),
                    numbers.log_ratio(*(numbers.draws(part, name, "optimality_gap") for name in ("dp-gd", "cms-output"))),
                ]
            ]
            for part in (
                t.assign(split=t["seed"] % 2),
                t[t["seed"] == 2],
                t[t["seed"] < 2],
                pd.concat([t, t], ignore_index=True),
                t.assign(optimality_gap=np.where(t["mechanism"] == "dp-gd", np.inf, t["optimality_gap"])),
                t.assign(optimality_gap=np.inf, split=t["seed"] % 2),
                t.assign(optimality_gap=0.0, expected_accuracy=np.nan),
            )
        ),
        [
            numbers.difference(pd.Series(a), pd.Series(b))
            for a, b in (
                ([0.3], [0.1, 0.2]),
                ([0.3, 0.3], [0.1, 0.1]),
                ([0.3, 0.3], [0.1, 0.2]),
                ([math.inf, math.inf], [0.1, 0.2]),
                ([math.inf, 1.0], [math.inf, 2.0]),
                ([0.3, 0.5, 0.4], [0.1, 0.15]),
            )
        ],
        numbers.paired_mean(
            pd.Series([0.1, 0.5, 0.9, 0.12, 0.5, 0.89], pd.MultiIndex.from_product([(0, 1), (0, 1, 2)], names=["split", "seed"]))
        ),
        [numbers.paired_mean(np.array(change)) for change in ([0.3], [0.3, 0.3], [math.inf, 1.0], [0.1, 0.4, 0.2])],
        [
            [place, len(part)]
            for some in (t[:0], t, pd.concat([t, t.assign(dataset="other")]), pd.concat([t, t.assign(model="svm")]))
            for place, part in numbers.places(some)
        ],
        # a group that loses more, less or as much, and one that loses nothing; a network on few rows
        *(
            [
                v.outcome,
                v.table[v.table.columns[-3:]][:6],
                v.table["x"].to_numpy(),
                [numbers_in(text) for text in said],
                words(" ".join(said)),
            ]
            for test, swaps in (
                *(
                    (bagdasaryan.small_groups_lose_more, {"pairs": lambda *_, p=pair, k=k: [p] * k})
                    for k, *a in (
                        (1, 0.1, 0.05, 0.01),
                        (1, 0.1, -0.05, 0.01),
                        (2, 0.1, 0.005, 0.05),
                        (1, 0.1, 0.002, 1e-4),  # more by a fifth of a point, significant: no size that counts
                        (1, 0.0, 0.002, 1e-4),  # neither loses anything
                        (1, 0.0, 0.0, 0.0),
                    )
                    for pair in [bagdasaryan.Pair("race", "few", "many", (40, 1900), losses(*a), (0.8, 0.91))]
                ),
                *((numerics.network_pl, {"problem": lambda lam=lam: make_problem(40, 3, lam, "mlp-2")}) for lam in (0.02, 0.9)),
            )
            for v in [test(Context(seed=3, swaps=swaps))]
            # what is 0 but for rounding is left out
            for said in [(v.because, v.rule, *(word for pair in v.numbers if " there" not in pair[0] for word in pair), v.seeds)]
        ),
        # attacks that show more, the same, or nothing that is proved
        [
            audits._judged(
                {
                    name: mock.Mock(epsilon_lower=e, **{"calibration.proved_budget": b})
                    for name, e, b in (("a", 0.4, dpviz.Budget(1.0, 1e-5)), ("b", *other))
                },
                mock.Mock(why="Because."),
            )
            for other in (
                *((1.0, b) for b in (None, dpviz.Budget(1.0), dpviz.Budget(1.01, 1e-5), dpviz.Budget(1.0, 1.01e-5))),
                (1.01, dpviz.Budget(0.9)),
            )
        ],
        [
            [pair.first.rows.X[-3:], pair.second.rows.y[-3:], pair.first.lam, pair.why]
            for f in (audits.opposed_rows_pair, audits.misclassified_pair)
            for pair in [f(9)]
        ],
    ]
