"""`dpviz datasets`, `dpviz fetch` and `dpviz mechanisms`: what there is."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from dpviz.cli import answers
from dpviz.common.validate import InvalidInput


def add(commands: Any) -> None:
    """Adds the subcommands to a parser's subparsers."""
    datasets = commands.add_parser("datasets", help="list the datasets, or show how one was prepared")
    datasets.add_argument(
        "name", nargs="?", help="a dataset: its size, what was read from its rows, and what was lost on the way"
    )
    answers.add(datasets)
    datasets.set_defaults(command=_datasets)
    fetch = commands.add_parser("fetch", help="download a dataset once")
    fetch.add_argument("name", help="one of those that `dpviz datasets` lists as not downloaded")
    answers.add(fetch)
    fetch.set_defaults(command=_fetch)
    mechanisms = commands.add_parser("mechanisms", help="list the mechanisms and their knobs")
    answers.add(mechanisms)
    mechanisms.set_defaults(command=_mechanisms)


def _fetch(options: argparse.Namespace) -> int:
    from dpviz.common.validate import one_of
    from dpviz.datasets.sources.remote import REMOTE, download

    name = one_of("name", options.name, REMOTE)
    shown = sys.stderr.isatty()

    def progress(size: int) -> None:
        if shown:
            print(f"\r{size / 1e6:.1f} MB of about {REMOTE[name].megabytes} MB", end="", file=sys.stderr, flush=True)

    try:
        download(name, progress)
    finally:
        if shown:
            print(file=sys.stderr)
    if options.json:
        answers.document({"name": name, "variant": REMOTE[name].variant, "rows": REMOTE[name].rows}, "fetch")
        return 0
    print(f"{name}: {REMOTE[name].variant} is on this machine now.")
    return 0


def _prepared(options: argparse.Namespace) -> int:
    """How a dataset was prepared, one line for each thing that was done, read from the rows, or lost."""
    from dpviz.datasets import load_dataset

    name = options.name
    dataset = load_dataset(name)
    values = {
        "name": name,
        "rows": dataset.n,
        "features": dataset.d,
        "labels": dataset.label_names,
        "source": dataset.source,
        "looked_at": dataset.looked_at,
        "notes": dataset.notes,
        "lost": [one.sentence for one in dataset.lost],
    }
    if options.json:
        answers.document(values, "datasets")
        return 0
    label = " or ".join(dataset.label_names)
    print(f"{name}: {dataset.n:,} rows, {dataset.d:,} features; label: {label}")
    print(f"source: {dataset.source}")
    print(f"read from the rows, outside every epsilon: {', '.join(dataset.looked_at) or 'nothing'}")
    for note in dataset.notes:
        print(f"prepared: {note}")
    for one in dataset.lost:
        print(f"not trained on: {one.sentence}")
    return 0


def _datasets(options: argparse.Namespace) -> int:
    from dpviz.datasets import list_datasets, rows_of
    from dpviz.datasets.sources.remote import REMOTE, downloaded

    if options.name is not None:
        return _prepared(options)
    here: list[dict[str, Any]] = []
    for name in list_datasets():
        try:
            here.append({"name": name, "rows": rows_of(name), "problem": None})
        except InvalidInput as problem:
            here.append({"name": name, "rows": None, "problem": " ".join(str(problem).split())})
    remote = [
        {"name": name, "rows": source.rows, "megabytes": source.megabytes}
        for name, source in REMOTE.items()
        if not downloaded(name)
    ]
    if options.json:
        answers.document({"datasets": here, "to_fetch": remote}, "datasets")
        return 0
    for one in here:
        said = f"{one['rows']:>9,} rows" if one["problem"] is None else f" cannot be used: {one['problem']}"
        print(f"{one['name']:23}{said}")
    print(f"{'census-N':23} any N from 100 to 1,000,000, synthetic")
    for one in remote:
        size = f"{one['rows']:>9,} rows, not downloaded (about {one['megabytes']} MB)"
        print(f"{one['name']:23}{size}: dpviz fetch {one['name']}")
    return 0


def _mechanisms(options: argparse.Namespace) -> int:
    from dpviz.mechanisms import list_mechanisms

    mechanisms = list_mechanisms()
    if options.json:
        listed = [
            {
                "id": name,
                "family": cls.family,
                "label": cls.label,
                "guarantee": cls.guarantee,
                "citation": cls.citation,
                "knobs": [
                    {"name": k, "default": cls.defaults()[k], "range": knob.describe(), "help": knob.help}
                    for k, knob in cls.knobs().items()
                ],
            }
            for name, cls in mechanisms.items()
        ]
        answers.document({"mechanisms": listed}, "mechanisms")
        return 0
    for name, cls in mechanisms.items():
        print(f"{name:22}{cls.family:11}{cls.label}. {cls.guarantee}")
        for knob_name, knob in cls.knobs().items():
            default = knob.text(cls.defaults()[knob_name])
            print(f"{'':22}--set {knob_name}={default}  ({knob.describe()}) {knob.help}")
    return 0
