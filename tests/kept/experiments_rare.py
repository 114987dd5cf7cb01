"""Examples of `dpviz.experiments` in rare states: noise, sensitivity, the first page, trials, answers and sweeps."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from kept.experiments import DESCENT, OUTPUT
from support import make_problem
from support_kept import progress, refusal

import dpviz
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.studies import answers, noise_comparison, observed, releases, scaling, story, trials
from dpviz.experiments.sweeps import cell, cells, cluster, curves, folds, grid, sweep
from dpviz.experiments.sweeps.cell import Cell
from dpviz.experiments.sweeps.sweep import SweepSpec


def noise_examples() -> Iterator[Any]:
    yield from [
        [
            [
                vars(a)[name]
                for a in [noise_comparison.accounted_release(replace(DESCENT, mechanism=name, **more))]
                for name in ("compared", "released")
            ]
            for name, more in (
                ("dp-gd", {"ranges": "private", "dataset": "census-300"}),
                ("dp-sgd", {}),
                ("kst-objective", {}),
                ("output-gaussian", {}),
            )
        ],
        [noise_comparison.accountable_methods(replace(DESCENT, dataset="census-300", ranges="private"))],
        [
            [
                one.mechanism.id,
                one.in_use and one.in_use.noise_scale,
                one.published,
                one.own_constants,
                one.refusal.replace(" ", "-"),
            ]
            for name, epsilon in (("dbdp", 1e-9), ("dbdp", 0.7), ("output-gaussian", 0.7))
            for one in [
                noise_comparison._published(dpviz.list_mechanisms()[name], make_problem().setting, dpviz.Budget(epsilon, 1e-4))
            ]
        ],
        " ".join(noise_comparison.accountable_methods(replace(DESCENT, model="mlp-4"))),
        [
            [one.needed, one.ratio, one.refusal.replace(" ", "-")]
            for one in noise_comparison.published_noise(replace(DESCENT, epsilon=1.0, params={"noise": "exact"}))
        ],
        [
            [one.needed, one.ratio]
            for one in (
                noise_comparison.PublishedNoise(type(DESCENT.build()), None, None, True),
                noise_comparison.PublishedNoise(type(DESCENT.build()), calibration_of(DESCENT), calibration_of(OUTPUT), True),
                noise_comparison.PublishedNoise(type(DESCENT.build()), calibration_of(DESCENT), calibration_of(OUTPUT), False),
                noise_comparison.PublishedNoise(type(DESCENT.build()), calibration_of(DESCENT), None, True),
            )
        ],
        list(
            noise_comparison.metrics_by_noise(
                replace(OUTPUT, seed=3), OUTPUT.build(), calibration_of(OUTPUT), [0.3], metrics=["recall@fpr=0.02"]
            ).values()
        )[-1],
        progress(
            lambda listen: noise_comparison.metrics_by_noise(DESCENT, DESCENT.build(), calibration_of(DESCENT), [0.3], listen)
        ),
    ]
    yield from [
        [
            observed.protects_a_query(dpviz.RunSpec(mechanism=name).build(), make_problem().setting)
            for name in ("dp-gd", "non-private", "majority", "amp", "dbdp", "cms-objective")
        ],
        [observed.observed_sensitivity(make_problem(model=m), OUTPUT.build(), 5, seed=6) for m in ("logistic", "svm")],
        [
            s.largest(kind)
            for s in [observed.observed_sensitivity(make_problem(), OUTPUT.build(), 2, seed=1)]
            for kind in (None, "random", "flipped", "worst-case data", "none")
        ],
        [
            observed.kinds_of(setting)
            for setting in (replace(make_problem().setting, abilities=frozenset()), make_problem(model="mlp-4").setting)
        ],
        [
            observed._opposed(make_problem(), theta, flat)
            for theta, flat in (
                (np.zeros(4), np.eye(4)[2]),
                (np.array([0.0, 3.0, 0.0, 0.0]), np.eye(4)[1]),
                (np.array([0.6, 1.2, 0, 0]), np.array([0.6, 0.8, 0.0, 0.0])),
            )
        ],
        observed.observed_movement(
            make_problem(), dpviz.RunSpec(mechanism="dp-gd", params={"steps": 3}).build(), dpviz.Budget(2.0, 0.001), 2, seed=5
        ),
        [
            [n, s.largest(), s.bound]
            for n, s in observed.sensitivity_over_n(replace(DESCENT, mechanism="dp-sgd", seed=4), [150], 4)
        ],
        "\n".join(
            refusal(compute)
            for compute in (
                lambda: observed.observed_sensitivity(make_problem(), dpviz.RunSpec(mechanism="dbdp").build(), 1, seed=0),
                lambda: observed.observed_sensitivity(make_problem(), OUTPUT.build(), 0, seed=0),
                lambda: observed.census_name(99),
                lambda: observed.census_name(100),
                lambda: observed.census_name(1_000_001),
            )
        ),
    ]


def releases_examples() -> Iterator[Any]:
    yield from [
        [
            [one.record is None, one.instances.empty, one.held is None, one.spec.epsilon]
            for one in releases.releases(DESCENT, [2.0, 0.7]).at
        ],
        [
            [epsilon, problem.field]
            for epsilon, problem in releases.releases(replace(DESCENT, mechanism="dbdp"), [1e-9, 1.0]).refused
        ],
        refusal(lambda: releases.releases(replace(DESCENT, mechanism="dbdp"), [1e-9])),
    ]


def scaling_examples() -> Iterator[Any]:
    off = [
        scaling.axis(replace(DESCENT, mechanism=name, lam=3e-6), knob)
        for name, knob in (("dp-sgd", "sampling_rate"), ("song-sgd", "batch"), ("dp-gd", "lam"), ("rsgd", "step_size"))
    ]
    yield from [
        off,
        [
            [m.knobs()["steps"] and m.steps, s.n, s.lam, s.person_rows, s.weighted]
            for m, s in (
                scaling.changed_setting(replace(DESCENT, class_weight=2.0, mechanism="dp-gd"), name, value)
                for name, value in (("n", 77.0), ("lam", 0.31), ("steps", 9))
            )
        ],
        [scaling.changed_setting(replace(DESCENT, mechanism="song-sgd"), "n", 4000.0)[0].batch],
        [
            scaling.bounds_at(replace(DESCENT, mechanism=name), knob, value)
            for name, knob, value in (
                ("rsgd", "step_size", 3.0),
                ("bolt-on-psgd", "n", 50),
                ("majority", "n", 50),
                ("amp", "lam", 0.2),
                ("output-gaussian", "lam", 0.2),
            )
        ],
        [
            scaling.used_sensitivity(replace(DESCENT, mechanism=name), rows)
            for name in ("amp", "rsgd", "dp-sgd")
            for rows in (2, 80)
        ],
        [
            scaling.observed_table([]),
            scaling.slopes([1, 2, 4, 8, 16], [1, 0.6, 0.1, 0.3, 0.001], 3),
            scaling.slopes([1, 2], [0.0, 1.0]),
        ],
        [
            scaling.reference(replace(off[3], grid=np.array([1.0, 3.0, 9.0, 27.0]), value=value, reference=reference), curve)
            for value in (8.0, 4.0)
            for reference in ((-1.5, ""), None)
            for curve in ([2.0, 5.0, np.inf, 7.0], [np.nan, 5.0, 6.0, 7.0], [np.nan, np.inf, np.nan, np.nan])
        ],
        progress(lambda listen: scaling.observe(OUTPUT, scaling.axis(OUTPUT, "lam"), [], 1, monitor=listen)),
    ]


def story_examples() -> Iterator[Any]:
    yield from [
        [
            [spec.mechanism, spec.params]
            for model in ("logistic", "mlp-4")
            for spec in [story.noising_run(replace(DESCENT, model=model))]
        ],
        story.cost_over(replace(DESCENT, mechanism="dbdp"), [1e-9, 3.0], "roc-auc"),
        story.cost_over(replace(DESCENT, mechanism="dbdp"), [1e-9], "roc-auc"),
        story.cost_over(replace(DESCENT, mechanism="dp-sgd", seeds=3), [3.0], "balanced-accuracy"),
        [story.best_bet(share, 3) for share in (0.5, 0.9, 1.0)],
        refusal(lambda: story.leaver(DESCENT, "least")),
        [vars(story.departure(OUTPUT, dpviz.run(replace(OUTPUT, seeds=1)).theta, "typical"))],
        [trials.Trial(DESCENT, "", 0.5, gain, 0.25).helps for gain in (0.5, 0.51, 0.4, -1.0)],
        [
            [change.replace(" ", "-"), other.params, other.lam]
            for name in ("dp-gd", "dp-sgd", "rsgd-ar", "output-gaussian")
            for other, change in trials.other_settings(replace(DESCENT, mechanism=name, lam=0.2))
        ],
        [[one.mean, one.gain, one.error] for one in trials.trials(replace(OUTPUT, seeds=1), "log-loss")],
    ]


def answers_examples() -> Iterator[Any]:
    yield from [
        [answers.cost_of_noise(replace(DESCENT, seeds=1)), answers.cost_of_noise(replace(DESCENT, seeds=5, epsilon=0.2))],
        answers.best_method(replace(DESCENT, seeds=1, params={"steps": 1}), ["dp-gd", "majority"]),
        answers.best_method(replace(DESCENT, seeds=4, epsilon=0.1), ["dp-gd", "majority", "dp-sgd", "output-gaussian"]),
        [answers.epsilon_for(replace(OUTPUT, seeds=3, epsilon=7.0), target, 0.2, 4.0) for target in (0.5, 0.85)],
        [answers.rows_with_noise(replace(DESCENT, mechanism=name, seeds=5)) for name in ("pidp-sgd", "dbdp-pi")],
        answers.largest_tolerated_epsilon(replace(OUTPUT, delta=1e-4), "tpr=0.05@fpr=0.01"),
        "\n".join(
            refusal(compute)
            for compute in (
                lambda: answers.rows_with_noise(DESCENT),
                lambda: answers.attack_bound(replace(DESCENT, mechanism="dbdp")),
                lambda: answers.attack_bound(replace(DESCENT, mechanism="non-private")),
                lambda: answers.claimed_mechanism(DESCENT, ["dp-gd"]),
                lambda: answers.epsilon_for(replace(DESCENT, seeds=1), 1.0, 0.01, 0.02),
            )
        ),
    ]


def sweeps_examples() -> Iterator[Any]:
    pair, folded = (
        SweepSpec("teaching", mechanisms=["dp-gd", "dbdp"], epsilons=[2.0, 0.5], seeds=12, metrics=["recall@fpr=0.3"]),
        SweepSpec("census-100", folds=3, split_seed=2, seed=7, seeds=1, mechanisms=["output-gaussian"], epsilons=[1.0]),
    )
    private = SweepSpec("census-300", ranges="private", mechanisms=["dp-gd"], epsilons=[2.0, 0.5], seeds=2)
    usual = Cell(DESCENT, (0.5, 2.0), range(1, 2))
    steep, apart = (
        pd.DataFrame({"mechanism": "m", "epsilon": [0.1, 1.0, 10.0, 100.0], "mean": [0.5, 0.7, 0.6, 0.9], "status": "proved"}),
        pd.DataFrame(
            {
                "mechanism": "m",
                "epsilon": np.repeat([1.0, 10.0], 3),
                "seed": [0, 1, 2, 2, 1, 0],
                "log_loss": [0.9, 0.8, 0.7, 0.3, 0.35, 0.6],
            }
        ),
    )
    yield from [
        [
            [c.spec.mechanism, c.epsilons, [c.replicas.start, c.replicas.stop], c.metrics]
            for one in (pair, private)
            for c in one.cells()
        ],
        [[r.mechanism, r.epsilon, r.seeds] for r in (*pair.runs(), pair.run("dbdp", 3.0))],
        pair.to_toml(),
        [[one.folds, one.split_seed, one.seed] for spec in (folded, replace(folded, folds=0)) for one in folds.splits(spec, 2)],
        [
            t[["split", "repeat", "fold", "seed"]]
            for spec in (folded, replace(folded, folds=0))
            for t in [folds.cross_validate(spec, 2)]
        ],
        [
            folds.summarise_splits(
                pd.DataFrame({"mechanism": "m", "epsilon": 1.0, "split": [0, 0, 1, 1], "accuracy": [0.6, 0.7, 0.9, 0.8], **more}),
                k,
            )
            for k in (0, 4)
            for more in ({}, {"expected_accuracy": [0.61, 0.69, 0.8, 0.8]})
        ],
        [
            [[e, p.field] for e, p in cell.problems(c.attempt())]
            for c in (
                usual,
                Cell(replace(DESCENT, mechanism="dbdp"), (1e-9, 2.0), range(2)),
                Cell(replace(DESCENT, mechanism="dbdp"), (1e-9,), range(1)),
            )
        ],
        [
            len(Cell(replace(DESCENT, mechanism="dbdp"), (1e-9, 2.0, 3.0), range(2)).attempt()),
            usual.attempt()[["mechanism", "epsilon", "seed"]],
        ],
        [
            usual.key() == other.key()
            for other in (
                replace(usual, spec=replace(DESCENT, seeds=9, epsilon=3.0)),
                replace(usual, replicas=range(2)),
                replace(usual, epsilons=(0.5,)),
                replace(usual, metrics=("recall-at-precision=0.3",)),
                replace(usual, spec=OUTPUT),
            )
        ],
        [len(Cell(replace(DESCENT, mechanism="dbdp"), (1e-9, 2.0), range(2)).attempt())],
        [
            mock.patch.multiple(cells, THREADS_FROM=least, _ENTRIES=most, processors=mock.Mock(return_value=5))(
                lambda: cells.workers_for([usual, Cell(replace(usual.spec, dataset="census-1000"), (1.0,), range(1))])
            )()
            for least, most in ((961, 10**6), (960, 10**6), (960, 64_801), (960, 9))
        ],
        [
            cluster._look(mock.Mock(**{"sync.return_value": {"workers": workers}}), alone) is None
            for workers in ({}, {"a": 1})
            for alone in (None, time.monotonic() - 30)
        ],
        refusal(lambda: cluster._look(mock.Mock(scheduler=None), None)),
        refusal(lambda: cluster._look(mock.Mock(**{"sync.return_value": {"workers": {}}}), time.monotonic() - 61)),
        [
            cells.workers_for([usual]),
            cells.workers_for([]),
            cells.workers_for([replace(usual, spec=replace(DESCENT, dataset="none"))]),
        ],
        [cluster.failed_cell(usual, "").shape, [[e, name] for e, name, *_ in cluster.failed_cell(usual, "").attrs["problems"]]],
        "\n".join(" ".join(words[2:]) for words in cluster.failed_cell(usual, "it fell").attrs["problems"]),
        progress(lambda listen: list(cells.run_cells([usual, replace(usual, replicas=range(1))], monitor=listen))),
    ]
    laid = grid.grid(replace(DESCENT, seeds=4, epsilon=3.0), "clip_norm", "lam", 2, 3, ("recall-at-fpr=0.2",))
    tables = {k: pd.DataFrame({"accuracy": [0.1 * k, 0.3]}) for k in (0, 2)} | {1: pd.DataFrame()}
    yield from [
        [
            laid.names,
            laid.values,
            [[i, j, c.epsilons, len(c.replicas), c.metrics, c.spec.lam, c.spec.params] for i, j, c in laid.cells],
        ],
        [[laid.draws(tables, "accuracy", i, j), laid.settings_at(i, j)] for i in range(len(laid.values[0])) for j in range(2)],
        laid.means(tables, "accuracy"),
        [list(grid.declared_knobs(replace(DESCENT, mechanism=name))) for name in ("dp-gd", "bassily-sgd", "rsgd-ar", "dbdp-pi")],
        [grid.values(replace(DESCENT, lam=0.03, params={"steps": 8}), name, 3) for name in ("steps", "lam", "step_size")],
        [
            grid.apply(replace(DESCENT, params={"steps": 8}), {"lam": 0.2, "clip_norm": 0.4}).params,
            grid.apply(replace(DESCENT, lam=0.7), {"steps": 3}).lam,
        ],
        [curves.rises(name) for name in ("objective", "log_loss", "recall_at_precision_0.7", "train_accuracy")],
        [
            curves.needed_budgets(steep, target, rising=rising)
            for target in (0.65, 0.5, 0.4, 0.95, 0.775)
            for rising in (True, False)
        ],
        [
            curves.needed_budgets(steep.assign(mean=[np.nan, 0.5, np.inf, 0.9]), 0.6),
            curves.needed_budgets(steep.assign(mean=np.nan), 0.6),
        ],
        [curves.needed_interval(apart, "m", target, "log_loss") for target in (0.5, 0.75, 0.1, 0.9)],
        [
            curves.needed_interval(apart[apart["seed"] == 0], "m", 0.5, "log_loss"),
            curves.needed_interval(apart, "n", 0.5, "log_loss"),
            curves.needed_interval(apart.iloc[:-1], "m", 0.5, "log_loss"),
        ],
        [float(curves.row_at(steep, "m", epsilon)["mean"]) for epsilon in (0.31, 0.32, 5.0, 1e9)],
        [curves.grid(0.12345, 9.8765, 3), curves.grid(0.7, 3.0, 1), curves.grid(1.0, 1.002, 2)],
        [
            curves.closed_form(pd.DataFrame({"expected_a": values}), "a")
            for values in ([0.2, 0.5], [0.2, np.nan], [np.nan, np.nan])
        ],
        [curves.summarise(steep.iloc[:0].assign(seed=0, accuracy=0.0)).shape, curves.bootstrap([0.3])],
        [
            curves.loglog_slope(*some)
            for some in (([1, 1, 2], [3, 4, 5]), ([1, 1], [2, 3]), ([1, np.inf, 4], [2, 3, 4]), ([1, 3, 4], [2, np.nan, 0]))
        ],
        [vars(c)["mechanisms"] for c in (SweepSpec(mechanisms="amp"), SweepSpec(mechanisms={"rsgd": {"epochs": 2}}))],
        "\n".join(
            refusal(compute)
            for compute in (
                lambda: SweepSpec(mechanisms=[]),
                lambda: SweepSpec(mechanisms=["dp-gd", 3]),
                lambda: SweepSpec(mechanisms=7),
                lambda: SweepSpec(epsilons=[]),
                lambda: SweepSpec(epsilons="0.1"),
                lambda: SweepSpec(epsilons={0.1: 2}),
                lambda: SweepSpec(epsilons=[1.0, 0.5, 1]),
                lambda: SweepSpec(metrics="f1"),
                lambda: curves.rises("seed"),
                lambda: curves.summarise(apart, "log_loss", "wide"),
                lambda: curves.needed_budgets(steep, np.nan),
                lambda: curves.grid(1.0, 1.001, 4),
                lambda: curves.grid(2.0, 2.0, 2),
                lambda: folds.splits(replace(folded, published_split=True, folds=0)),
                lambda: folds.splits(replace(folded, folds=0)),
                lambda: folds.splits(folded, 0),
                lambda: folds.splits(folded, 1001),
                lambda: grid.grid(DESCENT, "noise", "lam"),
                lambda: grid.grid(DESCENT, "lam", "lam"),
                lambda: list(cells.run_cells([Cell(replace(DESCENT, mechanism="dbdp"), (1e-9,), range(1))])),
                lambda: sweep.run_sweep(DESCENT),
            )
        ),
    ]
