"""Examples of `dpviz.experiments.run`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from support import make_problem
from support_kept import refusal

import dpviz
from dpviz.experiments.run import links, measure, metrics, settings
from dpviz.mechanisms.base import Training
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
            for y in map(np.array, ([1.0] + [-1.0] * 9, [1.0] + [-1.0] * 10, [1.0] * 3 + [-1.0]))
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
