"""Examples of `dpviz.common`."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from support_kept import refusal, shares

from dpviz.common import boundary, digits, limits, memory, norms, persons, progress, random, threads, toml, validate, version


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
                    *(
                        mock.patch.dict("os.environ", DPVIZ_MAX_ROWS=text)(limits.Limits.from_environment)
                        for text in ("1000000000", "1000000001", "0", "1.5", "x")
                    ),
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
        [[[one.start, one.stop] for one in threads.groups(*some)] for some in ((0, 3), (1, 3), (7, 3), (3, 7), (100,))],
        [
            [len(one), list(one), one[1], one.index, one.cuts]
            for one in [random.BatchIndices.join([np.array([4, 7]), np.array([], int), np.array([2, 9, 3])])]
        ],
        [random.generator(stream).random(2) for one in random.spawn(7, 2) for stream in random.substreams(one, 3)],
        [random.gamma_sphere(random.generator(random.spawn(7, 1)[0]), 3), random.standard_gaussian(random.spawn(7, 2), 3)],
        persons.bound_rows(pd.Series(list("aabbbcdaab"))[1:], 2),
        [
            [
                shares(
                    lambda hear, items=items, weigh=weigh: [
                        inside(0.5) for _, inside in progress.track(progress.part(hear, 0.25, 0.5), items, *weigh)
                    ]
                )
            ]
            for items, weigh in (([3, 1, 4], ()), ([3, 1, 4], (float,)), ([], ()))
        ],
        [validate.show("a" * length) for length in (58, 59, 200)] + [validate.show(10**4300).replace(" ", "_")],
        [validate.number("x", value) for value in (3, np.float32(0.5), Decimal("2.25"), Fraction(1, 8), np.int64(7))]
        + [validate.number_from_text("x", text) for text in (" 12 ", "−0.5", ".5e1", "+3", "1e-5", "7" * 40, "7" * 41, "2.")]
        + [validate.check_integer("x", value, 1, 9) for value in (1, 9, 3.0, np.int64(4), Decimal(5))]
        + [validate.check_range("x", value, 0.25, 2) for value in (0.25, 2, 1.5)]
        + [validate.check_bool("x", value) for value in (True, np.bool_(False))]
        + [validate.positive("x", 1e-300)],
        "\n".join(
            map(
                refusal,
                (
                    lambda: validate.number("x", True),
                    lambda: validate.number("x", 10**400),
                    lambda: validate.number("x", Decimal("sNaN")),
                    lambda: validate.number("x", float("nan"), fix="Do."),
                    lambda: validate.number_from_text("x", "1_000"),
                    lambda: validate.number_from_text("x", "1e999"),
                    lambda: validate.number_from_text("x", "0." + "1" * 399),
                    lambda: validate.number_from_text("x", "0." + "1" * 398),
                    lambda: validate.positive("x", 0),
                    lambda: validate.positive("x", -2, fix="Do."),
                    lambda: validate.check_range("x", 0.249, 0.25, 2),
                    lambda: validate.check_range("x", 2.001, 0.25, 2),
                    lambda: validate.check_integer("x", True, 1, 9),
                    lambda: validate.check_integer("x", 0, 1, 9),
                    lambda: validate.check_bool("x", 1),
                    lambda: validate.check_instance("x", 3, str, bytes),
                    lambda: validate.check_choice("model", "svn", ["svm", "svg", ""]),
                    lambda: toml.parse(b"a = 1\n" * 200, "file", most=1023),
                    lambda: toml.parse(b"a = " + b"1" * 1020, "file", most=1024),
                    lambda: toml.parse(b"a = '\xff'", "file", "Do."),
                    lambda: toml.read("/", "file"),
                    lambda: toml.read("/no/such/file.toml", "file"),
                    lambda: toml.read_bytes("/no/such/file.toml", "file", 9, "Do."),
                    lambda: toml.read("a\0", "file"),
                ),
            )
        ),
        [
            version.content_hash(sources)
            for sources in ({"b": b"1\r\n", "a": b"2"}, {"a": b"2", "b": b"1\n"}, {"a": b"21", "b": b"\n"})
        ],
        [version.foreign_code(validate.InvalidInput), len(version.foreign_code(Fraction))],
        "\n".join(
            f"{work.error!r} {work.problem('Take fewer.', 'Try again.')}"
            for error in (None, ValueError("a cause"), ValueError(), MemoryError(), validate.InvalidInput("x", "is odd", "Do."))
            for work in [boundary.Boundary("work", through=(KeyError,))]
            for _ in [work.__exit__(type(error), error, None)]
        ),
        [
            boundary.Boundary("work", through=(KeyError,)).__exit__(type(error), error, None)
            for error in (None, KeyError(), MemoryError(), KeyboardInterrupt())
        ],
        [
            [
                kept.get("a"),
                kept.compute("a", lambda hear: "abc", owner="p"),
                kept.compute("a", lambda hear: "x", owner="p"),
                kept.compute("a", lambda hear: "xy", owner="q", version=2),
                kept.get("a"),
                kept.get("b"),
                "a" in kept,
                "b" in kept,
                kept.compute("long", lambda hear, most=most: "x" * most, owner="q"),
                "long" in kept,
                kept.compute("a", lambda hear: "x" * 9, owner="q", version=3),
                "a" in kept,
                kept.put("c", "defg", owner="r"),
                kept.values(),
                memory.owned_entries("q").get("of an example"),
                memory.held_bytes()["of an example"],
                memory.is_forgotten("of q"),
            ]
            for most in (7, 8, 3)
            for kept in [memory.Cache[str]("of an example", 7, len)]
        ],
        [
            [norms.unit(x), norms.row_norms(x, 0.25), norms.add_intercept(x[-1:], 0.75), norms.add_intercept(x, 0.0) is x]
            for x in (
                np.array([[3.0, 4.0], [0.0, 0.0], [5e-324, 0.0], [0.3, 0.4]]),
                np.array([[1e308, 1e308], [1e-160, 1e-160], [0.6, 0.8]]),
            )
        ],
    ]
