"""`dpviz attack`: membership attacks on the ordinary rows of a run, by shadow models on random halves of them."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from dpviz.cli import answers, one_run
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, number_from_text, whole

if TYPE_CHECKING:
    import pandas as pd

    from dpviz.auditing.attacks.attacked import AttackedRun
    from dpviz.mechanisms import Mechanism

SHOWN = 10  # most exposed rows that are printed


def add(commands: Any) -> None:
    """Adds the subcommand to a parser's subparsers."""
    made = commands.add_parser(
        "attack",
        help="membership attacks on ordinary rows: how many members are found at few false alarms, and which",
        description="Trains shadow models on random halves of the rows and attacks other models like them. Models of datasets "
        "with a name are kept: called again, the command goes on where it was stopped, also with more of them. Not private: it "
        "names exposed rows.",
    )
    one_run.add(made)
    made.add_argument("--shadows", metavar="K", help="models that the attacker trains, 64 to 4,096 (256)")
    made.add_argument("--targets", metavar="T", help="models that are attacked, 16 to 1,024 (a quarter of K, at least 64)")
    made.add_argument("--attacks", metavar="IDS", help="some of the attacks, separated by commas (all)")
    made.add_argument("--epsilons", metavar="LIST", help="budgets separated by commas: one table over epsilon")
    made.add_argument("--no-baseline", action="store_true", help="leave out the same attacks without privacy")
    made.add_argument("--no-cache", action="store_true", help="neither look for kept models nor keep them")
    answers.add(made)
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Attacks and prints what was found. Returns 0, also where more is found than the guarantee allows."""
    from dpviz.auditing.attacks.kept import KeptModels
    from dpviz.auditing.attacks.study import (
        LEAST_SHADOWS,
        LEAST_TARGETS,
        MOST_SHADOWS,
        MOST_TARGETS,
        attack_over_epsilon,
        attack_run,
    )
    from dpviz.experiments.run.resolve import resolve

    spec = one_run.run_spec(options)
    shadows = whole(
        "--shadows", number_from_text("--shadows", one_run.own(options, "shadows") or "256"), LEAST_SHADOWS, MOST_SHADOWS
    )
    targets = None
    if options.targets is not None:
        targets = whole("--targets", number_from_text("--targets", options.targets), LEAST_TARGETS, MOST_TARGETS)
    names = None if options.attacks is None else [name for name in options.attacks.split(",") if name]
    store = None if options.no_cache else KeptModels.personal()
    bar = Bar()
    about = {"run": answers.run(resolve(spec)), "shadows": shadows}
    if options.epsilons is not None:
        if options.no_baseline:
            raise InvalidInput("--no-baseline", "means nothing with --epsilons", "Leave one of them out.")
        epsilons = [number_from_text("--epsilons", text) for text in options.epsilons.split(",") if text]
        import pandas as pd

        over = attack_over_epsilon(spec, epsilons, shadows, targets, attacks=names, store=store, monitor=bar)
        table = pd.concat(list(over), ignore_index=True)
        bar.end()
        answers.give(
            options,
            [("mechanism", f"{spec.mechanism} on {spec.model}"), ("", ""), ("", _text(table))],
            about | {"attacks": table},
        )
    else:
        found = attack_run(spec, shadows, targets, attacks=names, baseline=not options.no_baseline, store=store, monitor=bar)
        bar.end()
        answers.give(options, _lines(found), about | _values(found, spec.build()))
    for notice in store.notices if store else ():
        print(f"dpviz: {notice}", file=sys.stderr)
    return 0


def _values(found: AttackedRun, mechanism: Mechanism) -> dict[str, Any]:
    return {
        "guarantee": answers.guarantee(found.calibration, mechanism),
        "targets": found.targets,
        "half": found.setting.n,
        "sentence": found.sentence(),
        "verdict": found.verdict,
        "attacks": found.table,
        "rows": found.rows.reset_index(),
    }


def _lines(found: AttackedRun) -> list[tuple[str, object]]:
    rows = found.rows.head(SHOWN).reset_index()[["row_id", "separation", "attacks_that_find"]]
    return [
        ("answer", found.sentence()),
        ("mechanism", f"{found.spec.mechanism} on {found.spec.model}"),
        ("models", f"{found.shadows:,} shadow and {found.targets:,} target models, each on {found.setting.n:,} random rows"),
        ("verdict", found.verdict),
        ("attacks", "detections with 95 % limits, what the guarantee allows, and detections without privacy"),
        *[("", line) for line in _text(found.table).splitlines()],
        ("most exposed", "distance of a row's signal with and without it, in standard deviations; attacks of these that find it"),
        *[("", line) for line in answers.table(rows).splitlines()],
    ]


def _text(table: pd.DataFrame) -> str:
    """A table of attacks for people."""
    return answers.table(table.drop(columns=["attack", "targets"]).round(4))
