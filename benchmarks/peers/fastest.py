"""The way in which a peer is fastest: every solver and number of threads is tried before a race begins."""

import itertools
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.environments import Peer

SOLVERS = ("lbfgs", "newton-cholesky", "liblinear")
TRIES = 3
SAME = 1e-4  # objectives this close to the lowest one are the same answer


@dataclass(frozen=True)
class Way:
    """The settings with which a peer is asked.

    Attributes:
        request: what is sent beside the task: solver, threads.
        wall, cpu: median seconds of one task.
        notes: what was tried, one sentence each.
    """

    request: dict[str, Any]
    wall: float
    cpu: float
    notes: tuple[str, ...]

    @property
    def words(self) -> str:
        """The way in words, as "liblinear, 1 thread"."""
        return in_words(self.request)


def in_words(request: Mapping[str, Any]) -> str:
    """A request in words."""
    count = request["threads"]
    return ", ".join((*([request["solver"]] if "solver" in request else []), f"{count} thread{'s' if count > 1 else ''}"))


def ways(threads: int, solvers: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Every solver on one thread and on all."""
    counts = sorted({1, threads})
    listed = list(solvers)
    if not listed:
        return [{"threads": count} for count in counts]
    return [{"solver": solver, "threads": count} for solver, count in itertools.product(listed, counts)]


def fastest(peer: Peer, task: Mapping[str, Any], candidates: Iterable[Mapping[str, Any]]) -> Way:
    """The candidate with the least wall time among those that reach the same objective.

    Args:
        task: the request that all candidates share; "do" is what is asked for.
        candidates: what each adds to it. An answer without "objective" is taken for as good as the others.
    """
    found: list[tuple[float, float, float, dict[str, Any]]] = []
    for candidate in map(dict, candidates):
        peer.ask(**task, **candidate)  # warm
        answers = [peer.ask(**task, **candidate) for _ in range(TRIES)]
        wall, cpu = (statistics.median(a[part] for a in answers) for part in ("wall", "cpu"))
        found.append((wall, cpu, answers[-1].get("objective", 0.0), candidate))
    lowest = min(objective for _, _, objective, _ in found)
    equal = [entry for entry in found if entry[2] <= lowest * (1 + SAME)]
    wall, cpu, _, request = min(equal, key=lambda entry: entry[0])
    tried = "; ".join(
        f"{in_words(r)}: {w:.3f} s ({c:.3f} s CPU)"
        + ("" if o <= lowest * (1 + SAME) else f", objective {o / lowest - 1:.1e} above")
        for w, c, o, r in found
    )
    return Way(request, wall, cpu, (f"Its fastest way here: {in_words(request)}. Tried: {tried}.",))
