"""`dpviz fetch`: downloads a public dataset."""

import argparse
import sys

from dpviz.cli import answers
from dpviz.cli.parser import Parser

HELP = "download a dataset once"


def add(parser: Parser) -> None:
    """Adds the options."""
    parser.add_argument("name", help="one of those that `dpviz datasets` lists as not downloaded")


def run(options: argparse.Namespace) -> None:
    """Downloads it."""
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
    facts = {"name": name, "variant": REMOTE[name].variant, "rows": REMOTE[name].rows}
    answers.give(options, f"{name}: {REMOTE[name].variant} is on this machine now.", facts)
