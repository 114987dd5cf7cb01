"""Examples of `dpviz.common`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from support_kept import refusal, shares

from dpviz.common import digits, limits, norms, persons, progress, random, validate


def common_examples() -> Iterator[Any]:
    with persons.choose_rows_by(3):
        with persons.choose_rows_by(5):
            inside = persons.choice()
        after = persons.choice()
    yield from [
        [inside, None, after, None, persons.choice()],
        [persons.bound_rows(pd.Series(list("aabbbcdaab")), k, np.random.SeedSequence(s)) for k in (1, 2) for s in (0, 4)],
        [
            [norms.scale_into_ball(x, r), norms.row_norms(x, r), *norms.split_norms(x)]
            for r in (1.0, 2.0)
            for x in (np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]), np.array([[3e200, 4e200], [0.0, 3e-200], [0.6, 0.0]]))
        ],
        [
            [list(batches) for t in range(3) for batches in [batch_of(t)]]
            for kind in (
                random.poisson_batches(9, 0.4),
                random.poisson_batches(4, 1.0),
                random.person_batches(np.array([5, 7, 5, 2, 7, 7]), 0.5),
                random.shuffled_batches(np.array([0, 4, 9])),
            )
            for batch_of in [random.lockstep(kind, [random.generator(stream) for stream in random.spawn(3, 2)])]
        ],
        [random.single_normals(random.spawn(3, 1)[0])((2, 3)), random.standard_gamma_sphere(random.spawn(3, 2), 3)],
        " ".join(
            map(
                digits.three,
                (
                    0.0,
                    0.5,
                    0.12345,
                    -0.123456,
                    1.0,
                    -5.432,
                    999.5,
                    1234.0,
                    -12_345.0,
                    9_999_999.0,
                    1e7,
                    2e7,
                    -1e-5,
                    3.2e-7,
                    1e300,
                ),
            )
        ),
        " ".join(map(digits.three, (float("nan"), float("inf"), -float("inf")))),
        [vars(limits.Limits(megabytes=m, rows=9).widen()) for m in (50, 300)],
        "\n".join(
            map(
                refusal,
                (
                    lambda: limits.Limits().check_bytes(50_000_000),
                    lambda: limits.Limits().check_bytes(50_000_001),
                    lambda: limits.Limits(megabytes=2).check_bytes(3_400_000, more=True),
                    lambda: limits.Limits(columns=3).check_columns(3),
                    lambda: limits.Limits(columns=3).check_columns(4),
                    lambda: limits.Limits(rows=3).check_rows(3),
                    lambda: limits.Limits(rows=3).check_rows(4),
                    lambda: validate.check_choice("model", "logistc", ["svm", "", "logistic"]),
                    lambda: validate.check_choice("model", 3, ["svm", "logistic"]),
                    lambda: validate.check_instance("of", 3, limits.Limits),
                    lambda: validate.check_integer("steps", 2.5, 1, 9),
                    lambda: validate.check_integer("steps", 10, 1, 9),
                    lambda: validate.check_integer("x", 10**5000, 0, 5),
                    lambda: validate.number("x", "1"),
                    lambda: validate.check_text("positive", "a\ud800"),
                    lambda: validate.parse_path("file", "a\0b"),
                ),
            )
        ),
        [
            shares(lambda listen, s=s: [report(x) for report in [progress.throttle(listen, s)] for x in (0.1, 0.5, 0.6)])
            for s in (0.0, 1e9)
        ],
        validate.escape_controls("a\x1b[2J\u202eb\n é"),
    ]
