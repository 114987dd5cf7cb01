"""Examples of `dpviz.experiments`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from support import make_problem
from support_kept import progress, refusal, shares

import dpviz
from dpviz.experiments.run import run, settings
from dpviz.experiments.studies import (
    answers,
    cost,
    cost_by_group,
    decision_boundary,
    excess_risk,
    groups,
    guarantees,
    inspected,
    majority_baseline,
    noise_comparison,
    observed,
    odds,
    releases,
    scaling,
    scores,
    story,
    trials,
)
from dpviz.experiments.studies.groups import Grouping
from dpviz.experiments.sweeps import curves, folds, grid, sweep
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.mechanisms.attack import Attacker

DESCENT = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=0.5)
OUTPUT = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)


def run_run_examples() -> Iterator[Any]:
    yield progress(lambda listen: run.run(DESCENT, listen))
    r = run.run(DESCENT)
    yield from [
        progress(lambda listen: run.run_epsilons(r.spec, [0.5, 2.0], monitor=listen)),
        [r.accuracy, r.theta, r.expected_accuracy, r.optimality_gap, r.metrics, r.calibration, r.non_private, r.majority],
    ]
    yield from [
        [r.accuracy, r.expected_accuracy, r.optimality_gap, r.instances, r.individual and r.individual.epsilon]
        for r in [run.run(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=3, epsilon=2.0))]
    ]
    r = run.run(dpviz.RunSpec("teaching", mechanism="majority", params={"private": True}))
    yield from [
        [r.accuracy, r.expected_accuracy, r.labels],
        [
            run.calibrate(m, n=1000, d=5, epsilon=0.7, delta=1e-06, lam=0.02)
            for m in ("dp-gd", "output-gaussian", "kst-objective", "dbdp")
        ],
        [
            run.calibrate(m, n=1000, d=5, delta=1e-06, **some)
            for m in ("dp-gd", "cms-objective")
            for some in ({"epsilon": 0.7, "ranges": "private"}, {"attacker": "advantage=0.1", "lam": 0.05, "model": "svm"})
        ],
    ]


def studies_cost_examples() -> Iterator[Any]:
    results = [
        dpviz.run(dpviz.RunSpec("teaching", mechanism=name, seeds=2, epsilon=epsilon))
        for name, epsilon in (("output-gaussian", 1.0), ("dp-gd", 0.5), ("dbdp", 0.3))
    ]
    yield from [
        [cost.split_cost(result) for result in results],
        [cost.cost_in_metric(results[1], cost.split_cost(results[1]), m) for m in ("roc-auc", "log-loss")],
        [cost.cost_in_metric(results[0], cost.split_cost(results[0]), "balanced-accuracy").mean],
    ]


def studies_cost_by_group_examples() -> Iterator[Any]:
    made = cost_by_group.cost_by_group(
        dpviz.RunSpec("census-300", mechanism="output-gaussian", seeds=3, epsilon=2.0), Grouping("region")
    )
    yield from [
        [getattr(made, name) for name in vars(made) if name != "spec"],
        progress(
            lambda listen: cost_by_group.cost_by_group(
                dpviz.RunSpec("census-300", mechanism="dp-gd", seeds=2, seed=77), Grouping("region"), listen
            )
        ),
    ]


def studies_excess_risk_examples() -> Iterator[Any]:
    yield from [
        *(
            [
                m,
                excess_risk.table(m, excess_risk.theory(OUTPUT, m)),
                excess_risk.share_of_the_start(excess_risk.theory(OUTPUT, m)),
            ]
            for m in [excess_risk.excess_over_epsilon(OUTPUT, [0.5, 4.0])]
        ),
        *(
            excess_risk.table(m, excess_risk.theory(DESCENT, m))
            for m in [excess_risk.excess_over_n(replace(DESCENT, epsilon=1.0), [100, 200])]
        ),
        *(
            [m, excess_risk.share_of_the_start(excess_risk.theory(DESCENT, m))]
            for m in [excess_risk.excess_over_d(replace(DESCENT, epsilon=1.0), [3, 6])]
        ),
        progress(lambda listen: excess_risk.excess_over_epsilon(DESCENT, [0.5, 4.0], monitor=listen)),
        progress(lambda listen: excess_risk.excess_over_n(replace(DESCENT, epsilon=1.0), [100, 200], monitor=listen)),
        progress(lambda listen: excess_risk.excess_over_d(replace(DESCENT, epsilon=1.0), [3, 6], monitor=listen)),
    ]


def studies_guarantees_examples() -> Iterator[Any]:
    yield from [
        [vars(one) for one in guarantees.guarantees(DESCENT)],
        progress(lambda listen: guarantees.guarantees(DESCENT, None, listen)),
    ]
    few = ("majority", "dp-gd", "cms-output", "rsgd", "ldp-duchi")
    with mock.patch.object(guarantees, "list_mechanisms", return_value={name: dpviz.list_mechanisms()[name] for name in few}):
        yield from [
            one
            for attacker in (None, Attacker.parse("advantage=0.1"))
            for m in [[*guarantees.watch(replace(DESCENT, seed=9), metrics=["recall-at-precision=0.7"], attacker=attacker)][-1]]
            for one in (
                [len(m.found), m.metrics, m.baselines, m.expected, *m.poor],
                progress(lambda listen, a=attacker: [*guarantees.watch(replace(DESCENT, seed=8), listen, attacker=a)]),
            )
        ]


def studies_inspected_examples() -> Iterator[Any]:
    i = inspected.row_influence(OUTPUT)
    yield from [
        inspected.unusual_columns(dpviz.RunSpec("census-300", mechanism="output-gaussian", seeds=3, epsilon=2.0), 7),
        inspected.one_step(DESCENT),
        inspected.principal_plane(make_problem().rows.X),
        inspected.noise_size(np.arange(12.0).reshape(4, 3)),
        [inspected.sample(i), inspected.cheap(i), inspected.is_cheap(i, 3), inspected.approximation(i)],
    ]
    i = inspected.inspect(dpviz.RunSpec("teaching", mechanism="dbdp", seeds=2))
    n = inspected.noisy_rows(dpviz.RunSpec("teaching", mechanism="dbdp", seeds=2))
    yield from [
        [getattr(i, n) for n in vars(i) if isinstance(getattr(i, n), np.ndarray)],
        n,
        [len(inspected.noising_rows(dpviz.RunSpec("teaching", mechanism="pidp-sgd"), 0.5))],
        inspected.plane(DESCENT),
        inspected.validation_rows(DESCENT),
        progress(lambda listen: inspected.retrain_without(replace(DESCENT, seed=77), [3, 4], listen)),
    ]


def studies_observed_examples() -> Iterator[Any]:
    yield from [
        [
            observed.observed_sensitivity(make_problem(), dpviz.RunSpec(mechanism=m).build(), 4, seed=3)
            for m in ("output-gaussian", "cms-output")
        ],
        observed.observed_movement(make_problem(), dpviz.RunSpec(mechanism="dp-gd").build(), dpviz.Budget(1.0, 0.001), 4),
        [observed.kinds_of(make_problem(model=m).setting) for m in ("logistic", "svm")],
        shares(lambda listen: observed.sensitivity_over_n(OUTPUT, [200, 300], 1, monitor=listen)),
        progress(
            lambda listen: observed.observed_sensitivity(
                make_problem(), dpviz.RunSpec(mechanism="output-gaussian").build(), 4, seed=0, monitor=listen
            )
        ),
        progress(
            lambda listen: observed.observed_movement(
                make_problem(), dpviz.RunSpec(mechanism="dp-gd").build(), dpviz.Budget(1.0, 0.001), 3, monitor=listen
            )
        ),
    ]


def studies_scaling_examples() -> Iterator[Any]:
    yield from [
        [scaling.axis(DESCENT, name) for name in scaling.axes(DESCENT)],
        scaling.bounds(OUTPUT, scaling.axis(OUTPUT, "n")),
        scaling.used_sensitivity(OUTPUT, 50),
        scaling.slopes(np.geomspace(1, 100, 20), np.geomspace(1, 100, 20) ** (-2) + 0.001),
        scaling.bounds_at(OUTPUT, "n", 80),
        progress(lambda listen: scaling.bounds(OUTPUT, scaling.axis(OUTPUT, "n"), listen)),
        scaling.observed_table(scaling.observe(DESCENT, scaling.axis(DESCENT, "n"), [200, 300], 2)),
        scaling.observed_table(scaling.observe(OUTPUT, scaling.axis(OUTPUT, "lam"), [], 2)),
        scaling.reference(scaling.axis(OUTPUT, "n"), np.geomspace(1, 9, 25)),
        odds.odds_over(DESCENT, [0.1, 1.0]),
        [[a.accuracy, a.best] for a in [odds.attack_of(DESCENT)]],
        progress(lambda listen: releases.releases(replace(DESCENT, seed=77), [0.5, 1.0], listen)),
    ]


def studies_story_examples() -> Iterator[Any]:
    s = replace(DESCENT, epsilon=1.0)
    d = story.departure(s, dpviz.run(s).theta)
    yield from [
        story.cost_over(DESCENT, [0.1, 1.0], "accuracy"),
        story.leaver(DESCENT),
        story.best_bet(0.75, 40),
        " ".join(
            str(story.leaver(dpviz.RunSpec("teaching", mechanism=m), w)) for m in ("dp-gd", "dbdp") for w in ("most", "typical")
        ),
        vars(d),
        progress(lambda listen: story.cost_over(replace(DESCENT, seed=77), [0.1, 1.0], "accuracy", listen)),
    ]


def studies_trials_examples() -> Iterator[Any]:
    yield from [
        [vars(one) for one in trials.trials(replace(DESCENT, epsilon=1.0))],
        progress(lambda listen: trials.trials(DESCENT, "accuracy", listen)),
    ]


def sweeps_curves_examples() -> Iterator[Any]:
    t = dpviz.sweep("teaching", mechanisms=["output-gaussian", "dp-gd"], epsilons=[0.2, 1.0, 5.0], seeds=3)
    yield from [
        [
            curves.needed_budgets(curves.summarise(t), 0.8),
            curves.needed_interval(t, "dp-gd", 0.8),
            curves.closed_form(t[t.mechanism == "output-gaussian"], "accuracy"),
            curves.row_at(curves.summarise(t), "dp-gd", 1.0).to_dict(),
        ],
        curves.bootstrap(np.array([0.1, 0.4, 0.3, 0.9])),
        curves.monotone([1.0, 3.0, 2.0, 5.0]),
        curves.monotone([1.0, 3.0, 2.0, 0.0], rising=False),
        curves.grid(0.1, 10.0, 5),
        [curves.loglog_slope(*some) for some in (([1.0, 2.0, 4.0], [3.0, 7.0, 11.0]), ([0, 1, 2, 4], [1, 3, 5, 0]), ([2], [3]))],
        [curves.row_at(curves.summarise(t), "nothing", 1.0)],
        [groups._quantiles(np.array(v), (0.25, 0.5, 0.75)) for v in ([1.0] * 5 + [2.0], [1.234, 5.678, 9.012], [1.01, 1.02])],
        [sweep._named(chosen) for chosen in ("dp-gd", {"dp-gd": {"steps": 3}}, ("dp-gd", "dbdp"))],
        [curves.summarise(t), curves.summarise(t, band="mean"), curves.summarise(t, "optimality_gap", "mean")],
    ]


def sweeps_folds_examples() -> Iterator[Any]:
    t = folds.cross_validate(SweepSpec("teaching", mechanisms=["output-gaussian"], epsilons=[1.0], seeds=2, folds=3), 2)
    yield from [
        folds.summarise_splits(t, 3),
        [vars(one) for one in folds.splits(SweepSpec("teaching", folds=3), 2)],
        progress(
            lambda listen: folds.cross_validate(
                SweepSpec("teaching", mechanisms=["output-gaussian"], epsilons=[1.0], seeds=1, folds=2), 1, monitor=listen
            )
        ),
        progress(
            lambda listen: sweep.run_sweep(
                sweep.SweepSpec("teaching", mechanisms=["dp-gd"], epsilons=[1.0, 2.0], seeds=2), monitor=listen
            )
        ),
    ]


def studies_examples() -> Iterator[Any]:
    yield from [
        answers.cost_of_noise(DESCENT),
        answers.best_method(OUTPUT, ["output-gaussian", "dp-gd", "kst-objective"]),
        answers.epsilon_for(DESCENT, 0.7),
        answers.most_influential(OUTPUT, 3),
        answers.rows_with_noise(dpviz.RunSpec("teaching", mechanism="dbdp", seeds=2)),
        answers.sensitivity_ratio(dpviz.RunSpec("teaching", mechanism="rsgd-ar")),
        answers.attack_bound(DESCENT),
        answers.largest_tolerated_epsilon(DESCENT, "advantage=0.1"),
        answers.claimed_mechanism(DESCENT, ["dp-gd", "dbdp", "non-private"]),
        decision_boundary.separation(
            np.array([[-1.0, 0.5], [2.0, 3.0], [0.3, -0.2], [1.0, 1.0]]), np.array([-1.0, 1.0, -1.0, 1.0])
        ),
        decision_boundary.separation(np.eye(3), np.ones(3)),
        groups._sizes(
            mock.Mock(**{"split.train": np.arange(3), "split.test": np.array([3, 4, 5]), "test.y": np.array([1.0, -1.0, 1.0])}),
            mock.Mock(names=("a", "b", "c"), index=np.array([0, 1, 1, 2, 1, 2])),
        ),
        groups._sizes(
            mock.Mock(**{"split.train": np.arange(2), "split.test": np.array([2, 3]), "test.y": np.array([1.0, -1.0])}),
            mock.Mock(names=("a", "b", "c"), index=np.array([0, 1, 1, 0])),
        ),
        [groups.columns(dpviz.load_dataset(name)) for name in ("census-300", "teaching")],
        groups.suggest_column(dpviz.load_dataset("census-300")),
        [
            [g.names, np.bincount(g.index)]
            for c in ("region", "age")
            for g in [groups.group(dpviz.load_dataset("census-300"), groups.Grouping(c), 60)]
        ],
        [
            [g.names, np.bincount(g.index)]
            for rows in [dpviz.load_dataset("census-300")]
            for unknown in [rows.frame.assign(age=rows.frame["age"].where(np.arange(300) % 7 > 0))]
            for g in [groups.group(replace(rows, frame=unknown), groups.Grouping("age", (30.0, 45.0)))]
        ],
        [
            [
                majority_baseline.majority_baseline(split, spec),
                majority_baseline.looks_no_better(spec, result.theta, "accuracy"),
                majority_baseline.training_loss_note(split, spec, 0.01),
            ]
            for spec in (dpviz.RunSpec("teaching", mechanism="dp-gd", epsilon=e, seeds=3) for e in (0.01, 8.0))
            for result in [dpviz.run(spec)]
            for split in [cost.split_cost(result)]
        ],
        noise_comparison.accountable_methods(OUTPUT),
        [
            [vars(p)[k] for k in vars(p) if k != "mechanism"]
            for p in noise_comparison.published_noise(dpviz.RunSpec("teaching", mechanism="dp-gd"))
        ],
        [noise_comparison.change_method(dpviz.RunSpec("teaching", lam=0.3), m) for m in ("dp-gd", "kst-objective")],
        scores.scores(OUTPUT, dpviz.run(OUTPUT).theta),
    ]


def views_examples() -> Iterator[Any]:
    """What the pages draw of a run: scores, planes, groups, noise and names of rows."""
    census = replace(OUTPUT, dataset="census-300", seeds=3)
    measured = [scores.scores(spec, dpviz.run(spec).theta) for spec in (OUTPUT, replace(DESCENT, model="svm"))]
    report = groups.report(releases.releases(replace(census, dataset="census-1000"), [0.5, 2.0]), Grouping("region"))
    rows, seen = dpviz.load_dataset("teaching"), inspected.inspect(replace(DESCENT, mechanism="dbdp"))
    yield from [
        [
            [one.usual, one.span, one.confusion(0.4), *(curve().drop(columns="model") for curve in curves_of)]
            for one in measured
            if one is not None
            for curves_of in [(one.distribution, one.roc, one.precision_recall, one.reliability)]
        ],
        "\n".join(" ".join(map(str, row)) for one in measured if one for row in one.matrix(0.6, ("no", "yes")).to_numpy()),
        [
            [plane.view.names, plane.view.limits, plane.view.exact, *plane.axes, plane.outlier, plane.labels, plane.scores(theta)]
            for spec, m in (
                (DESCENT, 2),
                (census, 2),
                (replace(DESCENT, model="mlp-4"), 400),
                (replace(census, dataset="iris"), 400),
            )
            for theta in [dpviz.run(spec).theta]
            for plane in [decision_boundary.plane_of(spec, m, theta.shape[1])]
        ],
        [
            [report.curves(m), report.gaps(m), *(report.baseline_gap(model, m) for model in ("non-private", "majority"))]
            for m in groups.MEASURES
        ],
        [scores.scores(OUTPUT, np.zeros((2, 3)), np.ones(2))],
        list(noise_comparison.metrics_by_noise(OUTPUT, OUTPUT.build(), dpviz.run(OUTPUT).calibration, [0.0, 0.1]).values()),
        [[one.needed, one.ratio] for one in noise_comparison.published_noise(DESCENT)],
        " | ".join(
            inspected.row_name(each, k)
            for each in (rows, replace(rows, beside=pd.DataFrame({"side": 1, "name": [f"p{k}" for k in range(rows.n)]})))
            for k in (0, 7)
        ),
        [seen.position(int(seen.row_ids[5])), seen.epsilon, seen.rms_noise, seen.timeline],
        "\n".join(
            f"{name}: {knob.label}; {knob.describe()}; {knob.in_words(getattr(DESCENT, name))}"
            for name, knob in settings.SETTINGS.items()
        ),
        "\n".join(
            refusal(lambda n=name, v=value: dpviz.RunSpec(**{n: v}))
            for name in settings.SETTINGS
            for value in (-1, 0.5, 1e9, "magic", "balanced", None)
        ),
        [
            answers.Answer(value, 0.2, 0.4, right, pd.DataFrame(), "").accepts(given)
            for value, right in ((0.3, ()), ("a", ("a", "b")))
            for given in (0.1, 0.2, 0.4, 0.5, "a", "b", "c")
            if isinstance(given, str) == isinstance(value, str)
        ],
    ]


def sweeps_examples() -> Iterator[Any]:
    yield from [
        [grid.first_pair(replace(DESCENT, mechanism=name)) for name in ("dp-gd", "rsgd-ar", "dp-agd", "non-private")],
        [
            [
                [laid.values, [[i, j, list(cell.replicas)] for i, j, cell in laid.cells], [one.field for one in laid.refused]],
                laid.means({k: cell.attempt() for k, (_, _, cell) in enumerate(laid.cells) if k != 1}, "accuracy"),
            ]
            for laid in (
                grid.lay(DESCENT, ("steps", "clip_norm"), ((5, 0, -1), (0.5, 1.0)), 2),
                grid.lay(OUTPUT, ("refined", "lam"), ((True, False), (0.01, 0.1, 1.0)), 2),
            )
        ],
        [grid.values(DESCENT, name, 3) for name in grid.first_pair(DESCENT)],
        [grid.present_value(DESCENT, name) for name in grid.first_pair(DESCENT)],
    ]
