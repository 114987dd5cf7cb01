"""`--metric` of the commands: which measures of usefulness are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpviz.experiments.run.metrics import Metric


def add(parser: Any, meaning: str) -> None:
    """Adds `--metric`, which may be repeated, with what it does in a command."""
    parser.add_argument("--metric", action="append", default=[], metavar="ID", help=meaning)


def chosen_metrics(names: Sequence[str]) -> list[Metric]:
    """The metrics that `--metric` asks for, each once.

    Raises:
        InvalidInput: for an unknown one.
    """
    from dpviz.common.validate import InvalidInput
    from dpviz.experiments.run.metrics import all_metrics, get_metric

    try:
        return list(dict.fromkeys(map(get_metric, all_metrics([n for n in names if n != "all"]) if "all" in names else names)))
    except InvalidInput as problem:
        raise InvalidInput("--metric", problem.cause, problem.fix) from None
