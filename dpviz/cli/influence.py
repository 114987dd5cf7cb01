"""`dpviz influence`: the training rows that move a model most, and what noise does to them."""

import argparse

from dpviz.cli import answers, one_run
from dpviz.cli.parser import Parser
from dpviz.cli.progress import Bar
from dpviz.common.validate import check_integer, number_from_text

_COLUMNS = {
    "row_id": "training row, as on the pages",
    "label": "-1 or +1",
    "influence_function": "change of the parameters without the row, to first order",
    "newton_step": "the same by one Newton step, much closer to retraining",
    "leverage": "share of the curvature that the row provides itself, in [0, 1)",
    "label_flip": "change of the parameters with the row's other label, to first order",
    "correct": "share of the private models that predict the row right",
    "times_noised": "how often noise was put on the row",
    "individual_epsilon": "its individual epsilon",
}

HELP = "the training rows that move the model most, and what noise does to them"
DESCRIPTION = "Not private: all of it is read from the rows. Columns: {}.".format(
    "; ".join(f"{name}: {meaning}" for name, meaning in _COLUMNS.items())
)


def add(parser: Parser) -> None:
    """Adds the options."""
    one_run.add(parser)
    parser.add_argument("--top", default="10", metavar="N", help="how many rows, most influential first; 0 for all (10)")
    parser.add_argument("--retrain", action="store_true", help="retrain without each of these rows: the exact change, beside")


def run(options: argparse.Namespace) -> None:
    """Prints the rows."""
    import numpy as np
    import pandas as pd

    from dpviz.experiments.run.resolve import resolve
    from dpviz.experiments.studies import inspected

    spec = one_run.run_spec(options)
    top = check_integer("--top", number_from_text("--top", options.top), 0, 10**9)
    with Bar() as bar:
        inspected_run = inspected.inspect(spec, bar)
    influence = inspected.row_influence(spec)
    table = pd.DataFrame(
        {
            "row_id": inspected_run.row_ids,
            "label": inspected_run.instances["label"].to_numpy(),
            "influence_function": influence.norm,
            "newton_step": influence.newton_norm,
            "leverage": influence.leverage,
            "label_flip": influence.flip_norm,
            "correct": inspected_run.instances["correct"].to_numpy(),
            "times_noised": np.nan if inspected_run.noise_count is None else inspected_run.noise_count,
            "individual_epsilon": np.nan if inspected_run.epsilon is None else inspected_run.epsilon,
        }
    )
    at = influence.order[: top or None]
    shown = table.iloc[at]
    if options.retrain:
        with Bar() as bar:
            shown = shown.assign(retrained=inspected.retrain_without(spec, at, bar).norm)
    norm = float(np.linalg.norm(influence.theta))
    values = {
        "run": answers.run(resolve(spec)),
        "guarantee": answers.guarantee(inspected_run.calibration, spec.build()),
        "training_rows": len(table),
        "non_private_norm": norm,
        "exact_curvature": influence.exact_curvature,
        "noise_on": inspected_run.record.where,
        "rows": shown,
    }
    lines: list[tuple[str, object]] = [
        ("dataset", f"{one_run.display_name(resolve(spec).spec.dataset, options)}, {len(table):,} training rows"),
        ("mechanism", f"{spec.mechanism} on {spec.model}; {inspected_run.record.where}"),
        ("non-private", f"parameters of norm {norm:.6g}"),
        ("not private", "these numbers are computed from the rows without noise"),
    ]
    answers.give(options, lines, values, shown.dropna(axis=1, how="all"))
