"""`dpviz predict`: predictions of a released model for new rows."""

import argparse
import sys
from typing import Any

from dpviz.cli import answers, output, own_file
from dpviz.cli.parser import Parser
from dpviz.common.validate import check_choice

HELP = "predict the labels of new rows with a released model"
DESCRIPTION = "Writes CSV, one line for each row, in order. A row with a gap gets no prediction; the others do."


def add(parser: Parser) -> None:
    """Adds the options."""
    parser.add_argument("model", metavar="FOLDER", help="a folder that `dpviz release` wrote")
    parser.add_argument("rows", metavar="TABLE.csv", help="new rows; - reads standard input")
    own_file.add_reading(parser)
    parser.add_argument("--proba", action="store_true", help="a column with the probability of each class, too")
    parser.add_argument("--keep", action="append", default=[], metavar="COLUMN", help="copy a column, for example an id")
    parser.add_argument("--fill", action="append", default=[], metavar="NAME=VALUE", help="a value for gaps in a column")
    output.add_place(parser, "a file for the predictions (default: standard output)")


def run(options: argparse.Namespace) -> None:
    """Prints or writes the predictions."""
    import numpy as np
    import pandas as pd

    from dpviz.datasets.sources import own
    from dpviz.datasets.table.columns import word
    from dpviz.releasing import load_model

    out = output.place(options)
    model = load_model(options.model)
    features = {column.name for column in model.encoder.columns}
    copied = [name for name in options.keep if name not in features]
    frame = own.rows_in(*own_file.source(options.rows), reading=own_file.reading(options), verbatim=copied)
    fill = own_file.filling(options.fill, frame)
    for name in options.keep:
        check_choice("--keep", name, map(str, frame.columns))
    kept = {name: [None if pd.isna(value) else word(value) for value in frame[name]] for name in options.keep}
    messages: list[str] = []
    scores = model.scores(frame, messages, fill)
    if np.isnan(scores).any():
        messages.append("--fill NAME=VALUE gives a value for the gaps in a column.")
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
            print(f"dpviz: {output.escape_controls(note)}", file=sys.stderr)
        text = output.csv_of(table)
    if out is None:
        print(text, end="")
    else:
        output.save(out, text.encode())
