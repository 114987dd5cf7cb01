"""Times taken in turn, ratios round by round, and the table they end in."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers.serving import clock


@dataclass
class Times:
    """Wall and CPU seconds of one contestant, a pair per round, for a number of models each."""

    models: int = 1
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, wall: float, cpu: float) -> None:
        """One more round."""
        self.wall.append(wall / self.models)
        self.cpu.append(cpu / self.models)

    def take(self, work: Callable[[], Any]) -> Any:
        """Runs and times one round."""
        begun = clock()
        result = work()
        self.add(*(clock() - begun).tolist())
        return result


def child(module: str, request: dict[str, Any], **environment: str) -> Any:
    """What a module of benchmarks answers to a request, both JSON, in a process of its own."""
    root = Path(__file__).resolve().parents[2]
    places = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", module, json.dumps(request)]
    env = os.environ | {"PYTHONPATH": places} | environment
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env).stdout)


@dataclass(frozen=True)
class Spread:
    """Median and range of a figure over rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        listed = list(values)
        return cls(statistics.median(listed), min(listed), max(listed))

    def text(self, unit: str = "") -> str:
        """Three digits each."""
        return f"{three(self.median)}{unit} ({three(self.low)} to {three(self.high)})"


def three(value: float) -> str:
    """A number with three digits and no exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Spread of the rounds' ratios; both sides of a round ran one after the other."""
    return Spread.of(a / b for a, b in zip(above, below, strict=True))


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        what: what was compared.
        wall, cpu: the figure by wall and by CPU time, "" where there is none.
        wanted: the figure to reach, "" where the line only explains another.
        reached: whether wall time, or CPU time where there is no other, reaches it; None where nothing is wanted.
        notes: what else is to be known, one sentence each.
        raw: numbers behind the line.
    """

    what: str
    wall: str = ""
    cpu: str = ""
    wanted: str = ""
    reached: bool | None = None
    notes: tuple[str, ...] = ()
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """yes, no, or nothing."""
        return "" if self.reached is None else ("yes" if self.reached else "**no**")


def faster(
    what: str, peer: Times, ours: Times, *, wanted: float | None = None, also: bool = True, notes: Sequence[str] = ()
) -> Row:
    """The ratio of times by which a model of ours is faster.

    Args:
        wanted: ratio to reach by wall time.
        also: what else must hold, accuracy for example.
    """
    wall, cpu = ratio(peer.wall, ours.wall), ratio(peer.cpu, ours.cpu)
    each = f"{1e3 * statistics.median(peer.wall):,.0f} ms against {1e3 * statistics.median(ours.wall):.3g} ms a model"
    return Row(
        what,
        wall.text("×"),
        cpu.text("×"),
        "" if wanted is None else f"at least {wanted:g}× faster",
        None if wanted is None else wall.median >= wanted and also,
        (each, *notes),
        {"peer": asdict(peer), "ours": asdict(ours), "wall_ratio": wall.median, "cpu_ratio": cpu.median},
    )


def markdown(rows: Iterable[Row]) -> str:
    """The table, and under it a list of notes."""
    listed = list(rows)
    lines = ["| | by wall time | by CPU time | wanted | reached |", "|---|---|---|---|---|"]
    lines += [f"| {r.what} | {r.wall} | {r.cpu} | {r.wanted} | {r.verdict} |" for r in listed]
    for row in listed:
        if row.notes:
            lines += ["", f"**{row.what}**", "", *(f"- {note}" for note in row.notes)]
    return "\n".join(lines) + "\n"
