"""`dpviz fetch`: downloads a public dataset."""

import argparse

from dpviz.cli import answers
from dpviz.cli.parser import Parser
from dpviz.cli.progress import Bar

HELP = "download a dataset once"


def add(parser: Parser) -> None:
    """Adds the options."""
    parser.add_argument("name", help="one of those that `dpviz datasets` lists as not downloaded")


def run(options: argparse.Namespace) -> None:
    """Downloads it."""
    from dpviz.common.validate import check_choice
    from dpviz.datasets.sources.remote import REMOTE, download

    name = check_choice("name", options.name, REMOTE)
    with Bar() as bar:
        download(name, lambda size: bar(min(1.0, size / 1e6 / REMOTE[name].megabytes)))
    facts = {"name": name, "variant": REMOTE[name].variant, "rows": REMOTE[name].rows}
    answers.give(options, f"{name}: {REMOTE[name].variant} is on this machine now.", facts)
