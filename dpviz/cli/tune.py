"""`dpviz tune`: the best model of a private search over settings, to be published."""

import argparse
from dataclasses import replace
from typing import Any

from dpviz.cli import answers, one_run
from dpviz.cli.parser import Parser
from dpviz.cli.progress import Bar
from dpviz.cli.release import add_release, place, release_arguments, summary
from dpviz.common.validate import InvalidInput, number_from_text

HELP = "release the best model of a private search over settings; epsilon pays for the choice"
DESCRIPTION = (
    "Trains a random number of private models with random settings of a list that is fixed beforehand, scores "
    "each with noise on rows held out of training, and writes model.json and card.md of the best one."
)


def add(parser: Parser) -> None:
    """Adds the options."""
    add_release(parser)
    parser.add_argument(
        "--try",
        dest="values",
        action="append",
        default=[],
        metavar="NAME=A,B,...",
        help="values of a hyperparameter, or of lam (default: five values each of lam and of the first hyperparameter)",
    )
    parser.add_argument("--mean-runs", default="10", metavar="N", help="models trained on average (10)")
    parser.add_argument(
        "--runs",
        dest="distribution",
        choices=("geometric", "logarithmic", "negative-binomial", "poisson"),
        default="logarithmic",
        help="distribution of their number (logarithmic, which costs least)",
    )
    parser.add_argument("--held-out", default="0.2", metavar="SHARE", help="rows that models are scored on, 0.05 to 0.5 (0.2)")


def run(options: argparse.Namespace) -> None:
    """Searches, and writes the best model."""
    from dpviz.experiments.run.settings import SETTINGS
    from dpviz.experiments.run.spec import RunSpec
    from dpviz.releasing.tuning import private_search

    out = place(options.out)
    spec = replace(one_run.run_spec(options), seed=RunSpec.seed)  # that of a link belongs to the explorer
    with Bar() as bar:
        made = private_search(
            spec,
            _values(spec, options.values),
            mean_runs=number_from_text("--mean-runs", options.mean_runs),
            distribution=options.distribution,
            held_out=number_from_text("--held-out", options.held_out),
            monitor=bar,
            **release_arguments(options),
        )
    made.save(out)
    cal, values = made.calibration, summary(made, out) | {"searched": made.searched}
    settings = {"lam": SETTINGS["lam"].in_words(made.spec.lam), **made.spec.params}
    chosen = ", ".join(f"{name} = {value}" for name, value in settings.items())
    lines = [
        ("chosen", f"{chosen}, of {made.searched:,} settings"),
        ("guarantee", f"{cal.sentence}: {cal.proved_budget}, which pays for the choice"),
        *((name, values[name]) for name in ("model", "card")),
    ]
    answers.give(options, lines, values)


def _values(spec: Any, texts: list[str]) -> dict[str, list[Any]]:
    """The settings to choose from, as typed, or those around the run's own that public facts give."""
    from dpviz.experiments.sweeps import grid
    from dpviz.releasing.tuning import default_values

    if not texts:
        return default_values(spec)
    declared, values = grid.declared_knobs(spec), dict[str, list[Any]]()
    for text in texts:
        name, equals, some = text.partition("=")
        if not equals or name not in declared:
            raise InvalidInput("--try", f"names no hyperparameter: {text!r}", f"Give NAME=A,B with one of {', '.join(declared)}.")
        parsed = [declared[name].parse(f"--try {name}", part) for part in some.split(",")]
        values[name] = list(dict.fromkeys([*values.get(name, []), *parsed]))
    return values
