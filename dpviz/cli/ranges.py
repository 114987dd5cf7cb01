"""`dpviz ranges`: ranges of numeric columns and categories found privately."""

import argparse
import shlex

from dpviz.cli import answers, own_file
from dpviz.cli.parser import Parser
from dpviz.common.validate import InvalidInput, check_choice, number_from_text

HELP = "ranges of numeric columns and categories found privately, to be declared afterwards"
DESCRIPTION = (
    "Counts values with Gaussian noise: numbers in public bins, categories by themselves. They may be published, "
    "and declared with --range and --categories; what they cost is added to the cost of models. Every call gives other ones "
    "and spends the budget."
)


def add(parser: Parser) -> None:
    """Adds the options."""
    parser.add_argument("file", metavar="TABLE", help="a table of your own; - reads standard input")
    parser.add_argument("--columns", metavar="NAME,NAME", help="numeric columns, named without looking at the rows")
    parser.add_argument("--categories-of", metavar="NAME,NAME", help="columns of categories, named without looking at the rows")
    parser.add_argument("--epsilon", required=True, metavar="EPSILON", help="of all ranges and categories together")
    parser.add_argument("--delta", required=True, metavar="DELTA", help="below one over the number of rows")
    parser.add_argument("--ledger", metavar="FILE.toml", help="enter the ranges into this ledger, which may refuse them")
    own_file.add_reading(parser)


def run(options: argparse.Namespace) -> None:
    """Prints the ranges, as options to declare them."""
    import pandas as pd

    from dpviz.datasets.sources import own
    from dpviz.datasets.table.columns import word
    from dpviz.datasets.table.delimiters import join_words
    from dpviz.privacy.budget import Budget, check_delta
    from dpviz.privacy.private_ranges import plan_noise, private_ranges
    from dpviz.spending import Ledger
    from dpviz.spending.ledger import Entry

    budget = Budget(number_from_text("--epsilon", options.epsilon), number_from_text("--delta", options.delta))
    ledger = None if options.ledger is None else Ledger(options.ledger)
    frame = own.rows_in(*own_file.source(options.file), reading=own_file.reading(options))
    numbers, others = (
        [n for n in own_file.split_list(text or "", ",") if n] for text in (options.columns, options.categories_of)
    )
    for option, names in (("--columns", numbers), ("--categories-of", others)):
        for name in names:
            check_choice(option, name, map(str, frame.columns))
    if len({*numbers, *others}) < len(numbers) + len(others):
        raise InvalidInput("--columns", "and --categories-of name a column twice", "Name each once.")
    if not numbers and not others:
        raise InvalidInput("--columns", "names no column, and neither does --categories-of", "Name at least one.")
    check_delta(budget.delta, max(2, len(frame)))
    if ledger is not None:
        ledger.spend(Entry(plan_noise(len(numbers), len(others), budget).release, "range", call=options.typed[:500]))
    # whatever is no number counts as a gap, so that no single value decides whether a column is one of numbers
    columns = {name: pd.to_numeric(frame[name], errors="coerce").to_numpy(float) for name in numbers}
    made = private_ranges(columns, budget, categories={name: frame[name].map(word, na_action="ignore") for name in others})
    ranges = pd.DataFrame(
        [{"column": name, "low": low, "high": high} for name, (low, high) in made.ranges.items()],
        columns=["column", "low", "high"],
    )
    options_of = [
        *(f"--range {shlex.quote(f'{name}={low:g},{high:g}')}" for name, (low, high) in made.ranges.items()),
        *(f"--categories {shlex.quote(name + '=' + join_words(values, '|'))}" for name, values in made.categories.items()),
    ]
    answers.give(
        options,
        [("guarantee", f"proved: {budget} for all of them, replace-one"), ("declare them", " ".join(options_of))],
        {"budget": budget, "relation": "replace-one", "ranges": ranges, "categories": made.categories, "least": made.least},
        *([ranges] if len(ranges) else []),
    )
