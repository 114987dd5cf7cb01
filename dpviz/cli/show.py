"""`dpviz show`: a dataset, and how it was read and prepared."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpviz.cli import answers, own_file
from dpviz.cli.parser import Parser, refuse
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, check_choice

if TYPE_CHECKING:
    from dpviz.datasets import Dataset
    from dpviz.datasets.sources.own import Content

_FEW = 4  # categories that are shown

HELP = "a table: its label and columns, what was read from the rows, and what was left out"
DESCRIPTION = (
    "A dataset with a name (dpviz list datasets), or a table of your own. --write-toml keeps every decision in a file beside it."
)


def add(parser: Parser) -> None:
    """Adds the options."""
    parser.add_argument("name", metavar="NAME|TABLE.csv", help="a dataset, or a table of your own; - reads standard input")
    own_file.add(parser, parser)
    parser.add_argument(
        "--write-toml", action="store_true", help="write every decision to a TOML file beside the table, where there is none yet"
    )
    parser.add_argument(
        "--declare", action="store_true", help="with --write-toml: its round ranges and categories are public knowledge"
    )
    parser.add_argument("--download", action="store_true", help="download a public dataset first, once")
    parser.set_defaults(dataset=None)


def run(options: argparse.Namespace) -> None:
    """Shows how a dataset was read and prepared: decisions, values read from the rows, losses."""
    from dpviz.datasets import load_dataset
    from dpviz.datasets.catalogue import AUTOMATIC
    from dpviz.datasets.sources import own

    file = options.name if _is_file(options.name) else None
    if not options.write_toml:
        refuse(options, ("declare",), "says what --write-toml writes")
    if options.download:
        _download(options.name)
    if file is None:
        refuse(options, ("write_toml",), "is for a table of your own")
        options.dataset = options.name
    name = own_file.dataset_name(options, file)
    assert name is not None
    dataset = load_dataset(name, scaling=AUTOMATIC)  # as a run takes them
    written = _write_toml(own.get(name), dataset, options.declare) if options.write_toml else None
    columns = _columns(dataset)
    values = {
        "name": name,
        "dataset": name,
        "rows": dataset.n,
        "features": dataset.d,
        "labels": dataset.label_names,
        "source": dataset.source,
        "columns": columns,
        "looked_at": dataset.looked_at,
        "notes": dataset.notes,
        "lost": [one.sentence for one in dataset.lost],
        **({} if written is None else {"written": written}),
    }
    if options.json:
        answers.document(values, "show")
        return
    if dataset.label is not None:
        answers.line("label", dataset.label.sentence)
    label = " or ".join(dataset.label_names)
    features = dataset.d - dataset.intercept
    answers.print_wrapped(f"{own_file.display_name(name, file)}: {dataset.n:,} rows, {features:,} features; label: {label}")
    answers.line("source", dataset.source)
    if columns:
        import pandas as pd

        print(answers.table(pd.DataFrame(columns)))
    for heading, sentences in (
        ("read from the rows, not covered by ε", [", ".join(dataset.looked_at) or "nothing"]),
        ("prepared", dataset.notes),
        ("not trained on", [one.sentence for one in dataset.lost]),
        ("remark", dataset.remarks),
        ("how", ["--drop=NAME leaves a column out, --person=NAME says whose rows they are."] * bool(file and dataset.remarks)),
    ):
        for sentence in sentences:
            answers.line(heading, f" {sentence}" if len(heading) > 18 else sentence)
    if written is not None:
        print(f"{written}: every decision; correct what is wrong")


def _download(name: str) -> None:
    from dpviz.datasets.sources.remote import REMOTE, download

    check_choice("name", name, REMOTE)
    with Bar() as bar:
        download(name, lambda size: bar(min(1.0, size / 1e6 / REMOTE[name].megabytes)))


def _is_file(name: str) -> bool:
    """True where a name stands for a table of a person's own: no dataset has it, and it looks like a file or is one."""
    from dpviz.datasets.catalogue import SOURCES

    if name == own_file.STANDARD_INPUT:
        return True
    if any(source.owns(name) for source in SOURCES):
        return False
    return os.path.exists(name) or os.path.sep in name or "." in name


def _columns(dataset: Dataset) -> list[dict[str, Any]]:
    """One entry for each column that is trained on, where that is known."""
    from dpviz.datasets.table.encoder import NUMBER

    entries: list[dict[str, Any]] = []
    for column in dataset.encoder.columns if dataset.encoder is not None and dataset.label is not None else ():
        some = " | ".join(column.levels[:_FEW]) + (f" | ... ({len(column.levels)})" if len(column.levels) > _FEW else "")
        entries.append(
            {
                "column": column.name,
                "kind": column.kind,
                "values": f"{column.low:g} to {column.high:g}" if column.kind == NUMBER else some,
                "from": "the rows" if column.name in dataset.looked_at else "declared",
                "gaps": "left out" if column.default is None else f"filled with {column.default}",
            }
        )
    return entries


def _write_toml(content: Content, dataset: Dataset, declare: bool) -> Path:
    """Writes the file beside a table that holds every decision; with `declare` its ranges and categories are no proposals.

    Raises:
        InvalidInput: there is one already, or it cannot be written.
    """
    from dpviz.datasets.sources import folder
    from dpviz.datasets.table import sidecar

    if content.file is None:
        raise InvalidInput("--write-toml", "writes beside a file, and standard input is none", "Name a file.")
    table = Path(content.file)
    there = next((side for side in folder.sides(table.name) if os.path.lexists(table.with_name(side))), None)
    if there is not None:
        raise InvalidInput("--write-toml", f"{there} is there already", "Rename or remove it; nothing was written.")
    target = table.with_name(f"{table.name}.toml")
    spec = sidecar.decide_spec(content.frame, content.spec, dataset)
    text = sidecar.document(replace(spec, proposed=()) if declare else spec, content.found)
    try:
        with target.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise InvalidInput("--write-toml", f"{target} cannot be written ({error.strerror})", "Choose another folder.") from error
    return target
