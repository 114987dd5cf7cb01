"""Examples of `dpviz.experiments.studies` in rare states: values on their bounds, small groups, ties, and what is refused."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from kept.experiments import DESCENT, OUTPUT
from support import make_problem
from support_kept import progress, refusal

import dpviz
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.run.setup import calibration_of, setup_for
from dpviz.experiments.studies import (
    cost,
    cost_by_group,
    excess_risk,
    groups,
    influences,
    inspected,
    majority_baseline,
    releases,
    scores,
)
from dpviz.experiments.studies.groups import Grouping

CENSUS = dpviz.load_dataset("census-300")
#: costs in accuracy: by noise, by training, of no advantage, on the bounds, and without a value
COSTS = [
    cost.Cost(np.array([0.7, 0.8, 0.6]), np.array([0.85, 0.9, 0.8]), 0.95, 0.55),
    cost.Cost(np.array([0.53, 0.55]), np.array([0.9, 0.8]), 0.95, 0.55),
    cost.Cost(np.array([0.55, 0.5513]), np.array([0.6, 0.61]), 0.95, 0.55),
    cost.Cost(np.array([0.5, 0.52]), np.array([0.75, 0.77]), 1.02, 0.55),
    cost.Cost(np.array([0.5]), np.array([0.75]), 1.0, 0.55),
    cost.Cost(np.array([0.5503]), np.array([0.9]), 0.95, 0.55),
    cost.Cost(np.array([0.54]), np.array([0.5]), 0.57, 0.55, floor_error=0.03),
    cost.Cost(np.array([0.54]), np.array([0.5]), 0.57, 0.55, METRICS["balanced-accuracy"], floor_error=0.01999),
    cost.Cost(np.array([0.54]), np.array([0.5]), 0.5504, 0.55, METRICS["balanced-accuracy"]),
    cost.Cost(np.array([0.5]), np.array([0.5]), 0.75, error=0.25),
    cost.Cost(np.array([0.5, 0.3]), np.array([0.5, 0.4]), 0.75, error=0.24, expected=0.5),
    cost.Cost(np.array([0.5]), np.array([0.5]), 0.5004, error=0.0),
    cost.Cost(np.array([0.5, np.nan]), np.array([0.5, 0.6]), 0.75),
    cost.Cost(np.array([0.7, 0.9]), np.array([0.6, 0.5]), 0.4, 0.69, METRICS["log-loss"], expected=0.85, error=0.3),
]


def costs_examples() -> Iterator[Any]:
    tied = replace(OUTPUT, dataset="census-100", split_seed=2, epsilon=3.0)
    runs = [
        DESCENT,
        replace(DESCENT, params={"steps": 7, "clip_norm": 0.3}),
        replace(DESCENT, mechanism="rsgd", params={"epochs": 3}),
    ]
    others = [OUTPUT, replace(DESCENT, mechanism="ldp-duchi"), replace(DESCENT, mechanism="kst-objective", model="svm")]
    yield from [
        [[c.mean, c.has_value, c.noise, c.noise_error, c.training, c.total, c.measurable, c.table()] for c in COSTS],
        [setup_for(tied).problem.rows.y.sum(), cost.split_cost(dpviz.run(tied)).majority, setup_for(tied).majority],
        progress(lambda listen: cost.train_without_noise(DESCENT, calibration_of(DESCENT), listen)),
        "\n".join(
            f"{made and (made.worse, made.cause.name, made.fix)}"
            for spec, c in [*((runs[0], c) for c in COSTS), *((spec, COSTS[7]) for spec in runs + others)]
            for made in [majority_baseline.majority_baseline(c, spec)]
        ),
        "\n".join(f"{majority_baseline.training_loss_note(c, runs[0], 0.0123)}" for c in COSTS),
        "\n".join(f"{majority_baseline.training_loss_note(COSTS[6], spec, 0.0123)}" for spec in runs + others),
        "\n".join(
            f"{measure}: {why.cause.name} {why.fix}"
            for known in (None, COSTS[2])
            for made in [dpviz.run(replace(DESCENT, epsilon=0.02, seeds=3))]
            for names in [["accuracy", "balanced-accuracy", "roc-auc", "log-loss", "f1"]]
            for measure, why in majority_baseline.guessing(
                made,
                names,
                made.metrics,
                made.setup.baselines,
                known and replace(cost.split_cost(made), noiseless=known.noiseless),
            ).items()
        ),
        [  # it is better in one metric, and a label has no value in another
            sorted(majority_baseline.guessing(made, list(metrics), made.metrics, floors, cost.split_cost(made)))
            for made in [dpviz.run(replace(DESCENT, epsilon=0.02, seeds=3))]
            for metrics in [("accuracy", "roc-auc", "log-loss")]
            for low in (0.1, np.nan, 0.99)
            for floors in [made.setup.baselines.assign(accuracy=low, roc_auc=0.99)]
        ],
        majority_baseline._by_hand(replace(DESCENT, params={"steps": 0, "noise": "published", "step_size": 0.5})),
        [
            majority_baseline.looks_no_better(tied, theta, metric)
            for theta in (np.zeros((2, 27)), dpviz.run(tied).theta)
            for metric in ("accuracy", "balanced-accuracy", "roc-auc", "log-loss")
        ],
    ]


def cost_by_group_examples() -> Iterator[Any]:
    table = pd.DataFrame(
        {
            "group": ["a", "b", "c", "d"],
            "rows": [0, 50, 100, 60],
            "lost": [np.nan, 0.12, 0.05, 0.2],
            "non_private_right": [np.nan, 0.7, 0.9, 0.8],
            "clipped": [np.nan, 0.33, 0.3, 0.1],
        }
    )
    lost = np.array([[np.nan, 0.1, 0.07, 0.2], [np.nan, 0.14, 0.03, 0.1], [np.nan, 0.12, 0.05, 0.3]])
    yield from [
        [[g.smallest, g.largest, g.more, g.error, g.certain, "".join(g.reasons).replace(" ", "-")]]
        for g in [
            cost_by_group.GroupCosts(table, lost),
            cost_by_group.GroupCosts(table, lost[:1]),
            cost_by_group.GroupCosts(table.assign(clipped=np.nan), lost),
            cost_by_group.GroupCosts(table.assign(rows=[49, 70, 100, 60]), lost[:, ::-1]),
            cost_by_group.GroupCosts(table.assign(rows=[0, 49, 100, 60], clipped=[0.0, 0.3301, 0.3, 0.1]), lost),
            cost_by_group.GroupCosts(table.assign(clipped=[0.0, 0.061, 0.05, 0.1], non_private_right=[0.0, 0.8, 0.9, 0.8]), lost),
            cost_by_group.GroupCosts(
                table.assign(clipped=[0.0, 0.059, 0.05, 0.1], non_private_right=[0.0, 0.9, 0.8, 0.8]), lost * 9
            ),
        ]
    ]
    scored = scores.Scores(
        {"private": np.array([[0.1, 0.9, 0.4, 0.6], [0.2, 0.3, 0.8, 0.95]]), "non-private": np.array([[0.5, 0.5, 0.1, 1.0]])},
        np.array([1.0, -1.0, 1.0, -1.0]),
        True,
    )
    yield from [
        [one.usual, one.span, one.distribution(), *(one.confusion(t) for t in (0.5, 0.4, 1.5))]
        for one in (scored, replace(scored, probabilities=False), replace(scored, y=np.ones(4)), replace(scored, y=-np.ones(4)))
    ]
    yield from [
        [scored.roc(), scored.precision_recall(), scored.reliability(), replace(scored, probabilities=False).reliability()],
        [list(scored.matrix(0.4, ("no", "yes")))],
        "\n".join(
            " ".join(map(str, row))
            for y in (scored.y, np.ones(4), -np.ones(4))
            for row in replace(scored, y=y).matrix(0.96, ("no", "yes")).to_numpy()
        ),
        [cost_by_group.cost_by_group(replace(DESCENT, mechanism="dbdp"), Grouping("kind")).table],
        [scores.scores(replace(OUTPUT, model="svm"), np.array([[0.3, -0.2, 0.1]]))],
    ]


def groups_examples() -> Iterator[Any]:
    frame, n = CENSUS.frame, np.arange(300)
    many = replace(
        CENSUS,
        frame=frame.assign(
            region=[f"r{k % 14 if k % 3 else 1}" for k in n],
            education=n % 13,
            household=n % 12,
            **{"years in job": np.where(n % 4, n % 4 / 2, np.nan)},
        ),
    )
    gaps = replace(
        many,
        frame=many.frame.assign(
            region=many.frame["region"].where(n % 5 > 0),
            household=many.frame["household"].where(n % 7 > 0),
            age=frame["age"].iloc[::-1].to_numpy(),
        ),
        beside=pd.DataFrame({"side": np.where(n < 40, "x", "y"), "score": n / 7}),
    )
    yield from [
        ["+".join(g.names).replace(" ", "-"), np.bincount(g.index), g.cuts, g.index[:9]]
        for rows in (CENSUS, many, gaps)
        for name, cuts, tested in (
            ("region", (), None),
            ("education", (), 120),
            ("education", (), 119),
            ("household", (), None),
            ("years in job", (), None),
            ("age", (), 120),
            ("age", (), 119),
            ("age", (30.0,), None),
            ("age", (20.5, 30.25, 45.0, 900.0), 60),
        )
        for g in [groups.group(rows, Grouping(name, cuts), tested)]
    ]
    yield from [
        [np.bincount(groups.group(gaps, Grouping(name), tested).index) for name in ("side", "score") for tested in (None, 120)],
        " ".join(f"{name}:{number}" for name, number in groups.columns(gaps).items()),
        " ".join(
            groups.suggest_column(rows, tested) for rows, tested in ((CENSUS, 30), (CENSUS, 200), (CENSUS, None), (many, 200))
        ),
        groups.suggest_column(replace(CENSUS, frame=frame[["label"]])) + "-",
        "\n".join(
            refusal(lambda c=column, at=cuts: groups.group(CENSUS, Grouping(c, at)))
            for column, cuts in (
                ("label", ()),
                ("region", (1.0,)),
                ("age", (30.0, 30.0)),
                ("age", (30.0, 29.0)),
                ("age", (30.0, np.inf)),
                ("age", (np.nan,)),
            )
        ),
        " ".join(f"{q:g}" for q in groups._quantiles(np.array([-0.9, -0.004, 0.9]), (0.25, 0.5, 0.75))),
        groups.measure_groups(
            np.array([[0.3, -0.2, 0.0, 0.7, -0.1], [-1.0, 0.4, 0.2, -0.3, 0.6]]),
            np.array([1.0, -1.0, 1.0, 1.0, -1.0]),
            np.array([0, 0, 1, 1, 3]),
            4,
        ),
        [
            groups._quantiles(np.array(v), s)
            for v in ([1.0, 2.0, 4.0, 9.0], [100.0, 1250.0, 9990.0], [-0.004, 0.001, 0.002])
            for s in ((0.5,), (0.25, 0.5, 0.75))
        ],
    ]
    report = groups.report(releases.releases(replace(OUTPUT, dataset="census-1000", seeds=3), [1.5, 0.5]), Grouping("household"))
    label = groups.report(
        releases.releases(replace(OUTPUT, dataset="census-300", mechanism="majority", params={"private": True}), [0.5]),
        Grouping("region"),
    )
    yield from [
        [
            [
                len(one.compared),
                one.epsilons,
                one.sizes,
                one.draws.drop(columns="group"),
                one.curves("recall").drop(columns="group"),
            ],
            [one.baselines.drop(columns=["group", "model"]), one.gaps("recall"), one.gaps()],
            [
                one.baseline("majority", "recall").to_numpy(),
                one.baseline_gap("non-private", "mean_score"),
                one.baseline_gap("majority", "mean_score"),
            ],
        ]
        for one in (report, label, replace(report, sizes=report.sizes.assign(small=[False, True, True, True])))
    ]


def inspected_examples() -> Iterator[Any]:
    rows = [
        SimpleNamespace(
            problem=SimpleNamespace(n=n, m=m, model=SimpleNamespace(convex=convex)), exact_curvature=exact, solver=solver
        )
        for n, m, convex, exact, solver in (
            (5000, 2000, True, True, "dense"),
            (5000, 2000, False, False, "factored"),
            (5000, 2001, False, False, "cg"),
        )
    ]
    noisy, shares = replace(DESCENT, mechanism="ldp-gaussian", seeds=3), replace(DESCENT, mechanism="pidp-sgd", seeds=3)
    frame = CENSUS.frame.assign(region=np.where(np.arange(300) == 3, "moon", "earth"), household=np.arange(300) % 9 > 0)
    odd = SimpleNamespace(dataset=replace(CENSUS, frame=frame), split=setup_for(replace(OUTPUT, dataset="census-300")).split)
    few = mock.patch.object(inspected, "EXACT_WORK", 1.0)
    yield from [
        [[inspected.cheap(i), inspected.sample(i), *(inspected.is_cheap(i, k) for k in (4, 5, 6, 10, 11))] for i in rows],
        "|".join(inspected.approximation(i) for i in rows),
        few(lambda: [inspected.validation_rows(DESCENT)])(),
        mock.patch.object(inspected, "SAMPLE", 9)(few(lambda: [inspected.validation_rows(OUTPUT)]))(),
        [inspected.one_step(replace(spec, seeds=12)) for spec in (OUTPUT, DESCENT)],
        [inspected.one_step(replace(DESCENT, mechanism=name)) for name in ("non-private", "dbdp", "kst-objective", "cms-output")],
        [inspected.noisy_rows(noisy, k) for k in (0, 2)],
        [inspected.noisy_rows(OUTPUT)],
        [
            [each.mechanism, each.params]
            for model in ("logistic", "mlp-4")
            for each in inspected.noising_rows(replace(DESCENT, model=model), 0.3)
        ],
        [
            inspected.principal_plane(np.array(each))
            for each in ([[1.0], [4.0], [2.5]], [[2.0, -7.0, 1.0], [2.0, 3.0, 1.5], [1.0, 0.0, 1.0]], [[3.0, 1.0]])
        ],
        [inspected.noise_size(np.ones((1, 3)))],
        [
            [
                i.row_ids,
                i.position(int(i.row_ids[7])),
                i.timeline,
                i.rms_noise,
                i.epsilon,
                i.noise_count,
                i.ever,
                i.first,
                i.size,
                i.attack and i.attack.accuracy,
            ]
            for spec in (noisy, shares, OUTPUT, replace(DESCENT, mechanism="dbdp-pi"))
            for i in [inspected.inspect(spec)]
        ],
        [
            [inspected.is_retrained(spec, at), inspected.retrain_without(spec, at).norm, inspected.is_retrained(spec, at)]
            for spec in [replace(OUTPUT, lam=0.07)]
            for at in ([3, 11], [5])
        ],
        progress(lambda listen: inspected.inspect_with_influence(replace(DESCENT, seed=78), listen)),
        [
            [name, str(value).replace(" ", ""), str(typical).replace(" ", "")]
            for k, most in ((3, 2), (9, 9))
            for name, value, typical in mock.patch.object(inspected, "setup_for", mock.Mock(return_value=odd))(
                inspected.unusual_columns
            )(OUTPUT, k, most)
        ],
        [
            influences.influence_of(of, **more).norm
            for of, more in (
                ("teaching", {}),
                (replace(OUTPUT, lam=0.1), {}),
                (make_problem(), {}),
                (make_problem(), {"theta": np.array([0.2, -0.1, 0.3, 0.4])}),
                (make_problem(), {"solver": "cg"}),
            )
        ],
        [influences.influence_of("census-100").frame().index[:5].to_numpy()],
    ]


def excess_risk_examples() -> Iterator[Any]:
    start, bound = "of the bound, start not yet forgotten", "bound"
    made = excess_risk.excess_over_n(replace(DESCENT, epsilon=1.0, delta=1e-4, seeds=1, lam=0.02), [120, 900])
    network = replace(DESCENT, model="mlp-4", seeds=1, params={"steps": 3})
    yield from [
        excess_risk.table(made, excess_risk.theory(replace(OUTPUT, lam=0.02), made)),
        excess_risk.theory(replace(DESCENT, mechanism="non-private"), made),
        excess_risk.theory(network, made),
        [
            excess_risk.share_of_the_start(formulas)
            for formulas in (
                [],
                [{bound: 0.7}],
                [{start: 0.2, bound: 0.8}, {start: 0.3, bound: 0.9}, {bound: 0.0}, {}],
                [{start: 0.1, bound: 0.0}],
            )
        ],
        refusal(lambda: excess_risk.excess_over_d(DESCENT, [2, 5])),
        [[e.d, e.delta, e.mean] for e in excess_risk.excess_over_d(replace(OUTPUT, class_weight=2.5), [3, 4])],
        " ".join(f"{one.key} {one.title} {one.data} {one.of(made[1]):g}" for one in excess_risk.AXES.values()),
    ]
