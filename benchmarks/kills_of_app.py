"""Kills the app while people use it, again and again: its server, the processes it starts, and the connections of browsers.

    python -m benchmarks.kills_of_app [--times 200] [--seed 0]

A few people at a server look at pages, move ε, start sweeps and read a table of the data folder. At random moments one process
that the server has started is killed, or all connections break, twice for each server; then the server itself by SIGKILL,
SIGTERM or Ctrl-C (SIGINT), and the next one starts in the same folders. It fails where a page shows an error of the program or
stays away, the log holds a traceback, the exit code is another than that of the signal, a process or a half-written file is left,
or a stored part of a sweep was damaged or has gone.
"""

import argparse
import asyncio
import os
import random
import signal
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
from websockets.exceptions import WebSocketException

from benchmarks.kills import group, intact, wait_until_gone
from benchmarks.servers import Server
from benchmarks.sessions import Person, Waits

PEOPLE = 3
CODES = {signal.SIGKILL: -9, signal.SIGTERM: 0, signal.SIGINT: 0}  # the app stops serving, which is no failure
STARTED, CUT = "a started process", "all connections"


async def use(server: Server, chance: random.Random, waits: Waits) -> Counter[str]:
    """People at work, two disturbances at random moments, and a last look at whether pages still come; what was disturbed."""
    met: Counter[str] = Counter()
    end = time.monotonic() + 600.0
    people = [Visitor(server.address, random.Random(chance.random()), waits) for _ in range(PEOPLE)]
    tasks = [asyncio.create_task(person.live(end)) for person in people]
    for _ in range(2):
        await asyncio.sleep(chance.uniform(0.3, 4.0))
        if chance.random() < 0.5 and (started := await processes(server)):
            await asyncio.sleep(chance.uniform(0.0, 0.4))
            with suppress(ProcessLookupError):  # it had ended by itself
                os.kill(chance.choice(started), signal.SIGKILL)
                met[STARTED] += 1
        else:
            await asyncio.gather(*(person.cut() for person in people))
            met[CUT] += 1
    await asyncio.sleep(chance.uniform(0.3, 4.0))
    for task in tasks:
        task.cancel()
    for told in await asyncio.gather(*tasks, return_exceptions=True):
        # a person is cancelled, or met the connection that was broken under them
        assert told is None or isinstance(told, asyncio.CancelledError | WebSocketException), told
    last = Visitor(server.address, chance, waits)
    await last.look()
    return met


async def processes(server: Server) -> list[int]:
    """What the server has started, once there is something; nothing after 15 seconds."""
    for _ in range(300):
        if started := [process for process in group(server.process) if process != server.process]:
            return started
        await asyncio.sleep(0.05)
    return []


class Visitor(Person):
    """A person who also reads a table of the data folder and starts sweeps."""

    def __init__(self, address: str, chance: random.Random, waits: Waits) -> None:
        super().__init__(address, chance, waits, slow=False, thinks=0.7)

    async def _next(self) -> None:
        drawn = self._chance.random()
        if drawn < 0.2:
            os.utime(Path(os.environ["DPVIZ_DATA"]) / "own.csv")  # a file that has changed is read anew
            await self._change("own table", {"dataset": "data/own.csv", "epsilon": f"{self._chance.randint(1, 90) / 10:g}"})
        elif drawn < 0.4:
            self._page = "Trade-off"
            await self._change("sweep", {"dataset": "teaching", "seeds": str(self._chance.randint(2, 30))})
        else:
            await super()._next()

    async def cut(self) -> None:
        """Breaks the connection without a word, and comes back."""
        if self._socket is not None:
            self._socket.transport.abort()
            self._session = self._known
            await self._connect()
            await self._ask()

    async def look(self) -> None:
        """Comes, sees one page, and goes."""
        await self._connect()
        await self._change("after all", {})
        await self._leave()


def attack(times: int, seed: int, folder: Path) -> Counter[str]:
    """Kills and cuts so often; returns how often what was."""
    chance, met, kept, waits = random.Random(seed), Counter[str](), 0, Waits()
    while met.total() < times:
        server = Server(folder)
        met += asyncio.run(use(server, chance, waits))
        number = chance.choice(list(CODES))
        code = server.kill(number)
        met[f"the server by {number.name}"] += 1
        said = (folder / "log").read_text(errors="replace")
        assert code == CODES[number], f"exit code {code} after {number.name}: {said[-3000:]}"
        wait_until_gone(server.process, number.name)
        assert "Traceback" not in said, said[-3000:]
        assert not waits.errors, waits.errors
        kept = intact(folder / "cells", kept)
        print(f"{met.total()}: {dict(met)}, {kept} parts", flush=True)
    return met


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        data = Path(work) / "tables"
        data.mkdir()
        rows = np.random.default_rng(0).standard_normal((3000, 4))
        lines = [",".join(f"{value:.4f}" for value in row) + ("," + ("yes" if row[0] > row[1] else "no")) for row in rows]
        (data / "own.csv").write_text("\n".join(["a,b,c,d,label", *lines]) + "\n")
        os.environ["DPVIZ_DATA"] = str(data)
        print(f"killed or cut: {dict(attack(given.times, given.seed, Path(work)))}; nothing was lost or left")
