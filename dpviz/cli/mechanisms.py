"""`dpviz mechanisms`: all mechanisms with their knobs."""

import argparse

from dpviz.cli import answers
from dpviz.cli.parser import Parser

HELP = "list the mechanisms and their knobs"


def add(parser: Parser) -> None:
    """Adds nothing: the command has no options of its own."""


def run(options: argparse.Namespace) -> None:
    """Lists them."""
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
        answers.document({"mechanisms": listed}, "mechanisms")
        return
    for name, cls in mechanisms.items():
        answers.print_wrapped(f"{name:22}{cls.family:11}{cls.label}. {cls.guarantee}", 33)
        for knob_name, knob in cls.knobs().items():
            default = knob.text(cls.defaults()[knob_name])
            answers.print_wrapped(f"{'':22}--set {knob_name}={default}  ({knob.describe()}) {knob.help}", 28)
