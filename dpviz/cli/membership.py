"""`dpviz audit --membership`: membership attacks on the ordinary rows of a run, by shadow models on random halves of them.

Models of datasets with a name are kept: called again, the command goes on where it was stopped, also with more of them.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from dpviz.cli import answers, one_run
from dpviz.cli.parser import refuse
from dpviz.cli.progress import Bar
from dpviz.common.validate import check_integer, number_from_text

if TYPE_CHECKING:
    import pandas as pd

    from dpviz.auditing.attacks.attacked import AttackedRun
    from dpviz.mechanisms import Mechanism

SHOWN = 10  # most exposed rows that are printed

#: options of the attacks, as attributes
OPTIONS = ("shadows", "targets", "attacks", "epsilons", "no_baseline", "no_cache")


def add(group: argparse._ActionsContainer) -> None:
    """Adds the options."""
    group.add_argument("--shadows", metavar="K", help="membership: models that the attacker trains, 64 to 4,096 (256)")
    group.add_argument(
        "--targets", metavar="T", help="membership: models that are attacked, 16 to 1,024 (a quarter of K, at least 64)"
    )
    group.add_argument("--attacks", metavar="IDS", help="membership: some of the attacks, separated by commas (all)")
    group.add_argument("--epsilons", metavar="LIST", help="membership: budgets separated by commas, one table over epsilon")
    group.add_argument("--no-baseline", action="store_true", help="membership: without the same attacks without privacy")
    group.add_argument("--no-cache", action="store_true", help="membership: neither look for kept models nor keep them")


def run(options: argparse.Namespace) -> None:
    """Attacks and prints what was found."""
    from dpviz.auditing.attacks import study
    from dpviz.auditing.attacks.halves import KeptModels
    from dpviz.experiments.run.resolve import resolve

    spec = one_run.run_spec(options)
    asked = number_from_text("--shadows", one_run.option_value(options, "shadows") or "256")
    shadows = check_integer("--shadows", asked, study.LEAST_SHADOWS, study.MOST_SHADOWS)
    targets = None
    if options.targets is not None:
        targets = check_integer(
            "--targets", number_from_text("--targets", options.targets), study.LEAST_TARGETS, study.MOST_TARGETS
        )
    names = None if options.attacks is None else [name for name in options.attacks.split(",") if name]
    store = None if options.no_cache else KeptModels.personal()
    about = {"run": answers.run(resolve(spec)), "shadows": shadows}
    if options.epsilons is not None:
        refuse(options, ("no_baseline",), "means nothing with --epsilons")
        epsilons = [number_from_text("--epsilons", text) for text in options.epsilons.split(",") if text]
        import pandas as pd

        with Bar() as bar:
            over = study.attack_over_epsilon(spec, epsilons, shadows, targets, attacks=names, store=store, monitor=bar)
            table = pd.concat(list(over), ignore_index=True)
        lines = [("mechanism", f"{spec.mechanism} on {spec.model}"), ("", ""), ("", _text(table))]
        answers.give(options, lines, about | {"attacks": table})
    else:
        with Bar() as bar:
            found = study.attack_run(
                spec, shadows, targets, attacks=names, baseline=not options.no_baseline, store=store, monitor=bar
            )
        answers.give(options, _lines(found), about | _values(found, spec.build()))
    for notice in store.notices if store else ():
        print(f"dpviz: {notice}", file=sys.stderr)


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
