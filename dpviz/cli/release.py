"""`dpviz release`: one model to be published, or the best of a private search over settings."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpviz.cli import answers, one_run
from dpviz.cli.parser import Parser, refuse
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, check_integer, number_from_text

if TYPE_CHECKING:
    from dpviz.experiments.run.spec import RunSpec
    from dpviz.releasing import Release

#: options of one model alone, and of a search, as attributes
_OF_ONE = ("tried", "public_n", "audit", "unproved")
_OF_SEARCH = ("mean_runs", "distribution", "held_out")

HELP = "train one model with fresh randomness of the operating system, to be published"
DESCRIPTION = (
    "Writes model.json and card.md. No seed is stored. Every call gives another model and spends the budget. --try trains a "
    "random number of private models with random settings of a list that is fixed beforehand, scores each with noise on rows "
    "held out of training, and writes the best one; epsilon pays for the choice."
)


def add(parser: Parser) -> None:
    """Adds the options."""
    one_run.add(parser)
    parser.add_argument("-o", "--out", required=True, metavar="FOLDER", help="a new folder for the model")
    parser.add_argument("--all-rows", action="store_true", help="use all rows and not 80 %% of them")
    parser.add_argument(
        "--private-ranges",
        action="store_true",
        help="find ranges and categories that are not declared privately, for a tenth of ε and δ",
    )
    parser.add_argument("--ledger", metavar="FILE.toml", help="enter the release into this ledger, which may refuse it")
    parser.add_argument(
        "--try",
        dest="values",
        action="append",
        nargs="?",
        const="",
        metavar="NAME=A,B,...",
        help="search: values of a hyperparameter, or of lam (five values each of lam and of the first hyperparameter)",
    )
    rest = parser.rest
    rest.add_argument("--ranges-from-data", action="store_true", help="allow ranges and categories that were read from the rows")
    rest.add_argument("--tried", metavar="N", help="how many settings were tried on these rows, for the card")
    rest.add_argument("--public-n", metavar="N", help="under add-remove: a public number of rows; with --all-rows")
    rest.add_argument(
        "--audit",
        metavar="RUNS",
        help="audit the method with so many models trained on each of two datasets; it refuses what it refutes",
    )
    rest.add_argument(
        "--i-know-this-is-not-proved", dest="unproved", action="store_true", help="allow a guarantee that is only claimed"
    )
    rest.add_argument("--mean-runs", metavar="N", help="search: models trained on average (10)")
    rest.add_argument(
        "--runs",
        dest="distribution",
        choices=("geometric", "logarithmic", "negative-binomial", "poisson"),
        help="search: distribution of their number (logarithmic, which costs least)",
    )
    rest.add_argument("--held-out", metavar="SHARE", help="search: rows that models are scored on, 0.05 to 0.5 (0.2)")


def run(options: argparse.Namespace) -> None:
    """Trains the model, or searches for one, and writes it."""
    from dpviz.experiments.run.settings import SETTINGS
    from dpviz.experiments.run.spec import RunSpec
    from dpviz.releasing import check_place
    from dpviz.spending import Ledger

    if not options.out.strip():
        raise InvalidInput("--out", "is empty", "Name a place.")
    out = Path(options.out)
    check_place(out)
    if options.seed is not None:
        cause = "a release has no seed: an attacker who knew it could subtract the noise"
        raise InvalidInput("--seed", cause, "Leave it out; randomness comes from the operating system.")
    how = {name: getattr(options, name) for name in ("all_rows", "ranges_from_data", "private_ranges")} | {
        "ledger": None if options.ledger is None else Ledger(options.ledger),
        "call": options.typed[:500],
    }
    if options.values is None:
        refuse(options, _OF_SEARCH, "belongs to --try")
    else:
        refuse(options, _OF_ONE, "cannot go with --try")
    spec = replace(one_run.run_spec(options), seed=RunSpec.seed)  # that of a link belongs to the explorer
    with Bar() as bar:
        made = (_one if options.values is None else _best)(options, spec, monitor=bar, **how)
    made.save(out)
    cal, run = made.calibration, {n: value for n, value in made.spec.to_dict().items() if n not in ("seed", "seeds")}
    values = {
        "run": run | {"delta": cal.budget.delta},
        "guarantee": answers.guarantee(cal, made.spec.build()),
        "model": out / "model.json",
        "card": out / "card.md",
        "training_rows": made.rows,
        "hardened_sampler": made.hardened,
        "tried": made.tried,
        "looked_at": made.dataset.looked_at,
        "audit": None if made.audited is None else made.audited.verdict,
        "searched": made.searched,
    }
    chosen = ", ".join(
        f"{name} = {value}" for name, value in {"lam": SETTINGS["lam"].in_words(made.spec.lam), **made.spec.params}.items()
    )
    search = f", which pays for the choice of {chosen} among {made.searched:,} settings" if made.searched else ""
    text = f"{values['model']}: {made.spec.mechanism}, {cal.sentence}; proved: {cal.proved_budget or 'nothing'}{search}"
    answers.give(options, f"{text}\n{values['card']}: what to know before it is published", values)


def _one(options: argparse.Namespace, spec: RunSpec, **how: Any) -> Release:
    from dpviz.releasing import release

    def count(name: str, low: int, high: int) -> int | None:
        text = getattr(options, name)
        field = f"--{name.replace('_', '-')}"
        return None if text is None else check_integer(field, number_from_text(field, text), low, high)

    tried, runs, public_n = count("tried", 1, 10_000), count("audit", 0, 1_000_000), count("public_n", 2, 10**9)
    return release(spec, unproved=options.unproved, tried=tried, audit_runs=runs or 0, public_n=public_n, **how)


def _best(options: argparse.Namespace, spec: RunSpec, **how: Any) -> Release:
    from dpviz.releasing.tuning import private_search

    return private_search(
        spec,
        _values(spec, list(filter(None, options.values))),
        mean_runs=number_from_text("--mean-runs", options.mean_runs or "10"),
        distribution=options.distribution or "logarithmic",
        held_out=number_from_text("--held-out", options.held_out or "0.2"),
        **how,
    )


def _values(spec: RunSpec, texts: list[str]) -> dict[str, list[Any]]:
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
