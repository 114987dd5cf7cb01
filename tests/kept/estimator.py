"""Examples of `dpviz.estimator`."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from support import assert_refused, make_problem

import dpviz
from dpviz.estimator import classifier, features, guarantee, private_search
from dpviz.estimator.classifier import PrivateClassifier
from dpviz.privacy.budget import Budget


def answers_of(m: PrivateClassifier) -> list[Any]:
    """What a fitted classifier holds and says of a few rows."""
    rows = make_problem(200).rows.X
    return [
        m.coef_,
        m.intercept_,
        m.classes_,
        m.guarantee_,
        m.predict_proba(rows[:3]),
        m.decision_function(rows[:3]),
        m.predict(rows[:4]),
        m.predict_log_proba(rows[:2]),
    ]


def classifier_examples() -> Iterator[Any]:
    for m in (
        classifier.PrivateClassifier("output-gaussian", 2.0, random_state=4).fit(
            make_problem(200).rows.X, make_problem(200).rows.y
        ),
        classifier.PrivateClassifier("dp-gd", 2.0, 0.0001, 0.05, classes=[-1, 1], random_state=4).fit(
            make_problem(200).rows.X, make_problem(200).rows.y
        ),
        classifier.PrivateClassifier("output-gaussian", 2.0, data_norm=0.5, fit_intercept=False, random_state=4).fit(
            make_problem(200).rows.X / 2, make_problem(200).rows.y
        ),
        classifier.PrivateClassifier("output-gaussian", 8.0, random_state=4).fit(
            make_problem(200).rows.X, np.digitize(make_problem(200).rows.X[:, 0], [-0.2, 0.2])
        ),
        classifier.PrivateClassifier("dp-gd", 8.0, random_state=4).fit(
            make_problem(200).rows.X, np.digitize(make_problem(200).rows.X[:, 0], [-0.2, 0.2])
        ),
        classifier.PrivateClassifier("cms-output", 8.0, ranges="from data", random_state=4).fit(
            make_problem(200).rows.X, np.digitize(make_problem(200).rows.X[:, 0], [-0.2, 0.2])
        ),
        classifier.PrivateClassifier("output-gaussian", 8.0, ranges=(-1, 1), class_weight={-1: 3}, random_state=4).fit(
            make_problem(200).rows.X, make_problem(200).rows.y
        ),
        classifier.PrivateClassifier("output-gaussian", 8.0, max_weight=2.0, random_state=4).fit(
            make_problem(200).rows.X, make_problem(200).rows.y, sample_weight=np.arange(200) % 3
        ),
        classifier.PrivateClassifier("output-gaussian", 8.0, person_rows=2, random_state=4).fit(
            make_problem(200).rows.X, make_problem(200).rows.y, groups=np.arange(200) // 4
        ),
        classifier.PrivateClassifier("dp-sgd", 8.0, relation="add-remove", public_n=150, random_state=4).fit(
            make_problem(200).rows.X, make_problem(200).rows.y
        ),
        classifier.PrivateClassifier("automatic", 0.5, random_state=4).fit(make_problem(200).rows.X, make_problem(200).rows.y),
        classifier.PrivateClassifier("majority", 1.0, random_state=4).fit(make_problem(200).rows.X, make_problem(200).rows.y),
    ):
        yield answers_of(m)


def features_examples() -> Iterator[Any]:
    yield from [
        one
        for m in [features.norm_map(2, 2.0)]
        for one in (
            [m.rows(np.array([[1.0, 1.0], [3.0, 4.0]]), i) for i in (True, False)]
            + [m.coefficients(np.array([[1.0, 2.0, 3.0]]), True)],
            [
                [
                    m.centre,
                    m.scale,
                    m.low,
                    m.high,
                    m.rows(np.array([[1.0, 5.0], [3.0, 9.0]]), i),
                    m.coefficients(np.array([[1.0, 2.0, 3.0][: 2 + i]]), i),
                ]
                for r in ((-4, 6), [(0, 4), (-1, 6)], {"b": (0, 9), "a": (1, 2)}, "from data")
                for i in (True, False)
                for m in [features.range_map(np.array([[1.0, 5.0], [3.0, 2.0]]), r, ["a", "b"], i)]
            ],
            features.sample_weights([1.0, 3.0, 0.0], 2.0, 3),
            features.sample_weights(0.5, 2.0, 2),
            features.class_weights({"b": 4.0}, np.array(["a", "b", "c"])),
            [features.norm_map(2, r).radius for r in (1.1e-150, 9e149)],
            " ".join(str(assert_refused(features.norm_map, 2, r)) for r in (9e-151, 1.1e150)),
        )
    ]


def private_search_examples() -> Iterator[Any]:
    rows, names = make_problem(200).rows, np.arange(200) // 2
    steps = [{"mechanism": ["output-gaussian", "dp-gd"]}, {"mechanism": ["dp-gd"], "steps": [5, 9]}]
    for estimator, tried, groups in (
        (PrivateClassifier("output-gaussian"), {"lam": [0.01, 0.1]}, None),
        (PrivateClassifier("output-gaussian", ranges=(-1, 1), person_rows=2), {"lam": [0.01, 0.1]}, names),
        (PrivateClassifier(), steps, None),
    ):
        m = private_search.PrivateSearchCV(estimator, tried, epsilon=4.0, delta=0.0001, random_state=4)
        m.fit(rows.X, rows.y, groups=groups)
        some = rows.X[:3]
        yield [m.best_params_, m.guarantee_, m.predict_proba(some), m.decision_function(some), m.predict(rows.X[:4]), m.classes_]


def estimator_examples() -> Iterator[Any]:
    yield from [
        [
            [
                p.each,
                p.for_ranges,
                p.for_models,
                p.budgets,
                p.entry("call", ("c",)).release,
                p.entry("call", ()).status,
                vars(p.guarantee(("x",), ("c",))),
            ]
            for m in ("output-gaussian", "dp-gd", "cms-output", "dbdp")
            for k in (1, 3)
            for r in (False, True)
            for b in [dpviz.RunSpec(mechanism=m).build()]
            for p in [guarantee.Plan.divide(b, make_problem().setting, dpviz.Budget(4.0, 0.001), k, private_ranges=r)]
        ],
        " ".join(
            f"{guarantee.share(dpviz.RunSpec(mechanism=m).build(), make_problem().setting, dpviz.Budget(1.0, 0.001), k)[1]}"
            for m in ("output-gaussian", "cms-output")
            for k in (1, 3)
        ),
        [
            len(
                guarantee.conditions_of(
                    dpviz.RunSpec(mechanism=m).build().calibrate(make_problem().setting, dpviz.Budget(1.0, 0.001)),
                    exact=e,
                    seeded=s,
                )
            )
            for m in ("output-gaussian", "dbdp")
            for e in (True, False)
            for s in (True, False)
        ],
        [
            guarantee.total_budgets(
                dpviz.RunSpec(mechanism="dp-gd").build().calibrate(make_problem().setting, dpviz.Budget(1.0, 0.001)),
                Budget(e, 0.001),
                Budget(3.0, 0.01),
                k,
                p,
            )
            for e in (1.0, 0.5)
            for k in (1, 3)
            for p in (True, False)
        ],
        str(
            guarantee.Plan.divide(
                dpviz.RunSpec(mechanism="dp-gd").build(),
                make_problem().setting,
                dpviz.Budget(1.0, 0.001),
                1,
                private_ranges=False,
            ).guarantee(("ranges", guarantee.CLASS_LABELS), ("c",))
        ),
        [
            guarantee.total_budgets(
                dpviz.RunSpec(mechanism="cms-output").build().calibrate(make_problem().setting, dpviz.Budget(1.0)),
                Budget(1.0),
                Budget(2.5),
                3,
                p,
            )
            for p in (True, False)
        ],
        [
            private_search._Runs((), (), None, make_problem(60).rows.X, np.arange(60) % 3, *split, True, random.Random(1)).right(
                one
            )
            for split in [np.split(np.arange(60), [40])]
            for one in (
                None,
                (np.array([[1.0, -1.0, 0.5, 0.2]]), np.zeros(1), True),
                (np.eye(3, 4), np.array([0.1, 0, 0]), False),
            )
        ],
    ]
    m = PrivateClassifier("output-gaussian", 2.0, random_state=4).fit(make_problem(200).rows.X, make_problem(200).rows.y)
    yield from [
        str(assert_refused(m._settle, m.classes_, features.norm_map(3, 2.0), np.zeros((1, 4)), np.array([np.inf]))),
        [hasattr(m, "guarantee_")],
    ]
