"""Verdicts on whole figures: each statement of a paper on all panels of its figure that were computed, kept in a file.

`python -m benchmarks.figures --save` computes the panels, resumes where it was stopped, and writes the file, which lies beside
this package and is committed. Verdicts on figures of which fewer panels were computed than before stay. The page Paper claims and
docs/figures.md show it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from dpviz.common import files
from dpviz.papers.figures import base
from dpviz.papers.verdict import Outcome

FILE = Path(__file__).parents[1] / "figure_verdicts.json"


@dataclass(frozen=True)
class FigureVerdict:
    """A statement about a figure with its verdict.

    Attributes:
        figure: id of the figure.
        text: the statement.
        outcome, condition, because: of its verdict on the panels taken together.
        panels: names of the panels that were computed.
        datasets: the datasets that they were computed on, in the same order.
    """

    figure: str
    text: str
    outcome: Outcome
    condition: str
    because: str
    panels: tuple[str, ...]
    datasets: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The outcome, with its condition."""
        return f"{self.outcome} {self.condition}".rstrip()


def whole(figure: base.Figure, tables: Mapping[str, pd.DataFrame]) -> list[FigureVerdict]:
    """The verdicts on a figure, by the statements' own scope ("on most datasets"); none where no panel of it was computed.

    Args:
        tables: "figure-panel" to the sweep of the panel. Panels that stand elsewhere in the paper are left out.
    """
    names = [name for name, panel in figure.panels.items() if not panel.instead and f"{figure.id}-{name}" in tables]
    if not names:
        return []
    parts = [tables[f"{figure.id}-{name}"] for name in names]
    on = tuple(str(part["dataset"].iloc[0]) for part in parts)
    return [
        FigureVerdict(figure.id, one.text, verdict.outcome, verdict.condition, verdict.because, tuple(names), on)
        for one, verdict in base.judge(figure, pd.concat(parts, ignore_index=True))
    ]


def merged(verdicts: Sequence[FigureVerdict], path: Path = FILE) -> list[FigureVerdict]:
    """New verdicts in the place of those saved ones that are of no more panels; the others as they are, in the figures' order."""
    new, old = ({(one.figure, one.text): one for one in some} for some in (verdicts, load(path)))
    both = [(figure.id, one.text) for figure in base.figures() for one in figure.statements]
    better = new | {key: one for key, one in old.items() if key not in new or len(one.panels) > len(new[key].panels)}
    return [better[key] for key in both if key in better]


def save(verdicts: Sequence[FigureVerdict], path: Path = FILE) -> None:
    """Writes verdicts, one a line.

    Raises:
        OSError: the file cannot be written.
    """
    lines = ",\n".join(
        json.dumps(asdict(verdict) | {"outcome": verdict.outcome.name}, ensure_ascii=False) for verdict in verdicts
    )
    files.write(path, f"[\n{lines}\n]\n".encode())
    load.cache_clear()


@cache
def load(path: Path = FILE) -> tuple[FigureVerdict, ...]:
    """The verdicts that were saved last, without statements that no longer exist."""
    if not path.is_file():
        return ()
    current = {(figure.id, one.text) for figure in base.figures() for one in figure.statements}
    return tuple(
        FigureVerdict(**entry | {"outcome": Outcome[entry["outcome"]], **{k: tuple(entry[k]) for k in ("panels", "datasets")}})
        for entry in json.loads(path.read_text("utf-8"))
        if (entry["figure"], entry["text"]) in current
    )
