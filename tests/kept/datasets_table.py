"""Examples of `dpviz.datasets.table`."""

import gzip
import io
import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from support_kept import refusal

from dpviz.common import norms
from dpviz.common.limits import Limits
from dpviz.datasets.table import (
    cell_text,
    csv,
    encoder,
    encoding,
    features,
    formats,
    gaps,
    lost,
    prepare,
    proposals,
    remarks,
    sidecar,
    spec,
)

# many short examples on a line
# fmt: off


def table_examples() -> Iterator[Any]:
    i = np.arange(40)
    kept = pd.DataFrame(
        {
            "a": np.where(i % 13 == 4, np.nan, i * 1.5), "t": pd.Categorical(np.array(["u", "v", "w", "u"])[i % 4]),
            "t=u": i % 7 * 1.0, "gaps": pd.Series([None] * 39 + [2.0]), "whole": i % 3 + 3.0,
            "far": np.where(i > 20, -1.5e308, 1e308),
            "hex": pd.Categorical(np.array(["0x1f", "0x2A"])[i % 2]), "case": pd.Categorical(np.array(["Ja", "ja", "no"])[i % 3]),
            "same": np.where(i > 38, np.nan, 2.0), "mixed": pd.Categorical(np.array(["1", "2", "3", "x"])[i % 4]),
            "label": i % 5 * 1.0,
            "two": i % 2 * 3.0 + 2, "who": pd.Categorical([f"p{k // 4}" for k in i]), "none": pd.Series([np.nan] * 40),
            "few": pd.Categorical([None if k < 3 else f"p{k // 3}" for k in i]), "y": (i % 5 > 2) * 1.0,
        }
    )
    yield from [
        [encoding.row_factors(np.array([0.5, 1.0, 3.0, 0.0, 1e-320]), s, 5) for s in encoding.SCALINGS]
        + [[encoding.constant_of(s) for s in encoding.SCALINGS], encoding.row_factors(np.array([]), "largest", 2)]
        + [
            norms.add_intercept(np.array([[0.6, 0.8]]), 0.5),
            encoding.centre_numbers(np.array([[0.2, 1.0], [0.8, 0.0]]), np.array([True, False])),
        ],
        [
            [
                lost.lost_share(x, f),
                lost.scaling_loss(x, f, "unit"),
                lost.scaling_loss(x, f, "clip"),
                lost.lost_share(x[:4], f[:4]),
            ]
            for n in (9, 4500)
            for z in [np.column_stack([np.cos(np.arange(n)), np.sin(1.7 * np.arange(n)), np.arange(n) % 3 - 0.7])]
            for f in (1 / norms.row_norms(z), np.minimum(1, 1 / norms.row_norms(z)), np.full(n, 0.4))
            for x in [z * f[:, None]]
        ],
        "\n".join(
            str((one.sentence, lost.caution((one,))))
            for z in (np.array([[0.5], [2.0], [3.0]]), np.array([[0.5, 0.2], [-2.0, 4.0], [3.0, 0.1], [1.0, 1.5], [0.2, 7.0]]))
            for scaling, f in (("unit", 1 / norms.row_norms(z)), ("clip", np.minimum(1, 1 / norms.row_norms(z))))
            for one in lost.scaling_loss(z * f[:, None], f, scaling)
        ),
        [
            proposals.round_range(np.array(v))
            for v in (
                [17.0, 82.3], [0.013, 0.78], [-5.0, 1203.0], [3.0, 3.0], [3.5, 3.5], [np.nan], [np.nan, 1.0, 7.0],
                [25.5, 100.5], [26.5, 100.5], [0.5, 2.5], [-3.5, 2.5],
                np.arange(40.0) * 3 - 7,
                np.arange(41.0) * 3 - 7,
                np.arange(401.0) ** 2 + 0.5,
                np.r_[np.arange(300.0), 9999.0],
            )
        ]
        + [proposals.count_outside(np.array([1.0, 5.0, 9.0, 2.0, 8.0, 0.5]), 2.0, 8.0)],
        "\n".join(
            f"{made.frame.to_csv(index=False)}{' '.join(made.notes)} {dict(made.found)}"
            for text, options in (
                ("a,b,c\n1,2,3\nAll of group,,\n4,5,6\n7,8,9\nSum of all,,\n", {}), ("a;b;\n1,5;x;\n2,5;y;\n", {}),
                ('"","a","b"\n"r1",1,2\n"r2",3,4\n', {}), ("a b\nr1 1 2\nr2 3 4\nr3 5 6\n", {"delimiter": " "}),
                ("p,q\na,b\n1,x\n2,y\n", {"header": 2}), ("A table of things\na\tb\n1\tx\n2\ty\n", {}),
                ("1.5,2,x\n2.5,3,y\n3.5,1,x\n", {"header": False}), ("'a','b',' c '\n1,,x\n2,3,y\n", {"encoding": "cp1252"}),
                ("a,b\n01,1\n02,2\n", {"verbatim": ["a"]}),
                ("@relation r\n@attribute a numeric\n@attribute k {x,y}\n@data\n1,x\n?,y,\n3,\n", {}),
                (
                    "% of plants\n@RELATION 'r s'\n@attribute 'a b' real % cm\n@attribute \"c\" { x , '?', \"it's\" }\n"
                    "@attribute d string\n@attribute e date 'yyyy'\n@data\n\n1.5,x,'u,\\n',2001\n% a remark\n"
                    "nan\t'?'\t?\t2002\n 2e1 , ? ,\"v\", 2003,\n3,w,x,\n4,'w ',' y',2004\n", {},
                ),
                ('sep=;\na;b\n1;x\n\n2;"y;z"\n', {}), ('"sep=|" \na|b\n1|x\n', {}),
                (
                    "# of plants\n% more\n\nA long title of a table which is much longer than only sixty letters\na,b,c\n1,2,x\n",
                    {},
                ),
                ("#a,b\n1,2\n3,4\n", {}), ("#a,b\nx,y\nz,w\n", {"header": False}),
                ("# one,two\n# three,4\n5,6\n", {"header": False}), ("|1x0 remark\na,b,c\n3,4,5\n", {}), ("1 2 3\n4 5 6\n", {}),
                ('a b\n"x y" 2\nz 3\n', {}), ("a  b\n1,5  2,5\n3 4,5\n", {}), ("1,2;3\n4,5;6\n7,5;8\n", {}),
                ("a;b\n1,5;x, y\n2,5;z, w\n", {}), ("1,2,\n4,5,\n", {}), ("1,2\n4,5\n", {}), ("1,x\n4,y\n", {"header": False}),
                ("1,,3\n4,5,6\n", {"header": False}), ("'1','2'\n'3','4'\n", {}), ("a,b,c\n1,2,\n4,5,\n", {}),
                ("a,b\n1,\n4,\n", {}), ("x1,x2,x3\nage,pay,sex\n" + "3,4,5\n" * 6, {}),
                ("x1,x2,x3\nage,pay,sex\n" + "3,4,m\n" * 5 + "3,,m\n", {}), (",X1,X2\nid,age,pay\n" + "3,4,5\n" * 6, {}),
                ("x1,x2,x3\n,pay,sex\n" + "3,4,5\n" * 6, {"header": True}), ("x1,x2\nage,pay\n" + "3,4\n" * 5 + "a,b\n", {}),
                ("A title\ncm,kg,kind\n" + "3,4,5\n" * 7, {"header": 2}),
                ("A title\nx1,x2,x3\ncm,kg,kind\n" + "3,4,5\n" * 7, {"header": 2}), ("a,b\n1,2\n3,4\nThe end of it,\n", {}),
                ("a,b,c\n1,2,3\nThe end,,\nand more words,,\n", {}), ("a,b,c\n1,2,3\nend,,\n4,5,6\n", {}),
                ("a,b,c\n1,2,3\nThe end\n", {}), ("a\n1\n2\n", {"verbatim": []}), ("a,b\n 1 ,x\n2, y\n", {}),
                ('a,b\n1, "x, y"\n2,"z\nw"\n', {}), ("'a','b'\n'','x'\n'1','?'\n", {}), ("''a,'b'\n1,x\n", {}),
                ("a b\nr1 1 2\nr2 3 4\n", {"header": True}),
                ("a|b\n007|é\n+5|e\u0301\n1e5|z\u200b\n.5|NA\n", {"delimiter": "|"}),
                ("a;b;c\n1.234;5,25 %;12'345\n2.345;6 %;1'234'567\nNA;n/a;1\n", {}),
                ('a;b;c\n$ 5;"1.234,5";-1.5 €\n-€6.5;1.234.567,25;7€\n', {}),
                ("a,b,c\n9007199254740993,9007199254740992,1e16\n9007199254740992,9007199254740992,x\n", {}),
                (
                    "@relation r\n@attribute a numeric\n@attribute k {x,'?'}\n@data\n1,p\n?,q\n3,r\n4,s\n5,t\n6,u\n7,v\n8,v\n",
                    {},
                ),
                ("@relation r\n@attribute a integer\n@attribute k string\n@data\n1,?\n?,?\n", {}),
            )
            for made in [formats.read_file(text.encode(), **options)]
        ),
        "\n".join(
            refusal(lambda content=content, options=options: formats.read_file(content, **options))
            for content, options in (
                (b" " * 62 + b"BZh", {}), (b"\xef\xbb\xbf \n", {}), (b"\x1f\x8b\x08\x00\x00", {}),
                (gzip.compress(b"a,b\n1,2\n" * 150_000), {"limits": Limits(megabytes=1)}),
                (b"a,b\n1,2\n" * 150_000, {"limits": Limits(megabytes=1)}), (b"a,b\n1,2\n", {"delimiter": ":"}),
                (b"a,b\n1,2\n", {"sheet": "one"}), (b"a,b,c\n1,2,3\n", {"limits": Limits(columns=2)}),
                (b"a,b\n1,2\n3,4\n", {"limits": Limits(rows=1)}), (b"a,b\n1,2\n3,4\n", {"limits": Limits(rows=2)}),
                (b"@relation r\n@attribute a real\n@attribute b real\n@data\n1,2\n3,4\n", {"limits": Limits(rows=1)}),
                (b"@relation r\n@attribute a real\n@attribute b real\n@data\n1,2\n3,4\n", {"limits": Limits(columns=1)}),
                *(
                    (text.encode(), {})
                    for text in (
                        "\n <html>", "[[1, 2]]", '{"a": 1}', "1 1:0.5 3:2 # x\n", "\ufeff\n\t\n", "a,b\n", "a\n1\n2\n",
                        'a,b\n1,"2\n3,4\n',
                        'a,b\n1,2\n3,"4"5\n', "a,b\n1,2,3,4\n", "a,b\n1\n", "a\n1,2\n", "a,b\n\n1,2\n3\n",
                        "a,b,c\n1,2,3\nsum,,\n4,5\n", "a b\nr1 1 2\nr1 3 4\n", "a;b\n1,2\n3,4\n", "a,b\n1;2\n3;4\n",
                        "a,b\n1\t2\n3\t4\n", "a,b,c\n1 2  3\n4 5 6\n", "x,1\ny,2\nx,3\n", "yes,no\nyes,no\nno,no\n",
                        "a,a\n1,2\n", "a,\n1,2\n", "a,\ufb01\n1,2\n", "\ufb01,fi\n1,2\n", "a,b\u202e\n1,2\n",
                        "a,(intercept)\n1,2\n", f"a,{'b' * 121}\n1,2\n", f"a,{'b' * 120}\n1,2\n",
                        "first,second,third\nage,pay,sex\n" + "3,4,5\n" * 6,
                        "first,second,third\nage,pay,sex\n" + "3,4,5\n" * 5,
                        "x1,second,third,x4\nage,pay,sex,job\n" + "3,4,5,m\n" * 6, "a;b\n1,234;x\n2,345;y\n",
                        "a,b\n1,x\n-1e999,y\n", "@relation r\n@attribute a real\n",
                        "@relation r\n@attribute a real\n@data\n1\n",
                        "@relation r\n@attribute a real\n@attribute a real\n@data\n1,2\n",
                        "@relation r\n@attribute a real\n@attribute b real\n@data\n% 1,2\n",
                        "@relation r\n@attribute a real\n@attribute b real\n@data\n{0 1}\n",
                        "@relation r\n@attribute a real\n@attribute b real\n@data\n1,'2\n",
                        "@relation r\n@attribute a real\n@attribute b real\n@data\n1,2,3\n",
                        "@relation r\n@attribute a real\n@attribute b real\n@data\n\n1,2\n1,x\n",
                        "@relation r\n@attribute a bool\n@attribute b real\n@data\n1,2\n",
                        "@relation r\n@attribute a {x,y\n@attribute b real\n@data\n1,2\n",
                    )
                ),
                ("a,b\n1,\xe9\n".encode("latin-1"), {"encoding": "utf-8"}), (b"a,b\n1,2\n", {"encoding": "klingon"}),
                (b"\xff\xfea,b", {}), (b"a,b\n1,\x00\n", {}), ("größe,b\nü,ä\n".encode() + b"\xe9\n", {}),
            )
        ),
        "\n".join(
            refusal(lambda start=start: csv.unpack(start + b" and more", Limits()))
            for start in (*csv._MAGIC, b"\xef\xbb\xbf  %PDF", b" " * 60 + b"BZh")
        ),
        [
            csv.unpack(content, Limits(megabytes=1))[:3].decode()
            for content in (gzip.compress(b"1,2\n" * 250_000), b" %PDF"[1:2] * 9)
        ],
        [
            [
                one.names,
                one.numbers,
                one.rows(f),
                one.read(f, clipped, {"a": 3.25}),
                *one.before_scaling(f.fillna(2.0), clipped),
                clipped,
            ]
            for f in [
                pd.DataFrame(
                    {"a": [0.5, 9.0, -4.0, np.nan], "b": pd.Categorical(["x", "y", "?", "z"]), "c": [7.0, 7.0, 6.0, 8.0]}
                )
            ]
            for scaling in encoding.SCALINGS
            for clipped in [list[lost.Lost]()]
            for one in [
                encoder.Encoder.from_dict(
                    encoder.Encoder(
                        (
                            encoder.Column("a", "number", -1.5, 2.5, default=1.25),
                            encoder.Column("b", "categories", levels=("x", "z"), default="w", gaps=("z", "y")),
                            encoder.Column("c", "number", 7.0, 7.0, clip=False),
                        ),
                        largest=0.5,
                    )
                    .rescale(scaling, 1.75)
                    .to_dict()
                )
            ]
        ],
        "\n".join(
            f"{[one.sentence for one in clipped]} {given.tolist()} {empty.tolist()}"
            for column, values in (
                (encoder.Column("a", "number", -1.5, 2.5), [0.5, 9.0, None]),
                (encoder.Column("a", "number", -1.5, 2.5, default=99), [0.5, 9.0, None]),
                (encoder.Column("a", "number", -1.5, 2.5, clip=False), [0.5, 9.0]),
                (encoder.Column("a", "number", 2.5, 2.5), [2.5, 2.5]),
                (encoder.Column("a", "number", default=0.5), [None, None]),
                (encoder.Column("a", "categories", levels=("1", "x"), default=1), [1.0, None, 2.0]),
                (encoder.Column("a", "categories", levels=("1", "x")), ["x", None, "1", "u"]),
            )
            for clipped in [list[lost.Lost]()]
            for given, empty in [encoder._encoded(column, pd.Series(values), clipped)]
        ),
        "\n".join(
            refusal(compute)
            for one in [encoder.Encoder((encoder.Column("a", "number"), encoder.Column("b", "categories", levels=("x",))))]
            for compute in (
                lambda one=one: one.rows(pd.DataFrame({"a": [0.5, None], "b": pd.Categorical(["x", "x"])})),
                lambda one=one: one.rows(pd.DataFrame({"a": [0.5, 0.1]})),
                lambda one=one: one.rows(pd.DataFrame({"a": pd.Categorical([None, "p", "q"]), "b": pd.Categorical(["x"] * 3)})),
                lambda one=one: one.read(pd.DataFrame({"a": [0.5], "b": pd.Categorical(["x"])}), fill={"c": 2}),
                lambda one=one: one.read(pd.DataFrame({"a": [0.5, None], "b": pd.Categorical(["x", "x"])}), fill={"a": "p"}),
            )
        ),
        "\n".join(
            f"{given.isna().sum().to_dict()} {[dtype.kind for dtype in given.dtypes]} {' '.join(notes)} "
            f"{gaps.decisions(f, one)} {gaps.doubtful_words(f, 'y')}"
            for f in [
                pd.DataFrame(
                    {
                        "n": [9.0, 99.0, 1.5, 4.0] * 11,
                        "few": pd.Categorical(["NA", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"] * 4),
                        "many": pd.Categorical(["?", "b", "nan", "d", "e", "?", "g", "h", "i", "j", "k"] * 4),
                        "mixed": pd.Categorical([f"{i}" for i in range(40)] + ["low", "low", "?", "high"]),
                        "bands": pd.Categorical([f"{i}" for i in range(40)] + ["low", "<3", "?", "high"]),
                        "told": cell_text.declared_column(["?", "b", None, "d"] * 11, ["b", "?", "d"]),
                        "y": pd.Categorical(["?", "yes"] * 22),
                    }
                )
            ]
            for one in (
                spec.TableSpec("y"),
                spec.TableSpec("y", missing=("99", "b", "99.0", "d")),
                spec.TableSpec("y", missing=()),
                spec.TableSpec("y", missing_in={"n": ("9", "4"), "told": ("?",), "y": ("?",), "mixed": ("low", "high", "?")}),
                spec.TableSpec("y", defaults={"many": "b", "few": "c"}, categories={"mixed": ("low", "?", "high")}),
            )
            for notes in [list[str]()]
            for given in [gaps.mark_all_gaps(f, one, notes)]
        ),
        "\n".join(
            refusal(lambda values=values: spec.TableSpec.from_dict(values))
            for values in (
                {"target": "y", "positive": 1, "missing": {"": ["?"], "a": 9}, "defaults": {"a": 2.5, "b": "x"}, "drop": "a"},
                {"targets": "y"}, {"target": 3}, {"target": "y", "positive": []}, {"target": "y", "positive": {"a": 1}},
                {"target": "y", "positive": [["a"]]}, {"target": "y", "defaults": 3}, {"target": "y", "defaults": {"a": True}},
                {"target": "y", "defaults": {"a": [1]}}, {"target": "y", "ranges": {"a": [1, 2, 3]}},
                {"target": "y", "ranges": {"a": 3}}, {"target": "y", "categories": {"a": 3}},
                {"target": "y", "categories": {"a": []}}, {"target": "y", "missing": {"a": {"b": 1}}},
                {"target": "y", "person_rows": 2}, {"target": "y", "person": "p", "person_rows": 0}, {"target": "y\ud800"},
                {"target": "y", "above": "x"},
            )
        ),
        "\n".join(
            f"{one} {one.to_toml()}"
            for values in (
                {
                    "target": "y", "positive": 1, "missing": {"": ["?", 9.0], "a": 9.5}, "defaults": {"a": 2.5, "b": "x"},
                    "drop": "a",
                },
                {"target": "y", "person": "p", "person_rows": 7, "above": 2.5, "ranges": {"a": [1, 2.5]}, "missing": []},
                {
                    "target": "y", "columns": [1.5, "a"], "categories": {"b": [1.0, "x"]}, "missing_in": {"b": "u"},
                    "proposed": ["b"],
                },
            )
            for one in [spec.TableSpec.from_dict(values)]
        ),
        "\n".join(
            refusal(lambda f=f, chosen=chosen: spec.last_column(f, chosen=chosen))
            for f in (pd.DataFrame({"a": [1], "b": ["?"]}), pd.DataFrame({"a": range(7), "b": list("abcdef?")}))
            for chosen in (True, False)
        ),
        "\n".join(
            " ".join(remarks.remarks(f, kept, f[kept], y[kept], ("no", "yes"), one))
            for n in [200]
            for i in [np.arange(n)]
            for y in (np.where(i % 2 > 0, 1.0, -1.0), np.where(i % 20 > 0, 1.0, -1.0), np.where(i % 21 > 0, -1.0, 1.0))
            for f in [
                pd.DataFrame(
                    {
                        "gives": np.where(y > 0, i % 7 + 5.5, -(i % 5) - 1.25), "name": np.where(y > 0, "u", "v"),
                        "patient_id": i // 5, "five": (i // 10 * 2 + i % 2).astype(str), "far": np.where(i == 17, 5000.0, i % 30),
                        "code": np.where(i % 40 == 3, 8888, i % 9), "level": np.where(i % 40 == 3, "777", "a"),
                        "edge": np.where(i < 10, -y, y), "under": np.where(i < 11, -y, y), "y": np.where(y > 0, "yes", "no"),
                    }
                )
            ]
            for kept in (np.ones(n, bool), (i % 3 > 0) | (y < 0), i % 7 > 0)
            for one in (spec.TableSpec("y"), spec.TableSpec("y", person="patient_id", missing=(), ranges={"far": (0, 30)}))
        ),
        "\n".join(
            f"{made.frame.to_csv(index=False)} {' '.join(made.notes)} {dict(made.found)}"
            for columns_of in (
                {"a": pa.array([1.5, None]), "b": pa.array(["x", "y"]).dictionary_encode(), "c": pa.array([True, False])},
                {"a": pa.array([7, 8], pa.int64()), "b": pa.array(["007", "NA"])},
            )
            for buffer in [io.BytesIO()]
            for _ in [pq.write_table(pa.table(columns_of), buffer)]
            for made in (formats.read_file(buffer.getvalue()), formats.read_file(buffer.getvalue(), verbatim=["b"]))
        ),
        "\n".join(
            refusal(lambda buffer=buffer, o=o: formats.read_file(buffer.getvalue(), **o))
            for columns_of, o in (
                ({"a": pa.array([1, 2]), "b": pa.array([3, 4])}, {"limits": Limits(rows=1)}),
                ({"a": pa.array([1, 2]), "b": pa.array([3, 4])}, {"limits": Limits(columns=1)}),
                ({"a": pa.array([1, 2]), "": pa.array([3, 4])}, {}), ({"a": pa.array([1, 2])}, {}),
                ({"a": pa.array([1, 2])}, {"verbatim": []}), ({"a": pa.array([1, 2]), "b": pa.array([[3], [4]])}, {}),
                ({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}, {}),
            )
            for buffer in [io.BytesIO()]
            for _ in [pq.write_table(pa.table(columns_of), buffer)]
        ),
        "\n".join(
            f"{shlex.split(sidecar.declarations(d))} {sidecar.document(decided, {'delimiter': ';', 'header': True})}"
            for f in [pd.DataFrame({"a=b": [1.5, 9.5, 3.0] * 9, "c": list("x|z") * 9, "k": [2, 2, 3] * 9, "y": [0, 1, 1] * 9})]
            for o in (
                {}, {"ranges": {"k": (0, 9)}, "positive": ("0",), "missing": ("x",)},
                {"proposed": ("k",), "categories": {"c": ("x",)}},
            )
            for one in [spec.TableSpec("y", **o)]
            for typed in [f.assign(c=pd.Categorical(f["c"]), k=f["k"].astype(float), y=f["y"].astype(float))]
            for d in [prepare.prepare(typed, one, name="d", source="s")]
            for decided in [sidecar.decide_spec(typed, one, d)]
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
        "\n".join(
            refusal(lambda o=o, f=f, some=some: prepare.prepare(f, spec.TableSpec("y", **o), name="n", source="s", **some))
            for f in [kept]
            for o, some in (
                ({"ranges": {"t": (0, 1)}}, {}), ({"ranges": {"a": (3, 3)}}, {}), ({"ranges": {"a": (3, "x")}}, {}),
                ({"categories": {"t": ("u", "u")}}, {}), ({"categories": {"t": ("u", "v", "?")}, "defaults": {"t": "?"}}, {}),
                ({"defaults": {"a": "x"}}, {}), ({"defaults": {"a": " 7.5 "}}, {}), ({"defaults": {"t": 7}}, {}),
                ({"missing": ("u", "v", "w")}, {}), ({"columns": ("gaps",)}, {}), ({"person": "none"}, {}), ({"person": "t"}, {}),
                ({}, {"limits": Limits(features=5)}), ({}, {"limits": Limits(features=6)}),
                ({"drop": ("t",)}, {"limits": Limits(features=2)}),
                ({"columns": ("t",)}, {"limits": Limits(features=2)}), ({"columns": ("t", "t=u")}, {}),
                ({"columns": ("far",)}, {}),
                ({"columns": ("a", "t")}, {"room": lambda n, d: Limits(columns=4).check_columns(100 * n + d)}),
            )
        ),
        "\n".join(
            f"{[one.sentence for one in made.lost]} {made.notes} {made.feature_names} {made.published_test} {made.label_names} "
            f"{made.description} {None if made.beside is None else [*made.beside]} {[*made.frame]} "
            f"{made.label} {made.person_rows}"
            for f in [kept]
            for o, some in (
                ({"drop": ("far",)}, {"test_rows": 5, "guessed_label": "it is last", "notes": ("before",)}),
                ({"defaults": {"a": 7.5, "t": 3}, "drop": ("gaps", "far")}, {"intercept": False, "label_names": ("off", "on")}),
                ({"defaults": {"a": " 7.25 "}, "columns": ("a", "t", "whole"), "proposed": ("whole",)}, {"every_column": True}),
                ({"categories": {"whole": ("3", "4")}, "columns": ("whole", "hex", "case", "label")}, {"description": "d"}),
                ({"person": "who", "person_rows": 2, "columns": ("a", "same")}, {}), ({"person": "few", "columns": ("a",)}, {}),
                ({"columns": ("mixed", "label"), "above": 0.5}, {}), ({"columns": ("two",), "missing_in": {"two": ("5",)}}, {}),
                ({"categories": {"a": ("1", "7.5")}, "defaults": {"a": 7.5}, "columns": ("a",)}, {}),
            )
            for made in [prepare.prepare(f.rename(columns={"t=u": "u"}), spec.TableSpec("y", **o), name="n", source="s", **some)]
        ),
        [prepare.rows_left(kept, ["a", "t"], "y", *some) for some in (("", 1), ("few", 1), ("few", 2))],
        "\n".join(
            str(prepare.look(kept, spec.TableSpec("y", **o)))
            for o in ({"drop": ("far",)}, {"columns": ("a", "t"), "missing": ("u",)})),
        " | ".join(
            " ".join(spec.TableSpec("y", **o).taken_as_public)
            for o in (
                {}, {"above": 3.0}, {"categories": {"y": ("a", "b")}}, {"categories": {"y": ("a", "b", "c")}},
                {"person": "who"},
            )
        ),
    ]
