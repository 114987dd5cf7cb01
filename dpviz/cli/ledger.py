"""`dpviz ledger`: what the releases of one table cost together, kept in a file of one's own."""

import argparse
from typing import Any

from dpviz.cli import answers
from dpviz.cli.parser import Parser
from dpviz.common.validate import InvalidInput, number_from_text

HELP = "what all releases of one table cost together, and the limit that they may reach"
DESCRIPTION = "Shows a ledger. --limit and --delta make a new one; --enter writes a release that was made elsewhere."


def add(parser: Parser) -> None:
    """Adds the options."""
    parser.add_argument("file", metavar="FILE.toml", help="the ledger")
    parser.add_argument("--limit", metavar="EPSILON", help="make a new ledger whose total may reach this epsilon; with --delta")
    parser.add_argument("--delta", metavar="DELTA", help="delta of the limit")
    parser.add_argument("--table", metavar="NAME", help="name of the table in a new ledger (the file's name)")
    parser.add_argument("--unit", metavar="WORD", default="row", help="what one epsilon protects in a new ledger (row)")
    parser.add_argument("--relation", choices=("replace-one", "add-remove"), default="replace-one", help="of a new ledger")
    parser.add_argument("--enter", metavar="EPSILON[,DELTA]", help="write a proved release that was made elsewhere")
    parser.add_argument("--note", metavar="TEXT", default="", help="what that release was")


def run(options: argparse.Namespace) -> None:
    """Shows the ledger, after making it or writing an entry where that was asked for."""
    from pathlib import Path

    from dpviz.privacy.budget import Budget, Neighbouring
    from dpviz.spending import Ledger

    if (options.limit is None) != (options.delta is None):
        raise InvalidInput("--limit", "and --delta go together", "Give both, for example --limit 3 --delta 1e-6.")
    if options.limit is not None:
        limit = Budget(number_from_text("--limit", options.limit), number_from_text("--delta", options.delta))
        name = options.table if options.table is not None else Path(options.file).stem
        relation = Neighbouring(options.relation)
        ledger = Ledger.create(options.file, table=name, limit=limit, relation=relation, unit=options.unit)
    else:
        ledger = Ledger(options.file)
    if options.enter is not None:
        _enter(ledger, options.enter, options.note)
    _show(options, ledger)


def _enter(ledger: Any, text: str, note: str) -> None:
    from dpviz.spending.ledger import entry_of_budget

    epsilon, _, delta = text.partition(",")
    numbers = number_from_text("--enter", epsilon), number_from_text("--enter", delta) if delta else 0.0
    ledger.spend(entry_of_budget(*numbers, what="other", call=note), ledger.contents().relation)


def _show(options: argparse.Namespace, ledger: Any) -> None:
    contents = ledger.contents()
    total = contents.total()
    entries = total.table()
    values = {
        "table": contents.table,
        "unit": contents.unit,
        "relation": contents.relation.value,
        "limit": contents.limit,
        "total": total.budget,
        "status": total.status.value,
        "not_proved": [entry.call or entry.when for entry in total.unproved],
        "conditions": total.conditions,
        "entries": entries,
    }
    spent = f"{total.budget or 'no finite ε'}, {total.status.value}" if total.parts else "nothing"
    lines: list[tuple[str, object]] = [
        ("table", f"{contents.table}; ε is per {contents.unit}, {contents.relation.value} neighbours"),
        ("limit", contents.limit),
        ("spent", spent),
        *(("not proved", f"{entry.call or entry.when}: {entry.status.value}") for entry in total.unproved),
        *(("condition", condition) for condition in total.conditions),
    ]
    answers.give(options, lines, values, *([entries] if len(entries) else []))
