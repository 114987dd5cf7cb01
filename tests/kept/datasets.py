"""Examples of `dpviz.datasets`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from support import assert_refused
from support_kept import refusal

from dpviz.datasets import base, catalogue
from dpviz.datasets.table import cell_text, columns, decode, encoder


def catalogue_examples() -> Iterator[Any]:
    d = catalogue.dataset(
        pd.DataFrame({"a": [1.0, 2.5, 3.0, 9.0] * 5, "b": list("xyxz") * 5, "label": [0, 1, 1, 0] * 5}),
        target="label",
        ranges={"a": (0, 8)},
    )
    f = pd.DataFrame(
        {
            "age": [30, 41, 55, None, 62, 38, 47, 29, 71, 66] * 12,
            "pay": [x * 10.5 for x in range(120)],
            "job": list("abcabdaab?") * 12,
            "when": pd.date_range("2020-01-01", periods=120).astype(str),
            "id": [f"p{i // 2}" for i in range(120)],
            "y": ["no", "yes", "no", "no", "yes"] * 24,
        }
    )
    made = [
        catalogue.dataset(f, **{"target": "y"} | o)
        for o in (
            {},
            {"positive": "no"},
            {"ranges": {"age": (20, 80), "pay": (0, 1000)}, "categories": {"job": ["a", "b"], "y": ["no", "yes"]}},
            {"person": "id", "person_rows": 2, "drop": ["when"]},
            {"defaults": {"age": 40, "job": "a"}},
            {"missing": {"job": ["d"]}, "columns": ["age", "job"]},
            {"target": "pay", "above": 600.0},
        )
    ]
    yield from [
        [base.train_size(n, k) for n in (10, 401) for k in (0, 2, 5)],
        [catalogue.rows_of(n) for n in ("teaching", "census-300")],
        [catalogue.canonical_name(*some) for some in (("teaching",), ("census",), ("Census, 1,200",), ("census", 500))],
        [
            [one.X, one.scaling, one.norms, one.looked_at, one.encoder, one.constant, one.rescale("unit").X]
            for start in (d, made[2], made[3].rescale("centred"), made[6])
            for one in [start]
            for ways in (("clip", "largest", "bound"), ("centred", "unit"), ("largest", "centred", "clip"))
            for way in ways
            for one in [one.rescale(way)]
        ],
        "\n".join(
            " ".join(
                (
                    *one.notes[-1:],
                    *one.cautions,
                    *one.rare_class,
                    *one.alike,
                    one.automatic_scaling,
                    *(x.sentence for x in one.lost),
                )
            )
            for start in (d, made[2], made[3], replace(d, y=np.where(np.arange(20) > 18, 1.0, -1.0)))
            for way in ("unit", "clip", "centred", "largest")
            for one in [start.rescale(way)]
        ),
        [
            [part.train, part.test]
            for rows in (d, made[3])
            for seed, folds in ((0, 0), (5, 0), (0, 3), (1, 3), (5, 3), (4, 2))
            for part in [rows.split(seed, folds)]
        ],
        [
            [one.train_size(folds, published), *(vars(one.split(9, published=True)).values() if published else ())]
            for one in (replace(d, published_test=np.arange(20) % 3 > 1),)
            for folds, published in ((0, True), (0, False), (3, False))
        ],
        [base.train_size(n, k) for n, k in ((5, 0), (12, 5), (13, 4))] + [d.train_size(0, True), d.train_size(4)],
        [
            catalogue.load_dataset("census-300").facts["bayes_accuracy"],
            *(
                one.sha256 == other.sha256
                for one in (d,)
                for other in (d, replace(d, person_rows=2), replace(d, y=-d.y), d.rescale("clip"))
            ),
            *(one.numbers_sha256 == d.numbers_sha256 for one in (d, replace(d, encoder=None), made[0])),
        ],
        "\n".join(
            refusal(compute)
            for compute in (
                lambda: replace(d, name="n", y=d.y[1:]),
                lambda: replace(d, name="n", feature_names=("a",)),
                lambda: replace(d, X=d.X[:9], y=d.y[:9], frame=d.frame[:9]),
                lambda: replace(d, name="n", label=None, X=d.X[:9], y=d.y[:9], frame=d.frame[:9]),
                lambda: replace(d, name="n", X=np.full(d.X.shape, np.inf)),
                lambda: replace(d, name="n", X=d.X * 1.001),
                lambda: replace(d, name="n", X=d.X * (1 + 1e-12)),
                lambda: replace(d, name="n", y=d.y * 2),
                lambda: replace(d, name="n", y=np.ones(20)),
                lambda: replace(d, name="n", encoder=None).rescale("centred"),
                lambda: d.rescale("none"),
                lambda: replace(d, name="n").split(published=True),
                lambda: d.split(-1),
                lambda: d.split(2**32),
                lambda: replace(d, name="n", persons=np.zeros(20, int)).split(),
                lambda: replace(d, name="n", y=np.where(np.arange(20) == 7, 1.0, -1.0)).split(3),
                lambda: replace(d, name="n", y=np.where(np.arange(20) == 7, 1.0, -1.0)).split(0),
                lambda: catalogue.canonical_name("teaching", 9),
                lambda: catalogue.canonical_name("census", 9),
            )
        ),
        catalogue.canonical_name("census", 300),
        [
            [d.X, d.y, d.feature_names, d.scaling]
            for name in ("census-300", "teaching")
            for i in (True, False)
            for s in ("unit", "centred")
            for d in [catalogue.load_dataset(name, intercept=i, scaling=s)]
        ],
        [d.X, d.y, d.looked_at, len(d.lost), d.label_names],
        [
            [
                d.X,
                d.y,
                d.feature_names,
                d.label_names,
                d.looked_at,
                len(d.taken_as_public),
                len(d.lost),
                len(d.remarks),
                len(d.notes),
                d.person_rows,
                d.intercept,
                d.scaling,
                d.sha256 and 1,
            ]
            for d in made
        ],
        "\n".join(
            " ".join(
                (
                    *d.taken_as_public,
                    *d.notes,
                    *d.remarks,
                    *(str(one.sentence) for one in d.lost),
                    str(d.label.sentence if d.label else ""),
                )
            )
            for d in made
        ),
        " | ".join(
            str(assert_refused(catalogue.dataset, f, **o))
            for o in (
                {"target": "no"},
                {"target": "age"},
                {"target": "y", "positive": "maybe"},
                {"target": "y", "ranges": {"age": (50, 20)}},
                {"target": "y", "drop": ["nothing"]},
                {"target": "y", "person": "who"},
                {"target": "y", "columns": []},
                {"target": "pay", "above": -1.0},
            )
        ),
    ]


def table_cell_text_examples() -> Iterator[Any]:
    notes, missing = list[str](), dict[str, dict[str, int]]()
    yield from [
        [
            [s.to_numpy(), t]
            for v, d, a in (
                (["'a'", "'b'"], ",", False),
                (["12345678901234567890", "2"], ",", False),
                (["9007199254740992", "9007199254740993"], ",", False),
                (["9007199254740991", "9007199254740992"], ",", False),
                ([" 1", "2 ", "?", ""], ",", False),
                (["007", "01"], ",", False),
                (["007", "01"], ",", True),
                (["1.000", "2.500"], ";", False),
                (["a", "b "], ",", False),
                (["nan", None], ",", False),
            )
            for s, t in [cell_text.typed_column("c", pa.chunked_array([pa.array(v, pa.string())]), d, notes, a, missing)]
        ]
        + [missing, len(notes)],
        " ".join(notes),
        str(assert_refused(cell_text.typed_column, "c", pa.chunked_array([pa.array(["1e999", "2"], pa.string())]), ",", [])),
        [
            columns.is_identifier(pd.Series(v))
            for v in (range(1000, 1100), ["a", "b"] * 50, [f"k{i}" for i in range(100)], [1.5, 2.5] * 50)
        ]
        + [columns.is_identifier(pd.Series([*range(99), last], name="id")) for last in (0.5, 99)]
        + [columns.classes(pd.Series(list("aabbbc"))), columns.first_names(list("abcdefgh")), columns.first_names(["a", "b"])],
        "\n".join(
            f"{columns.obstacle(one, declared=False)}; {columns.obstacle(one, declared=True)}; {columns.objection(one)}; "
            f"{columns.is_identifier(one)}"
            for name, values in (
                ("a", [None, None]),
                ("a", ["x", "x"]),
                ("a", ["x", None]),
                ("a", [5, 5.0]),
                ("a", ["2020-01-02", "3.4.2021", "12:30", "4 Mar 1999"]),
                ("a", ["2020-01-02", "x"]),
                ("a", [f"{i}" for i in range(20)] + ["x"]),
                ("a", [f"{i}" for i in range(19)] + ["x"]),
                ("a", ["4", *(f"{i}" for i in range(30)), "x", "y"]),
                ("a", [f"{i}-{i + 9}" for i in range(12)] + [f"{i}" for i in range(12)]),
                ("a", [f"{i}" for i in range(80)] + [f"{i}+" for i in range(21)]),
                ("a", [f"{i}" for i in range(80)] + [f"{i}+" for i in range(20)]),
                ("a", [f"{10**17 + i}" for i in range(30)]),
                ("a", ["1", *(f"{i},{i + 100}" for i in range(1, 30))]),
                ("a", [f"v{i}" for i in range(100)]),
                ("a", [f"v{i}" for i in range(101)]),
                ("a", [f"v{i}" for i in range(101)] * 2),
                ("a", [f"v{i}" for i in range(101)] + ["v1"] * 101),
                ("a", [f"v{i}" for i in range(101)] + ["v1"] * 100),
                ("a", [1.5] * 9 + [None]),
                ("a", [1.5] * 8 + [None]),
                ("patient", [1.0, 2.0] * 20),
                ("patient", [*range(20)] * 2),
                ("patient", [*range(21)] * 20),
                ("patient", [*range(21)] * 21),
                ("patient", [*range(21)] * 2 + [None]),
                ("patient", [i + 0.5 for i in range(40)]),
                ("row_no", [*range(0, 40, 2)]),
                ("row_no", [*range(0, 38, 2)]),
                ("row_no", [-1, *range(40)]),
                ("row_no", [0.5, *range(40)]),
                ("rowNo", [*range(36)] + [3] * 4),
                ("rowNo", [*range(35)] + [3] * 5),
                ("Index", [*range(0, 200, 2)]),
                ("x", [*range(100)]),
                ("x", [*range(99)]),
                ("x", [*range(99), 149]),
                ("x", [*range(99), 150]),
                ("x", [*range(100, 199), 100]),
                ("x", [*range(100_000, 400_000, 3_007)]),
                ("x", [*range(100_000, 400_000, 3_000)]),
                ("x", [*range(90_000, 110_001, 199)]),
                ("x", [*range(90_000, 109_900, 199)]),
            )
            for one in [pd.Series(values, name=name)]
        ),
        "; ".join(
            columns.first_names(columns.odd_texts(texts, columns.NUMBER_TEXT) or ["none"])
            for texts in (
                ["1", "2", "x"],
                ["1", "x"],
                ["1", "2", "x", "y", "z"],
                ["1", "2", "3", "x", "y"],
                [*("1" * 1200), *("x" * 700)],
            )
        ),
        " ".join(map(columns.word, (1.0, 1.5, 1e15, 999999999999999.0, 1e22, -0.0, "1", 7, True, np.float32(0.5)))),
        "\n".join(
            f"{columns.positives(pd.Series(values), 'y', positive, above, notes)} {' '.join(notes)}"
            for values, positive, above in (
                ([1.5, 3.0, 4.0, 3.0], (), 3.0),
                (["no", "yes", "yes"], (), None),
                (["no", "yes", "yes"], ("no",), None),
                (["a", "b", "B", "c", "c"], ("a", "c"), None),
                ([f"{'word' * 4}{i}" for i in range(8)], tuple(f"{'word' * 4}{i}" for i in range(6)), None),
                ([0.0, 1.0, 2.0], ("2",), None),
            )
            for notes in [list[str]()]
        ),
        "\n".join(
            refusal(
                lambda values=values, positive=positive, above=above: columns.positives(
                    pd.Series(values), "y", positive, above, []
                )
            )
            for values, positive, above in (
                (["a", "b"], (), 1.0),
                ([1.0, 2.0], ("1",), 1.0),
                ([1.0, 2.0], (), 0.5),
                ([1.0, 2.0], (), 2.0),
                (["a", "a"], (), None),
                (["a", "b", "?"], (), None),
                (["?", "b", "?", "NA"], (), None),
                ([1.0, 2.0, 3.0], (), None),
                (list("abcdefg"), (), None),
                (list("abcdef"), ("g",), None),
                (["a", "b"], ("a", "b"), None),
            )
        ),
        [
            decode.decode(t.encode(e), None, [])[1]
            for t, e in (("größe,straße\n1,2\n" * 9, "cp1252"), ("größe", "utf-8"), ("naïve,год\n", "utf-16"), ("é", "utf-32"))
        ],
        "\n".join(
            f"{decode.decode(content, chosen, notes)} {' '.join(notes)}"
            for content, chosen in (
                ("\ufeffé\r\nb\rc".encode(), "utf-8"),
                ("\ufeffé\r\nb\rc".encode(), None),
                ("é,ß".encode("cp1252"), "cp1252"),
                ("a,b\n1,straße\n2,größe\n".encode("cp1252"), None),
                ("город,улица\nМосква,Тверская улица\nОмск,Ленина\n".encode("cp1251"), None),
                ("a".encode("utf-16"), None),
            )
            for notes in [list[str]()]
        ),
        str(assert_refused(decode.decode, bytes(range(129, 256)) * 20, None, [])),
        str(assert_refused(decode.decode, b"a,b\n" + bytes([129, 141, 143, 144, 157]) * 9, None, [])),
        "\n".join(
            refusal(lambda o=o, c=column: encoder.Encoder.from_dict({"scaling": "unit", "largest": 1.0, "columns": [c | o]}))
            for column in [{"name": "a", "kind": "number", "low": -1.5, "high": 2.5, "clip": True}]
            for o in (
                {},
                {"name": 3},
                {"name": ""},
                {"name": "a" * 10_001},
                {"name": "a" * 10_000},
                {"name": "a\n"},
                {"levels": "ab"},
                {"levels": [1]},
                {"levels": ["x"]},
                {"kind": "categories", "levels": ["x" * 10_001]},
                {"kind": "categories", "levels": ["x", "x"]},
                {"kind": "categories", "levels": [f"{i}" for i in range(100_001)]},
                {"kind": "categories", "levels": ["x", "y" * 10_000], "default": "x"},
                {"kind": "text"},
                {"default": "x"},
                {"default": 2e300},
                {"default": -1e300},
                {"low": None},
                {"low": 2.5},
                {"low": 2.6},
                {"high": 1.1e300},
                {"gaps": "?"},
                {"gaps": [1]},
                {"gaps": ["x" * 10_001]},
                {"gaps": ["x" * 10_000]},
                {"clip": 1},
            )
        ),
        "\n".join(
            refusal(lambda o=o, c=column: encoder.Encoder.from_dict({"scaling": "unit", "largest": 1.0, "columns": [c]} | o))
            for column in [{"name": "a", "kind": "number", "low": -1.5, "high": 2.5, "clip": True}]
            for o in (
                {"columns": []},
                {"columns": "a"},
                {"columns": [column, column]},
                {"columns": [3]},
                {"columns": [column] * 100_001},
                {"columns": [column, column | {"name": "b", "kind": "categories", "levels": []}]},
                {"scaling": "none"},
                {"largest": 0},
                {"largest": 1e-9},
                {"largest": 2e300},
            )
        ),
    ]
