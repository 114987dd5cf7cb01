"""Examples of workbooks, which are made here of the parts that a reader needs."""

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from support_kept import refusal

from dpviz.common.limits import Limits
from dpviz.datasets.table.formats import read_file

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def _archive(parts: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def _cell(value: object) -> str:
    return f'<c t="inlineStr"><is><t>{value}</t></is></c>' if isinstance(value, str) else f"<c><v>{value}</v></c>"


def _workbook(sheets: Mapping[str, Sequence[Sequence[object]]], hidden: str = "") -> bytes:
    numbered = [*enumerate(sheets)]
    shown = {True: "hidden", False: "visible"}
    listed = "".join(
        f'<sheet name="{name}" sheetId="{k + 1}" r:id="r{k}" state="{shown[name == hidden]}"/>' for k, name in numbered
    )
    start = f'<Relationship Id="r" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    links = "".join(f'<Relationship Id="r{k}" Type="{_OFFICE}/worksheet" Target="worksheets/{k}.xml"/>' for k, _ in numbered)
    rows = ["".join(f"<row>{''.join(map(_cell, row))}</row>" for row in sheets[name]) for _, name in numbered]
    return _archive(
        {
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}">{start}</Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}">{links}</Relationships>',
        }
        | {
            f"xl/worksheets/{k}.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{rows[k]}</sheetData></worksheet>'
            for k, _ in numbered
        }
    )


# many short examples on a line
# fmt: off


def workbooks_examples() -> Iterator[Any]:
    book = _workbook(
        {
            "secret": [["s", "z"], [7, "p"], [8, "q"]], "empty": [], "one": [["a", "k"], [1.5, "x"], [2, "01"], [25.0, "u, v"]],
            "two": [["b", "c", "d"], [3, 4, "w"], [5, "", "w"]],
        },
        hidden="secret",
    )
    yield from [
        "\n".join(
            f"{made.frame.to_csv(index=False)}{made.notes} {dict(made.found)}"
            for options in (
                {}, {"sheet": "two"}, {"sheet": "secret"}, {"header": False}, {"limits": Limits(rows=3)}, {"verbatim": ["a"]},
            )
            for made in [read_file(book, **options)]
        ),
        "\n".join(
            refusal(lambda content=content, options=options: read_file(content, **options)).partition(" (")[0]
            for content, options in (
                (book, {"sheet": "none"}), (book, {"limits": Limits(rows=2)}), (book, {"sheet": "empty"}),
                (_workbook({"one": [], "two": []}), {}), (_workbook({"one": [["a", "b"], [1, 2]], "two": []}, "one"), {}),
                (_archive({"content.xml": "<a>"}), {}), (_archive({"a.csv": "a,b\n1,2\n"}), {}), (b"PK\x03\x04 and more", {}),
                (_archive({"xl/workbook.bin": "0" * 10_000_001}), {"limits": Limits(megabytes=1)}),
                (b"\xd0\xcf\x11\xe0 and more", {}), (b"\xd0\xcf\x11\xe0" + b"0" * 999_997, {"limits": Limits(megabytes=1)}),
                (b"PAR1 and more", {}), (b"PAR1" + b"0" * 999_997, {"limits": Limits(megabytes=1)}),
            )
        ),
    ]
