"""`dpviz release` and `dpviz predict`: one model to be published, and its predictions."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpviz.cli import answers, one_run, output, own_file
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, number_from_text, one_of, whole


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
    made.add_argument(
        "--private-ranges",
        action="store_true",
        help="find ranges and categories that are not declared privately, for a tenth of epsilon",
    )
    made.add_argument("--tried", metavar="N", help="how many settings were tried on these rows, for the card")
    made.add_argument("--audit", default="0", metavar="RUNS", help="audit the method with so many trainings on each side")
    made.add_argument(
        "--i-know-this-is-not-proved", dest="unproved", action="store_true", help="allow a guarantee that is only claimed"
    )
    made.add_argument("--ledger", metavar="FILE.toml", help="enter the release into this ledger, which may refuse it")
    answers.add(made)
    made.set_defaults(command=_release)

    predict = commands.add_parser(
        "predict",
        help="predict the labels of new rows with a released model",
        description="Writes CSV, one line for each row, in order. A row with a gap gets no prediction; the others do.",
    )
    predict.add_argument("model", metavar="FOLDER", help="a folder that `dpviz release` wrote")
    predict.add_argument("rows", metavar="TABLE.csv", help="new rows; - reads standard input")
    own_file.add_reading(predict)
    predict.add_argument("--proba", action="store_true", help="a column with the probability of each class, too")
    predict.add_argument("--keep", action="append", default=[], metavar="COLUMN", help="copy a column, for example an id")
    predict.add_argument("--fill", action="append", default=[], metavar="NAME=VALUE", help="a value for gaps in a column")
    output.add_place(predict, "a file for the predictions (default: standard output)")
    answers.add(predict)
    predict.set_defaults(command=_predict)


def named(out: str) -> str:
    """A place that was named."""
    if not out.strip():
        raise InvalidInput("--out", "is empty", "Name a place.")
    return out


def _release(options: argparse.Namespace) -> int:
    from dpviz.experiments.run.spec import RunSpec
    from dpviz.releasing import check_place, release
    from dpviz.spending import Ledger

    out = Path(named(options.out))
    check_place(out)
    if options.seed is not None:
        cause = "a release has no seed: whoever knew it could subtract the noise"
        raise InvalidInput("--seed", cause, "Leave it out; randomness comes from the operating system.")
    tried = None if options.tried is None else whole("--tried", number_from_text("--tried", options.tried), 1, 10_000)
    runs = whole("--audit", number_from_text("--audit", options.audit), 0, 1_000_000)
    if 0 < runs < 40:
        raise InvalidInput("--audit", f"needs at least 40 trainings, got {runs}", "Give 1000, for example.")
    bar = Bar()
    made = release(
        replace(one_run.run_spec(options), seed=RunSpec.seed),  # that of a link belongs to the explorer
        all_rows=options.all_rows,
        unproved=options.unproved,
        ranges_from_data=options.ranges_from_data,
        private_ranges=options.private_ranges,
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
            "guarantee": answers.guarantee(cal, made.spec.build()),
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
    import numpy as np
    import pandas as pd

    from dpviz.datasets.sources import own
    from dpviz.datasets.table.columns import word
    from dpviz.releasing import load_model

    out = output.place(options)
    model = load_model(options.model)
    piped = options.rows == "-"
    content = own_file.standard_input() if piped else None
    features = {column.name for column in model.encoder.columns}
    copied = [name for name in options.keep if name not in features]
    frame = own.rows_in(None if piped else Path(options.rows), content, reading=own_file.reading(options), verbatim=copied)
    fill = own_file.filling(options.fill, frame)
    for name in options.keep:
        one_of("--keep", name, map(str, frame.columns))
    kept = {name: [None if pd.isna(value) else word(value) for value in frame[name]] for name in options.keep}
    messages: list[str] = []
    scores = model.scores(frame, messages, fill)
    table = pd.DataFrame({"prediction": model.labels(scores)})
    chances = model.probabilities(scores) if options.proba else None
    if options.json:
        values: dict[str, Any] = {"classes": model.classes, "predictions": list(table["prediction"]), "notes": messages}
        if chances is not None:
            values["probabilities"] = chances
        if options.keep:
            values["kept"] = kept
        text = answers.text(values, "predict")
    else:
        for name in reversed(options.keep):
            table.insert(0, name, kept[name], allow_duplicates=True)
        for name, chance in zip(model.classes, [] if chances is None else chances.T, strict=chances is not None):
            table.insert(len(table.columns), f"probability of {name}", np.round(chance, 6), allow_duplicates=True)
        for note in messages:
            print(f"dpviz: {output.visible(note)}", file=sys.stderr)
        text = output.csv_of(table)
    if out is None:
        print(text, end="")
        return 0
    output.save(out, text.encode())
    return 0
