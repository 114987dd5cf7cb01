"""`dpviz release`: one model to be published."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpviz.cli import answers, one_run
from dpviz.cli.parser import Parser
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, check_integer, number_from_text

if TYPE_CHECKING:
    from dpviz.releasing import Release

HELP = "train one model with fresh randomness of the operating system, to be published"
DESCRIPTION = "Writes model.json and card.md. No seed is stored. Every call gives another model and spends the budget."


def add(parser: Parser) -> None:
    """Adds the options."""
    add_release(parser)
    parser.add_argument("--tried", metavar="N", help="how many settings were tried on these rows, for the card")
    parser.add_argument(
        "--public-n", metavar="N", help="under add-remove: a public number in the place of the number of rows; with --all-rows"
    )
    parser.add_argument(
        "--audit",
        default="0",
        metavar="RUNS",
        help="audit the method with so many models trained on each of two datasets; it refuses what it refutes",
    )
    parser.add_argument(
        "--i-know-this-is-not-proved", dest="unproved", action="store_true", help="allow a guarantee that is only claimed"
    )


def add_release(parser: Parser) -> None:
    """Adds the options of a model that is published, for `dpviz tune`, too."""
    one_run.add(parser)
    parser.add_argument("--out", required=True, metavar="FOLDER", help="a new folder for the model")
    parser.add_argument("--all-rows", action="store_true", help="use all rows and not 80 %% of them")
    parser.add_argument(
        "--ranges-from-data", action="store_true", help="allow ranges and categories that were read from the rows"
    )
    parser.add_argument(
        "--private-ranges",
        action="store_true",
        help="find ranges and categories that are not declared privately, for a tenth of ε and δ",
    )
    parser.add_argument("--ledger", metavar="FILE.toml", help="enter the release into this ledger, which may refuse it")


def release_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of a release that its options stand for."""
    from dpviz.spending import Ledger

    return {name: getattr(options, name) for name in ("all_rows", "ranges_from_data", "private_ranges")} | {
        "ledger": None if options.ledger is None else Ledger(options.ledger),
        "call": options.typed[:500],
    }


def place(out: str) -> Path:
    """The folder of --out, checked before anything is computed."""
    from dpviz.releasing import check_place

    if not out.strip():
        raise InvalidInput("--out", "is empty", "Name a place.")
    check_place(Path(out))
    return Path(out)


def summary(made: Release, out: Path) -> dict[str, Any]:
    """The values of an answer about a model that was saved in a folder; its seed belongs to the explorer."""
    return {
        "run": {name: value for name, value in made.spec.to_dict().items() if name not in ("seed", "seeds")},
        "guarantee": answers.guarantee(made.calibration, made.spec.build()),
        "model": out / "model.json",
        "card": out / "card.md",
        "training_rows": made.rows,
    }


def run(options: argparse.Namespace) -> None:
    """Trains the model and writes it."""
    from dpviz.experiments.run.spec import RunSpec
    from dpviz.releasing import release

    out = place(options.out)
    if options.seed is not None:
        cause = "a release has no seed: an attacker who knew it could subtract the noise"
        raise InvalidInput("--seed", cause, "Leave it out; randomness comes from the operating system.")
    tried = None if options.tried is None else check_integer("--tried", number_from_text("--tried", options.tried), 1, 10_000)
    runs = check_integer("--audit", number_from_text("--audit", options.audit), 0, 1_000_000)
    spec = one_run.run_spec(options)
    with Bar() as bar:
        made = release(
            replace(spec, seed=RunSpec.seed),  # that of a link belongs to the explorer
            unproved=options.unproved,
            tried=tried,
            audit_runs=runs,
            public_n=None
            if options.public_n is None
            else check_integer("--public-n", number_from_text("--public-n", options.public_n), 2, 10**9),
            monitor=bar,
            **release_arguments(options),
        )
    made.save(out)
    cal, values = made.calibration, summary(made, out)
    values["run"]["delta"] = cal.budget.delta
    values |= {
        "hardened_sampler": made.hardened,
        "tried": made.tried,
        "looked_at": made.dataset.looked_at,
        "audit": None if made.audited is None else made.audited.verdict,
    }
    text = f"{values['model']}: {made.spec.mechanism}, {cal.sentence}; proved: {cal.proved_budget or 'nothing'}"
    answers.give(options, f"{text}\n{values['card']}: what to know before it is published", values)
