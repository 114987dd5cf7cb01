"""`dpviz groups`: accuracy, recall and false-positive rate of groups of rows, private and not."""

import argparse
from typing import Any

from dpviz.cli import answers, one_run
from dpviz.cli.parser import Parser
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput, check_choice, number_from_text

HELP = "what privacy costs each group of rows"
DESCRIPTION = "Not private: all of it is counted on the test rows without noise."


def add(parser: Parser) -> None:
    """Adds the options."""
    one_run.add(parser)
    parser.add_argument("--group", metavar="COLUMN", help="a column of the table, also one that is not trained on")
    parser.add_argument("--cuts", metavar="A,B", help="rising numbers at which a column of numbers is cut")


def run(options: argparse.Namespace) -> None:
    """Prints a line for each group."""
    from dpviz.experiments.run.resolve import dataset_of, resolve
    from dpviz.experiments.studies import groups
    from dpviz.experiments.studies.releases import releases

    spec = one_run.run_spec(options)
    resolved = resolve(spec)
    dataset = dataset_of(resolved.spec)
    column = one_run.option_value(options, "group")
    name = (
        groups.suggest_column(dataset, dataset.n - resolved.n_train)
        if column is None
        else check_choice("--group", column, groups.columns(dataset))
    )
    if not name:
        raise InvalidInput("--group", "this dataset has no column to group by", "Choose another dataset.")
    cuts = one_run.option_value(options, "cuts")
    numbers = tuple(number_from_text("--cuts", text) for text in cuts.split(",")) if cuts else ()
    with Bar() as bar:
        made = releases(spec, [spec.epsilon], bar)
    if not made.at:
        raise made.refused[0][1]
    report = groups.report(made, groups.Grouping(name, numbers))
    table = report.sizes.reset_index()
    for measure in groups.MEASURES:
        private = report.curves(measure).set_index("group")["mean"]
        table[measure] = table["group"].map(private)
        for model in ("non-private", "majority"):
            table[f"{measure}_{model.replace('-', '_')}"] = table["group"].map(report.baseline(model, measure))
    gap = report.gaps()
    values: dict[str, Any] = {
        "run": answers.run(resolved),
        "column": name,
        "groups": table,
        "gap": None if gap.empty else float(gap["mean"].iloc[0]),
        "gap_non_private": report.baseline_gap("non-private"),
    }
    lines: list[tuple[str, object]] = [
        ("dataset", one_run.display_name(resolve(spec).spec.dataset, options)),
        ("mechanism", f"{spec.mechanism} on {spec.model}, epsilon = {spec.epsilon:g}"),
        ("groups by", name),
    ]
    if values["gap"] is not None:
        lines.append(("accuracy gap", f"{values['gap']:.4f}; non-private {values['gap_non_private']:.4f}"))
    answers.give(options, lines, values, table.drop(columns=[c for c in table if c.startswith("mean_score")]))
