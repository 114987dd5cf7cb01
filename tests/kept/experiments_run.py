"""Examples of `dpviz.experiments.run`."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from support import make_problem
from support_kept import refusal

import dpviz
from dpviz.experiments.run import links, measure, metrics, resolve, run, settings, setup, spec, trajectory
from dpviz.mechanisms.base import Training
from dpviz.mechanisms.knobs import Changes
from dpviz.models import get_model


def run_examples() -> Iterator[Any]:
    yield from [
        [
            [
                t.accuracy(make_problem(37, seed=8).rows),
                t.expected_accuracy(make_problem(37, seed=8).rows),
                t.expected_accuracies(make_problem(37, seed=8).rows),
                t.metrics(make_problem(37, seed=8).rows),
                t.diverged,
            ]
            for m in ("output-gaussian", "dp-gd", "cms-output", "majority")
            for t in [
                measure.train(
                    dpviz.RunSpec(mechanism=m).build(),
                    Training(
                        make_problem(),
                        [dpviz.RunSpec(mechanism=m).build().calibrate(make_problem().setting, dpviz.Budget(1.0, 0.001))],
                        dpviz.common.random.spawn(5, 3),
                    ),
                )
            ]
        ],
        [
            metrics.measure(
                s,
                np.array(y),
                [*metrics.METRICS, "recall@precision=0.7", "recall@fpr=0.25", "recall@precision=1"],
                probabilities=p,
            )
            for s in [np.array([[2.0, -1.0, 0.5, 0.5, -0.3, 0.0, 1.7], [0.0] * 7, [-5.0, 40.0, 800.0, -800.0, 0.2, 0.2, -0.1]])]
            for y in ([1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0], [-1.0] * 7, [1.0] * 7, [-1.0, 1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
            for p in (True, False)
        ],
        "\n".join(
            f"{one.id}, {one.label}, {one.kind}, {one.within}, {one.shares}, {one.column}, {one.needs}, "
            f"{one.higher_is_better}, {one.level}"
            for one in (
                *metrics.METRICS.values(),
                *map(metrics.get_metric, ("recall@precision=0.7", "recall@false-positive-rate=0.25", "recall@precision=0.5")),
            )
        ),
        " ".join(
            str(one and one.id)
            for one in map(
                metrics.metric_of_column,
                (
                    "roc_auc",
                    "recall_at_precision",
                    "recall_at_precision_0.7",
                    "recall_at_false_positive_rate_0.25",
                    "recall",
                    "f1",
                ),
            )
        ),
        [
            metrics.all_metrics(["f1", "recall@fpr=0.3", "recall@precision=0.2", "recall@fpr=0.3"]),
            metrics.levels_of(["f1", "recall@precision=0.2", "recall@fpr=0.3", "recall@fpr=0.3"]),
            metrics.levels_of(["recall@precision=0.5"]),
        ],
        [
            metrics.measure_models(
                get_model(model), np.array([[0.3, -0.2, 0.9, 0.1], [0.0] * 4]), make_problem(37, seed=8).rows, labels, names
            )
            for model in ("logistic", "svm")
            for labels, names in (
                (None, metrics.METRICS),
                (np.array([1.0, -1.0]), ["f1", "brier", "accuracy", "balanced-accuracy"]),
            )
        ],
        [
            [metrics.rarer_share(y), metrics.default_metric(y)]
            for y in (np.repeat([1.0, -1.0], counts) for counts in ((1, 9), (1, 10), (3, 1), (9, 1), (10, 1)))
        ],
        "\n".join(
            refusal(compute)
            for compute in (
                lambda: metrics.measure(np.zeros(3), np.ones(3)),
                lambda: metrics.measure(np.zeros((2, 3)), np.ones(4)),
                lambda: metrics.measure(np.zeros((2, 0)), np.ones(0)),
                lambda: metrics.measure(np.zeros((1, 2)), np.array([1.0, 0.0])),
                lambda: metrics.measure(np.array([[np.inf, 0.0]]), np.array([1.0, -1.0])),
                lambda: metrics.get_metric("f2"),
                lambda: metrics.get_metric("f1=0.3"),
                lambda: metrics.get_metric("recall@precision=0"),
                lambda: metrics.get_metric("recall@precision=1.1"),
                lambda: metrics.get_metric("recall@fpr=0"),
                lambda: metrics.get_metric("recall@fpr=-0.1"),
                lambda: metrics.get_metric("recall@fpr=x"),
                lambda: links.drop_version({"v": "3"}),
                lambda: settings.check_epsilon(0),
                lambda: settings.check_epsilon(settings.LEAST_EPSILON),
                lambda: settings.check_epsilon(settings.LEAST_EPSILON * 0.99),
                lambda: settings.check_epsilon(settings.MOST_EPSILON),
                lambda: settings.check_epsilon(settings.MOST_EPSILON * 1.01),
                lambda: settings.SETTINGS["delta"].check("delta", 1.0),
                lambda: settings.SETTINGS["delta"].check("delta", 0.999),
                lambda: settings.SETTINGS["delta"].check("delta", settings.LEAST_DELTA),
                lambda: settings.SETTINGS["delta"].check("delta", settings.LEAST_DELTA / 1.01),
                lambda: settings.SETTINGS["delta"].check("delta", 0),
                lambda: settings.SETTINGS["folds"].check("folds", 1),
                lambda: settings.SETTINGS["folds"].check("folds", 2),
                lambda: settings.SETTINGS["class_weight"].check("class_weight", "balanced"),
                lambda: settings.SETTINGS["class_weight"].check("class_weight", [1]),
                lambda: settings.SETTINGS["class_weight"].parse("class_weight", " balanced "),
            )
        ),
        " ".join(
            f"{links.add_version(query)} {links.drop_version(query, problems)} {len(problems)}"
            for query in (
                {},
                {"v": "2"},
                {"epsilon": "0.5"},
                {"v": "1", "seed": "3"},
                {"v": "1", "mechanism": "dbdp"},
                {"v": "9", "seed": "3"},
            )
            for problems in [[]]
        ),
        [settings.SETTINGS["delta"].in_words(value) for value in (None, 1.23456e-5)]
        + [settings.SETTINGS["delta"].parse("delta", "1e-5"), settings.SETTINGS["class_weight"].parse("class_weight", "2.5")],
    ]


def rare_runs_examples() -> Iterator[Any]:
    descent = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=0.5)
    census, private = replace(descent, dataset="census-300"), replace(descent, dataset="census-300", ranges="private")
    odd = dpviz.RunSpec(
        "census-100",
        "svm",
        mechanism="dp-sgd",
        epsilon=0.25,
        delta=1e-6,
        lam=0.3,
        class_weight=0.4,
        seeds=3,
        seed=9,
        folds=3,
        params={"epochs": 4, "relation": "add-remove"},
    )
    weighted = [replace(descent, class_weight=w) for w in (1.0, 2.5, 0.4)]
    yield from [
        " ".join(f"{k}={v}" for k, v in odd.to_query().items()),
        " ".join(str(each) for each in odd.to_dict().values()),
        [
            dpviz.RunSpec.from_query("?" + "&".join(f"{k}={v}" for k, v in odd.to_query().items())) == odd,
            hash(odd) == hash(replace(odd, lam=0.2)),
            hash(odd) == hash(replace(odd, seed=1)),
            pickle.loads(pickle.dumps(odd)) == odd,
        ],
        [
            [s.dataset, s.model, s.epsilon, s.seed, s.seeds, s.lam, s.class_weight, s.folds]
            for one in (
                odd,
                replace(private, seed=6, lam=0.2, delta=1e-5),
                replace(private, ranges="declared", row_scaling="standardised", seed=6),
            )
            for changes in ((Changes.DATA,), (Changes.FIT,), (Changes.DATA, Changes.NOISE), ())
            for s in [one.restrict(*changes)]
        ],
        [spec._as_text(query) for query in ("?a=1&b=", {"a": ["1", "2"], "b": ("3", "5"), "c": [], 4: 5})],
        [
            [s.mechanism, s.epsilon, s.params, [p.field for p in problems]]
            for query in (
                "epsilon=0&mechanism=dp-gd&dp-gd.steps=7&dbdp.steps=9",
                "v=9&seeds=x&mechanism=dp-gd&dp-gd.steps=0",
                "dp-gd.steps=7",
                "v=1&dp-gd.steps=7",
                {"mechanism": "none"},
            )
            for problems in [[]]
            for s in [dpviz.RunSpec.from_query(query, problems)]
        ],
        [
            resolve.automatic_lam(dpviz.RunSpec(mechanism=name).build(), "logistic", 3000, 9, dpviz.Budget(0.3, 1e-5), persons)
            for name in ("amp", "objective-tight", "output-gaussian")
            for persons in (0, 4)
        ],
        [resolve.fresh_noise()(lambda: len(resolve._fresh.get()))(), resolve._fresh.get()],
        [
            run.public_setting(replace(private, row_scaling=s, epsilon=9.0), 50_000, d).preparations
            for s in ("automatic", "standardised")
            for d in (3, 4000)
        ],
        [type(one.params).__name__ for one in (dpviz.RunSpec(), descent)],
        [setup.class_weights(one) for one in weighted],
        [setup.all_rows_of(one, dpviz.load_dataset("teaching")).class_weights for one in weighted],
        [
            [h.problem.n, len(h.test), h.problem.lam, h.split.train[:4], h.split.test[:4]]
            for h in [setup.setup_for(replace(odd, dataset="census-120")).held_out]
        ],
        [setup.mechanism_of(replace(descent, mechanism="song-sgd"), rows).batch for rows in (0, 32, 3200)],
        setup.usable_epsilons(replace(descent, mechanism="dbdp"), [1e-9, 1.0])[0],
        [
            [one.lam, one.base_lam, one.of_method, one.n_train, one.budget]
            for one in map(
                resolve.resolve,
                (odd, private, replace(descent, mechanism="amp"), replace(descent, mechanism="rsgd", epsilon=0.01)),
            )
        ],
        [
            [
                one.request.mechanism,
                one.spec.mechanism,
                one.change_epsilon(1e-3).spec.mechanism,
                one.change_epsilon(9.0).spec.mechanism,
                one.change_epsilon(9.0).budget,
            ]
            for s in (dpviz.RunSpec("teaching", epsilon=3.0), census)
            for one in [resolve.resolve(s)]
        ],
        resolve.resolve(dpviz.RunSpec("teaching")).why,
        [
            resolve.fit_key(one) == resolve.fit_key(other)
            for one, other in (
                (descent, replace(descent, seed=3)),
                (private, replace(private, epsilon=2.0)),
                (private, replace(private, seed=2)),
                (census, replace(census, row_scaling="unit")),
                (descent, replace(descent, folds=4)),
            )
        ],
        [
            resolve.resolve(one).key() == resolve.resolve(other).key()
            for one, other in (
                (descent, replace(descent, delta=1e-5)),
                (descent, replace(descent, params={"steps": 0})),
                (descent, replace(descent, seed=3)),
                (private, replace(private, seed=3)),
                (private, replace(private, ranges="declared")),
            )
        ],
        [
            [s.dataset, s.model, s.mechanism, s.delta, s.seeds, s.published_split, [p.field for p in problems]]
            for one in (
                replace(descent, dataset="none"),
                replace(descent, delta=0.5),
                replace(descent, published_split=True),
                replace(descent, published_split=True, folds=3),
                replace(descent, mechanism="output-gaussian", model="mlp-4"),
                replace(descent, model="mlp-4", class_weight=2.0),
                replace(descent, ranges="private"),
            )
            for problems in [[]]
            for s in [resolve.resolve(one, problems).spec]
        ],
        [
            [
                one.theta,
                one.accuracy,
                one.replicas.start,
                one.record is None,
                one.instances.shape,
                one.noiseless_run and one.noiseless_run.theta,
            ]
            for one in run.run_epsilons(descent, [0.5, 3.0], instances=False, replicas=range(1, 2), noiseless_runs=True)
        ],
        [
            run.tabulate(run.run_epsilons(one, [0.5, 2.0], instances=False), ("recall-at-precision=0.8",))
            .drop(columns=["dataset", "model", "mechanism", "status", "neighbouring"])
            .mean()
            .to_dict()
            for one in (private, descent, replace(descent, mechanism="majority", params={"private": True}))
        ],
        [
            [p.n, p.d, p.lam, p.model, p.preparations]
            for one in (descent, replace(private, mechanism="rsgd"), replace(private, intercept=False, mechanism="amp"), odd)
            for p in [run.public_setting(one, 500, 7)]
        ],
        [
            one.in_words(value).replace(" ", "-")
            for one, value in (
                (settings.SETTINGS["model"], "mlp-7"),
                (settings.SETTINGS["mechanism"], "automatic"),
                (settings.SETTINGS["mechanism"], "dbdp"),
                (settings.SETTINGS["seeds"], 1200),
            )
        ],
        [settings.SETTINGS[name].form(value) for name, value in (("model", "mlp-7"), ("model", "svm"))],
        [
            [t.steps, t.total, t.theta[[0, 1, -1]], t.measure("accuracy"), t.spec.dataset]
            for t in [trajectory.trajectory(replace(descent, params={"steps": 9}), 5)]
        ],
        [trajectory.trajectory(replace(descent, mechanism=name)) for name in ("dp-sgd", "rsgd")],
        "\n".join(
            refusal(compute)
            for compute in (
                lambda: dpviz.RunSpec(params=[1]),
                lambda: dpviz.RunSpec(params={"steps": 3}),
                lambda: dpviz.RunSpec(dataset=" "),
                lambda: dpviz.RunSpec(model="tree"),
                lambda: dpviz.RunSpec.from_query("v=9&seeds=x"),
                lambda: resolve.resolve(replace(descent, delta=1 / 320)),
                lambda: resolve.resolve(replace(descent, published_split=True, folds=3)),
                lambda: resolve.resolve(replace(descent, model="mlp-4", class_weight=2.0)),
                lambda: resolve.resolve(replace(descent, mechanism="kst-objective", model="mlp-4")),
                lambda: resolve.resolve(3),
                lambda: run.calibrate("dp-gd", n=100, d=3),
                lambda: run.calibrate("dp-gd", n=100, d=3, epsilon=1.0, attacker="advantage=0.1"),
                lambda: run.calibrate("dp-gd", n=0, d=3, epsilon=1.0),
                lambda: run.calibrate("dp-gd", n=9, d=0, epsilon=1.0),
                lambda: run.public_setting(replace(descent, mechanism="amp", model="mlp-4"), 9, 3),
            )
        ),
    ]
