"""Examples of `dpviz.estimator`."""

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from support import assert_refused, make_problem
from support_kept import refusal

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
            [
                [
                    m.rows(np.array([[0.5, 5.0], [3.0, 8.0], [-9.0, 2.0]]), i),
                    m.coefficients(np.array([[1.0, 2.0, 3.0][: 2 + i]]), i),
                    m.looked_at,
                ]
                for x, r in (
                    (np.array([[1.0, 5.0], [3.0, 8.0]]), np.array([[0.0, 4.0], [2.0, 7.5]])),
                    (np.array([[1.0, 5.0], [1.0, 8.0]]), "from data"),
                    (np.array([[2.0**40, 5.0], [2.0**40, 8.0]]), "from data"),
                    (np.array([[1.0, 5.0], [3.0, 8.0]]), ((-1, 1), (2, 9))),
                )
                for i in (True, False)
                for m in [features.range_map(x, r, ["a", "b"], i)]
            ],
            [
                features.sample_weights(None, 3.0, 2),
                features.sample_weights([2.0, 2.5, 0.0], 2.0, 3),
                features.class_weights(None, np.arange(2)),
            ],
            features.class_weights({1: 0.5}, np.arange(3)),
            "\n".join(
                refusal(compute)
                for compute in (
                    lambda: features.range_map(np.eye(2), "data", ["a", "b"], True),
                    lambda: features.range_map(np.eye(2), 3, ["a", "b"], True),
                    lambda: features.range_map(np.eye(2), np.array(3.0), ["a", "b"], True),
                    lambda: features.range_map(np.eye(2), {"a": (0, 1)}, ["a", "b"], True),
                    lambda: features.range_map(np.eye(2), [(0, 1)] * 3, ["a", "b"], True),
                    lambda: features.range_map(np.eye(2), [(0, 1), "ab"], ["a", "b"], True),
                    lambda: features.range_map(np.eye(2), [(0, 1), (0, 1, 2)], ["a", "b"], True),
                    lambda: features.range_map(np.eye(2), [(0, 1), (3, 3)], ["a", "b"], True),
                    lambda: features.range_map(np.eye(2), (5, 4), ["a", "b"], True),
                    lambda: features.range_map(np.eye(2), (0, np.inf), ["a", "b"], True),
                    lambda: features.range_map(np.eye(2), (-1e151, 1e151), ["a", "b"], False),
                    lambda: features.norm_map(2, 0.0),
                    lambda: features.norm_map(2, None),
                    lambda: features.sample_weights([1.0, -1.0], 2.0, 2),
                    lambda: features.sample_weights([1.0, np.inf], 2.0, 2),
                    lambda: features.sample_weights(["a", "b"], 2.0, 2),
                    lambda: features.sample_weights([0.0, 0.0], 2.0, 2),
                    lambda: features.sample_weights([1.0], 2.0, 2),
                    lambda: features.sample_weights(0.0, 2.0, 2),
                    lambda: features.sample_weights(None, 0.0, 2),
                    lambda: features.class_weights("balanced", np.arange(2)),
                    lambda: features.class_weights("equal", np.arange(2)),
                    lambda: features.class_weights({2: 1.0}, np.arange(2)),
                    lambda: features.class_weights({1: 0.0}, np.arange(2)),
                    lambda: features.class_weights({1: "a"}, np.arange(2)),
                )
            ),
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
    problem, three = make_problem(200), np.digitize(make_problem(200).rows.X[:, 0], [-0.2, 0.2])
    public, x, y = dataclasses.replace(make_problem().setting, person_rows=2), problem.rows.X, problem.rows.y
    few = [
        PrivateClassifier("output-gaussian", 2.0, random_state=4, **more)
        for more in ({"classes": [-1, 1, 3]}, {"ranges": (-1, 1), "data_norm": None})
    ]
    person = guarantee.Plan.divide(
        dpviz.RunSpec(mechanism="output-gaussian").build(), public, Budget(4.0, 0.001), 3, private_ranges=True
    )
    yield from [
        [
            person.entry("call", ("c",)).release,
            vars(person.guarantee((guarantee.CLASS_LABELS,), ())),
            vars(person.guarantee(("a", "b", guarantee.CLASS_LABELS), ("c",))),
        ],
        "\n".join(
            str(person.guarantee(read, ())) for read in ((), (guarantee.CLASS_LABELS,), ("a", guarantee.CLASS_LABELS), ("a", "b"))
        ),
        [
            guarantee.share(dpviz.RunSpec(mechanism=name).build(), make_problem().setting, dpviz.Budget(1.3, delta), 3)
            for name, delta in (
                ("cms-output", 0.0),
                ("cms-output", 0.001),
                ("output-gaussian", 0.0),
                ("dbdp", 0.001),
                ("dp-sgd", 0.001),
            )
        ],
        [
            guarantee.total_budgets(
                dpviz.RunSpec(mechanism="dp-gd").build().calibrate(make_problem().setting, Budget(1.0, 0.001)),
                Budget(e, d),
                Budget(2.0, 0.4),
                3,
                False,
            )
            for e, d in ((1 - 5e-13, 0.001), (1 - 1e-9, 0.001), (1.0, 0.0009))
        ],
        [few[0].get_params(), few[1].set_params(tau=3, epsilon=0.7).get_params()],
        [[t.classifier_tags.poor_score, t.input_tags.sparse] for t in [few[0].__sklearn_tags__()]],
        [
            [k.coef_, k.intercept_, k.predict(x[:2]), k.predict_proba(x[:2]), k.decision_function(x[:2])]
            for n in (150, 3000)
            for k in [PrivateClassifier("dp-sgd", 8.0, relation="add-remove", public_n=n, random_state=5).fit(x, y).to_sklearn()]
        ],
        [
            PrivateClassifier("output-gaussian", 9.0, lam=0.2, random_state=3, class_weight={0: 2.0})
            .fit(x, three, sample_weight=np.arange(200) % 3 / 2)
            .coef_
        ],
        "\n".join(
            refusal(compute)
            for compute in (
                lambda: few[0].fit(x, three),
                *(
                    lambda options=options: PrivateClassifier(**options).fit(x, y)
                    for options in (
                        {"epsilon": 0},
                        {"delta": 0.5},
                        {"delta": "x"},
                        {"delta": 10**400},
                        {"lam": -1},
                        {"mechanism": "objective-tight", "steps": 5},
                        {"nonsense": 5},
                        {"data_norm": -1},
                        {"data_norm": 1e-320},
                        {"ranges": (0, 5e-324)},
                        {"ranges": (-1.7e308, 1.7e308)},
                        {"ranges": [(0, 1)]},
                        {"ranges": [None, (0, 1)]},
                        {"random_state": -1},
                        {"class_weight": {"z": 2.0}},
                        {"class_weight": pd.NA},
                        {"class_weight": "balanced"},
                        {"class_weight": {1: 0.0}},
                        {"max_weight": 0.0},
                        {"mechanism": "none"},
                        *({"ranges": ranges} for ranges in ("data", (1, 0), {"x0": (0, 1)}, 3, np.array(1.0))),
                    )
                ),
                *(
                    lambda name=name: PrivateClassifier(name).fit(x, y, sample_weight=np.ones(200))
                    for name in ("dp-agd", "ldp-duchi")
                ),
                lambda: PrivateClassifier().fit(x, y, sample_weight=[2**2000] * 200),
                lambda: PrivateClassifier().fit(x, y, groups=[[1]] * 200),
                *(lambda w=w: PrivateClassifier().fit(x, y, sample_weight=w) for w in ([-1.0] * 200, [1.0, 2.0])),
                *(
                    lambda options=options: private_search.PrivateSearchCV(
                        **{"estimator": PrivateClassifier("output-gaussian"), "param_grid": {"lam": [0.1]}} | options
                    ).fit(x, y)
                    for options in (
                        {"estimator": PrivateClassifier("objective-tight")},
                        {"estimator": PrivateClassifier("dp-gd", person_rows=2)},
                        {"param_grid": {"lam": [-1.0]}},
                        {"param_grid": {name: range(1000) for name in ("lam", "a", "b")}},
                        {"mean_runs": 1.0},
                        {"delta": 0.1},
                        {"delta": 1e-200},
                        {"epsilon": 0.0},
                        {"epsilon": "2"},
                        {"random_state": "x"},
                    )
                ),
                lambda: PrivateClassifier(classes=[1, 1]).fit(x, y),
                lambda: PrivateClassifier(classes=[[1, 2], [3, 4]]).fit(x, y),
                lambda: PrivateClassifier(classes=["a", 1]).fit(x, y),
                lambda: PrivateClassifier(classes=[1, 2, 2]).fit(x, y),
                lambda: PrivateClassifier().fit(x, np.ones(200)),
                lambda: PrivateClassifier(person_rows=2).fit(x, y),
                lambda: PrivateClassifier().fit(x, y, groups=np.arange(199)),
                lambda: PrivateClassifier().fit(x, y, groups=[None, *range(199)]),
                lambda: PrivateClassifier(data_norm=None).fit(x, y),
                lambda: PrivateClassifier(data_norm=2.0, ranges=(-1, 1)).fit(x, y),
                lambda: PrivateClassifier(random_state="a").fit(x, y),
                lambda: PrivateClassifier(public_n=1).fit(x, y),
                lambda: PrivateClassifier(fit_intercept=2).fit(x, y),
                lambda: PrivateClassifier(mechanism=3).fit(x, y),
                lambda: m.decision_function(np.full((1, 4), 1e308)),
                lambda: private_search.PrivateSearchCV(3, {"lam": [0.1]}).fit(x, y),
                lambda: private_search.PrivateSearchCV(few[0], {"lam": list(range(1, 102)), "steps": list(range(1, 102))}).fit(
                    x, y
                ),
                lambda: private_search.PrivateSearchCV(few[0], {"epsilon": [0.1]}).fit(x, y),
                lambda: private_search.PrivateSearchCV(few[0], {3: [0.1]}).fit(x, y),
                lambda: private_search.PrivateSearchCV(PrivateClassifier(class_weight={1: 2.0}), {"lam": [0.1]}).fit(x, y),
                lambda: private_search.PrivateSearchCV(PrivateClassifier(), {"lam": [0.1]}, held_out=0.51).fit(x, y),
                lambda: private_search.PrivateSearchCV(PrivateClassifier(), {"lam": [0.1]}, distribution="all").fit(x, y),
            )
        ),
        str(assert_refused(m._settle, m.classes_, features.norm_map(3, 2.0), np.zeros((1, 4)), np.array([np.inf]))),
        [hasattr(m, "guarantee_")],
        [  # what follows are the words of scikit-learn
            [said.partition(":")[0], ".." in said]
            for lam in ([], 0.1)
            for said in [refusal(lambda lam=lam: private_search.PrivateSearchCV(PrivateClassifier(), {"lam": lam}).fit(x, y))]
        ],
    ]
