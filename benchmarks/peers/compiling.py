"""Compiling of kernels for a first figure on a fresh machine: a process of its own whose cache of numba is empty."""

import json
import sys
import tempfile
import time

from numba.core import event

from benchmarks.peers.measure import Row, child
from benchmarks.peers.rows import Track
from benchmarks.peers.whole_figure import figure
from dpviz.experiments.sweeps.cells import attempts


class Compilations(event.Listener):
    """Processor seconds of each compilation; one that another compilation asks for is a part of that."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._begun: list[float] = []

    def on_start(self, event: event.Event) -> None:
        self._begun.append(time.thread_time())  # under numba's lock of compilations

    def on_end(self, event: event.Event) -> None:
        begun = self._begun.pop()
        if not self._begun:
            self.seconds.append(time.thread_time() - begun)


def compiling(track: Track, *, budgets: int, seeds: int) -> list[Row]:
    """Processor time of all compilations of a whole figure."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = child(__name__, {"dataset": track.dataset, "budgets": budgets, "seeds": seeds}, NUMBA_CACHE_DIR=folder)
    return [
        Row(
            "Compiling for a first figure",
            cpu=f"{sum(seconds):.1f} s",
            wanted="at most 10 s",
            # rows with few zeros, the made-up census too, need no kernels; and a part of the figure is not the figure
            reached=sum(seconds) <= 10 if seconds and seeds == 10 else None,
            notes=(f"{len(seconds)} kernels, the longest {max(seconds, default=0):.2f} s.",),
            raw={"seconds": seconds},
        )
    ]


def _compile(dataset: str, budgets: int, seeds: int) -> list[float]:
    with event.install_listener("numba:compile", Compilations()) as found:
        list(attempts(figure(dataset, budgets, seeds).cells()))
    seconds: list[float] = found.seconds
    return seconds


if __name__ == "__main__":
    print(json.dumps(_compile(**json.loads(sys.argv[1]))))
