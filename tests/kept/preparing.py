"""Examples of `dpviz.preparing`."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from support import make_problem
from support_kept import kept_or_refused

import dpviz
from dpviz.preparing import base, get_preparation, ranges, scaling, standardisation
from dpviz.privacy.budget import Budget


def preparing_examples() -> Iterator[Any]:
    i = np.arange(120)
    tables = [
        (d, one, epsilon, get_preparation(one).prepare(d, i[7:97], Budget(epsilon, 1e-5), random.Random(5)))
        for values, options in ((i % 17, {"ranges": {"a": (0, 20)}}), (i**2 / 9000, {"person": "who", "person_rows": 2}))
        for frame in [pd.DataFrame({"a": values * 1.0, "b": i % 7 + 0.5, "k": i % 3 > 0, "who": i // 2, "y": i % 5 > 2})]
        for d in [dpviz.dataset(frame.astype({"k": str, "y": str}), target="y", **options)]
        for one, epsilon in (("ranges", 90.0), ("ranges", 0.2), ("scaling", 8.0), ("standardisation", 50.0))
    ]
    yield from [
        scaling.near_corner(np.array([[0.1, 5.0], [9.0, 0.2], [0.3, 0.2]]), np.array([True, True])),
        standardisation.moments(make_problem().rows.X),
        [
            [scaling.near_corner(x, which) for which in (np.array([True, False, True]), np.ones(3, bool))]
            for x in [np.array([[0.1, 0.0, 0.2], [0.01, 0.1, 0.02], [0.05, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 0.0]])]
        ],
        [
            [
                one.id,
                one.cost(facts).mu,
                one.cost(facts).epsilon,
                bool(one.cost(facts).condition),
                one.refusal(facts).replace(" ", "_"),
            ]
            for one in map(get_preparation, ("ranges", "scaling", "standardisation"))
            for facts in (
                base.Facts(300, Budget(2.0, 1e-5), 0, 5, 3, 1),
                base.Facts(9000, Budget(2.0, 1e-5), 3, 5, 30, 2),
                base.Facts(90_000, Budget(0.7, 1e-6), 0, 5, 9, 1),
                base.Facts(90_000, Budget(0.7, 1e-6), 2, 5, 10, 1),
                base.Facts(90_000, Budget(0.7, 1e-6), 0, 5, 0, 0),
                base.Facts(90, Budget(0.7, 1e-6), 0, 5, 9, 0),
            )
        ],
        [[made.scaling, made.encoder, made.looked_at, made.preparations] for d, one, epsilon, made in tables],
        "\n".join(" ".join((*made.remarks, *(one.sentence for one in made.lost))) for d, one, epsilon, made in tables),
        [[made.X, made.norms, made.y] for d, one, epsilon, made in tables],
        [vars(base.Facts.collect(d, 90, Budget(epsilon, 1e-5))) | {"total": epsilon} for d, one, epsilon, made in tables],
        [
            kept_or_refused(lambda compute=compute: compute(replace(tables[0][0], encoder=None)))
            for compute in (base.features_of, ranges.numbers_of, ranges.ranges_matter, lambda d: get_preparation("cut"))
        ]
        + [ranges.ranges_matter(d) for d, *_ in tables],
    ]
