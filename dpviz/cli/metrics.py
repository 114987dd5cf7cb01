"""`--metric` of the commands: which measures of usefulness are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpviz.experiments.metrics import Metric


def chosen(names: Sequence[str]) -> list[Metric]:
    """The metrics that `--metric` asks for, each once.

    Raises:
        InvalidInput: for an unknown one.
    """
    from dpviz.common.validate import one_of
    from dpviz.experiments.metrics import METRICS

    chosen = dict.fromkeys(METRICS if "all" in names else names)
    return [METRICS[one_of("--metric", name, METRICS)] for name in chosen]
