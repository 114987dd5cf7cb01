"""Examples of `dpviz.datasets`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from support import assert_refused

from dpviz.common import norms
from dpviz.datasets import base, catalogue
from dpviz.datasets.table import cell_text, columns, csv, decode, encoding, features, lost, proposals, spec


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
        [catalogue.rows_of(n) for n in ("teaching", "census-300")],
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
    notes, missing = [], {}
    for v, d in ((["007", "01"], ","), (["1.000", "2.500"], ";"), (["'a'", "'b'"], ","), (["12345678901234567890", "2"], ",")):
        cell_text.typed_column("c", pa.chunked_array([pa.array(v, pa.string())]), d, notes)
    yield from [
        [
            [s.to_numpy(), t]
            for v, d, a in (
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
    ]


def datasets_examples() -> Iterator[Any]:
    yield [base.train_size(n, k) for n in (10, 401) for k in (0, 2, 5)]


def table_examples() -> Iterator[Any]:
    yield from [
        [
            columns.is_identifier(pd.Series(v))
            for v in (range(1000, 1100), ["a", "b"] * 50, [f"k{i}" for i in range(100)], [1.5, 2.5] * 50)
        ]
        + [columns.classes(pd.Series(list("aabbbc"))), columns.first_names(list("abcdefgh")), columns.first_names(["a", "b"])],
        [
            decode.decode(t.encode(e), None, [])[1]
            for t, e in (("größe,straße\n1,2\n" * 9, "cp1252"), ("größe", "utf-8"), ("naïve,год\n", "utf-16"))
        ],
        str(assert_refused(decode.decode, bytes(range(129, 256)) * 20, None, [])),
        str(assert_refused(decode.decode, b"a,b\n" + bytes([129, 141, 143, 144, 157]) * 9, None, [])),
        [encoding.row_factors(np.array([0.5, 1.0, 3.0]), s, 4) for s in ("unit", "clip")]
        + [
            norms.add_intercept(np.array([[0.6, 0.8]]), 0.5),
            encoding.centre_numbers(np.array([[0.2, 1.0], [0.8, 0.0]]), np.array([True, False])),
        ],
        [lost.lost_share(np.array([[0.3, 0.4], [3.0, 4.0]]), np.array([1.0, 0.2]))],
        [proposals.round_range(np.array(v)) for v in ([17.0, 82.3], [0.013, 0.78], [-5.0, 1203.0], [3.0, 3.0])]
        + [proposals.count_outside(np.array([1.0, 5.0, 9.0]), 2.0, 8.0)],
        "\n".join(
            f"{made.frame.to_csv(index=False)}{' '.join(made.notes)} {dict(made.found)}"
            for text, options in (
                ("a,b,c\n1,2,3\nAll of group,,\n4,5,6\n7,8,9\nSum of all,,\n", {}),
                ("a;b;\n1,5;x;\n2,5;y;\n", {}),
                ('"","a","b"\n"r1",1,2\n"r2",3,4\n', {}),
                ("a b\nr1 1 2\nr2 3 4\nr3 5 6\n", {"delimiter": " "}),
                ("p,q\na,b\n1,x\n2,y\n", {"header": 2}),
                ("A table of things\na\tb\n1\tx\n2\ty\n", {}),
                ("1.5,2,x\n2.5,3,y\n3.5,1,x\n", {"header": False}),
                ("'a','b',' c '\n1,,x\n2,3,y\n", {"encoding": "cp1252"}),
                ("a,b\n01,1\n02,2\n", {"verbatim": ["a"]}),
                ("@relation r\n@attribute a numeric\n@attribute k {x,y}\n@data\n1,x\n?,y,\n3,\n", {}),
                (
                    "% of plants\n@RELATION 'r s'\n@attribute 'a b' real % cm\n@attribute \"c\" { x , '?', \"it's\" }\n"
                    "@attribute d string\n@attribute e date 'yyyy'\n@data\n\n1.5,x,'u,\\n',2001\n% a remark\n"
                    "nan\t'?'\t?\t2002\n 2e1 , ? ,\"v\", 2003,\n3,w,x,\n4,'w ',' y',2004\n",
                    {},
                ),
            )
            for made in [csv.read_csv(text.encode(), **options)]
        ),
        "\n".join(
            str(features.features_of(wide, spec.TableSpec("y", **o), every))
            for texts in [[f"v{i}" for i in range(600)]]
            for wide in [
                pd.DataFrame(
                    {"n": range(600), "few": ["a", "b"] * 300, "many": texts, "one": 1.0, "none": None, "y": [0, 1] * 300}
                )
            ]
            for o in ({}, {"categories": {"many": ("v1", "v2")}}, {"drop": ("n",)}, {"person": "many"}, {"columns": ("n", "few")})
            for every in (True, False)
        ),
        " | ".join(
            " ".join(spec.TableSpec("y", **o).taken_as_public)
            for o in (
                {},
                {"above": 3.0},
                {"categories": {"y": ("a", "b")}},
                {"categories": {"y": ("a", "b", "c")}},
                {"person": "who"},
            )
        ),
    ]
