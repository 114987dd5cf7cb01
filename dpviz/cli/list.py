"""`dpviz list`: datasets, mechanisms with their hyperparameters, claims of papers, and papers."""

import argparse
from typing import Any

from dpviz.cli import answers, claims
from dpviz.cli.parser import Parser, refuse
from dpviz.common.validate import InvalidInput

HELP = "list datasets, mechanisms, papers or their claims, and test claims"


def add(parser: Parser) -> None:
    """Adds the options."""
    parser.add_argument("what", choices=[*_LISTS], help="what is listed")
    claims.add(parser)


def run(options: argparse.Namespace) -> None:
    """Lists."""
    if options.what != "claims":
        refuse(options, claims.OPTIONS, "belongs to claims")
    _LISTS[options.what](options)


def _datasets(options: argparse.Namespace) -> None:
    from dpviz.datasets import list_datasets, rows_of
    from dpviz.datasets.sources.remote import REMOTE, is_downloaded

    here: list[dict[str, Any]] = []
    for name in list_datasets():
        try:
            here.append({"name": name, "rows": rows_of(name), "problem": None})
        except InvalidInput as problem:
            here.append({"name": name, "rows": None, "problem": " ".join(str(problem).split())})
    remote = [
        {"name": name, "rows": source.rows, "megabytes": source.megabytes}
        for name, source in REMOTE.items()
        if not is_downloaded(name)
    ]
    lines = [
        f"{one['name']:23}" + (f"{one['rows']:>9,} rows" if one["problem"] is None else f" cannot be used: {one['problem']}")
        for one in here
    ]
    lines.append(f"{'census-N':23} any N from 100 to 1,000,000, synthetic")
    for one in remote:
        size = f"{one['rows']:>9,} rows, not downloaded (about {one['megabytes']} MB)"
        lines.append(f"{one['name']:23}{size}: dpviz show {one['name']} --download")
    answers.give(options, "\n".join(lines), {"datasets": here, "to_fetch": remote})


def _mechanisms(options: argparse.Namespace) -> None:
    from dpviz.mechanisms import list_mechanisms

    mechanisms = list_mechanisms()
    if options.json:
        listed = [
            {name: getattr(cls, name) for name in ("id", "family", "label", "guarantee", "citation")}
            | {
                "knobs": [
                    {"name": k, "default": cls.defaults()[k], "range": knob.describe(), "help": knob.help}
                    for k, knob in cls.knobs().items()
                ]
            }
            for cls in mechanisms.values()
        ]
        answers.document({"mechanisms": listed}, "list")
        return
    for name, cls in mechanisms.items():
        answers.print_wrapped(f"{name:22}{cls.family:11}{cls.label}. {cls.guarantee}", 33)
        for knob_name, knob in cls.knobs().items():
            default = knob.text(cls.defaults()[knob_name])
            answers.print_wrapped(f"{'':22}--set {knob_name}={default}  ({knob.describe()}) {knob.help}", 28)


def _papers(options: argparse.Namespace) -> None:
    from dpviz.papers.sources import PAPERS

    papers = [{"id": paper.id, "name": paper.name, "citation": paper.citation} for paper in PAPERS.values()]
    answers.give(options, "\n".join(f"{one['id']:12}{one['citation']}" for one in papers), {"papers": papers})


_LISTS = {"datasets": _datasets, "mechanisms": _mechanisms, "claims": claims.run, "papers": _papers}
