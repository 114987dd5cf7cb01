"""`dpviz release` and `dpviz predict`: one model to be published, and its predictions."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

from dpviz.cli import answers, one_run, own_file
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, number_from_text, whole


def add(commands: Any) -> None:
    """Adds both subcommands to a parser's subparsers."""
    made = commands.add_parser(
        "release",
        help="train one model with fresh randomness of the operating system, to be published",
        description="Writes model.json and card.md. No seed is stored. Every call gives another model and spends the budget.",
    )
    one_run.add(made)
    made.add_argument("--out", required=True, metavar="FOLDER", help="where the model goes; it must hold none yet")
    made.add_argument("--all-rows", action="store_true", help="train on all rows and not on 80 %% of them")
    made.add_argument("--ranges-from-data", action="store_true", help="allow ranges and categories that were read from the rows")
    made.add_argument("--tried", metavar="N", help="how many settings were tried on these rows, for the card")
    made.add_argument("--audit", default="0", metavar="RUNS", help="audit the method with so many trainings on each side")
    made.add_argument(
        "--i-know-this-is-not-proved", dest="unproved", action="store_true", help="allow a guarantee that is only claimed"
    )
    made.add_argument("--ledger", metavar="FILE.toml", help="enter the release into this ledger, which may refuse it")
    answers.add(made)
    made.set_defaults(command=_release)

    predict = commands.add_parser("predict", help="predict the labels of new rows with a released model")
    predict.add_argument("model", metavar="FOLDER", help="a folder that `dpviz release` wrote")
    predict.add_argument("rows", metavar="TABLE.csv", help="new rows; - reads standard input")
    own_file.add_reading(predict)
    answers.add(predict)
    predict.set_defaults(command=_predict)


def _release(options: argparse.Namespace) -> int:
    from dpviz.releasing import release
    from dpviz.spending import Ledger

    out = Path(options.out)
    tried = None if options.tried is None else whole("--tried", number_from_text("--tried", options.tried), 1, 10_000)
    runs = whole("--audit", number_from_text("--audit", options.audit), 0, 1_000_000)
    if 0 < runs < 40:
        raise InvalidInput("--audit", f"needs at least 40 trainings, got {runs}", "Give 1000, for example.")
    bar = Bar()
    made = release(
        one_run.run_spec(options),
        all_rows=options.all_rows,
        unproved=options.unproved,
        ranges_from_data=options.ranges_from_data,
        tried=tried,
        audit_runs=runs,
        monitor=bar,
        ledger=None if options.ledger is None else Ledger(options.ledger),
        call=options.typed[:500],
    )
    bar.end()
    made.save(out)
    cal, model, card = made.calibration, out / "model.json", out / "card.md"
    if options.json:
        settings = {name: value for name, value in made.spec.to_dict().items() if name not in ("seed", "seeds")}
        values = {
            "run": settings | {"delta": cal.budget.delta},
            "guarantee": answers.guarantee(cal),
            "model": model,
            "card": card,
            "training_rows": made.rows,
            "hardened_sampler": made.hardened,
            "tried": made.tried,
            "looked_at": made.dataset.looked_at,
            "audit": None if made.audited is None else made.audited.verdict,
        }
        answers.document(values, "release")
        return 0
    print(f"{model}: {made.spec.mechanism}, {cal.status.value}; proved: {cal.proved_budget or 'nothing'}")
    print(f"{card}: what to know before it is published")
    return 0


def _predict(options: argparse.Namespace) -> int:
    from dpviz.datasets.sources import own
    from dpviz.releasing import load_model

    model = load_model(options.model)
    piped = options.rows == "-"
    content = sys.stdin.buffer.read() if piped else None
    frame = own.rows_in(None if piped else Path(options.rows), content, reading=own_file.reading(options))
    said: list[str] = []
    labels = model.predict(frame, said)
    if options.json:
        answers.document({"classes": model.classes, "predictions": labels, "notes": said}, "predict")
        return 0
    for note in said:
        print(f"dpviz: {note}", file=sys.stderr)
    csv.writer(sys.stdout, lineterminator="\n").writerows([["prediction"], *([label] for label in labels)])
    return 0
