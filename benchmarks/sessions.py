"""Many people at one server: how long each of them waits for a page.

    python -m benchmarks.sessions [--people 30] [--minutes 3] [--seed 0] [--thinks 8] [--processes 1] [--nginx]

Starts the app, and speaks to it as a browser does, over Streamlit's socket: every person opens a page, thinks a few seconds,
moves ε or another control through the address, opens other pages, and comes back after a cut connection. Parts of a page that
draw themselves again (jobs under way) are asked for as a browser would. A wait is the time from a change to the end of the
page's script; a result is the time to the first sentence of the new run, which a job may give later. `--slow` is the share of
people who use the slowest methods on 10,000 rows, and `--thinks` the seconds on average between two changes of a person. It
prints the median, the 95th percentile and the longest wait by kind, every wait above 10 s with its address, errors shown on
pages, processor time for each change, the files and threads of the server before and after, and which of the targets for a class
were reached. `--processes` starts several with one cache; each person stays with one of them, and `--nginx` puts nginx with
`deploy/nginx.conf` in front.
"""

import argparse
import asyncio
import random
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

from benchmarks.servers import LOADED, Server, nginx

FAST = ("output-gaussian", "amp", "dp-gd", "objective-tight", "cms-output")
SLOW = ("dp-agd", "renyi-filter", "bassily-sgd")
DATASETS = ("teaching", "breast-cancer", "census-2000")
PAGES = ("Person", "Trade-off", "Accounting", "Sensitivity", "Data", "Guarantees", "Audit")
SENTENCE = re.compile(r" at ε\xa0\\=\xa0(\d+\.?\d*)")  # the answer of a first page
LONG = 10.0  # seconds above which a wait is printed by itself
PATIENCE = 120.0  # seconds after which a page counts as lost
CLASS, LATE, CROWD = 30, 1.0, 3.0  # seconds for 95 % of waits, up to a class and above it
MOST = 1536  # megabytes of all processes at most


@dataclass
class Waits:
    """Measurements of all sessions: seconds by kind of change until the page's script had ended, and until its result; errors."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    results: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # until the sentence of the new run
    errors: list[str] = field(default_factory=list)
    long: list[str] = field(default_factory=list)  # kind, seconds and address of those above `LONG`
    cuts: int = 0
    kept: int = 0  # connections that were cut and found their session again


def epsilon(query: dict[str, str]) -> float:
    """The budget in an address."""
    return float(query.get("epsilon", "1"))


class Person:
    """One session, as a browser would lead it."""

    def __init__(self, address: str, chance: random.Random, waits: Waits, slow: bool, thinks: float) -> None:
        self._address, self._chance, self._waits, self._slow, self._thinks = address, chance, waits, slow, thinks
        self._query: dict[str, str] = {}
        self._page, self._session, self._known = "", "", ""
        self._own_address = f"127.0.{chance.randrange(256)}.{chance.randrange(1, 255)}"
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._shown_epsilon: float | None = None  # the budget that the first sentence of a first page speaks of
        self._again: dict[str, asyncio.Task[None]] = {}

    async def live(self, until: float) -> None:
        """Comes, uses the app, and leaves."""
        await self._connect()
        try:
            await self._change(
                "opened", {"dataset": "census-10000", "mechanism": self._chance.choice(SLOW)} if self._slow else {}
            )
            while time.monotonic() < until:
                await asyncio.sleep(self._chance.expovariate(1 / self._thinks))
                await self._next()
        finally:
            await self._leave()

    async def _next(self) -> None:
        chance = self._chance.random()
        moved = f"{self._chance.choice(range(2, 60)) / 10:g}"
        if chance < 0.03:
            await self._cut()
        elif self._page and chance < 0.5:
            self._page = ""
            await self._change("back to the first page", self._query)
        elif chance < 0.7:
            await self._change("ε, slow method" if self._slow else "ε", self._query | {"epsilon": moved})
        elif chance < 0.85:
            method = self._chance.choice(SLOW if self._slow else FAST)
            data = "census-10000" if self._slow else self._chance.choice(DATASETS)
            await self._change(
                "method, slow one" if self._slow else "method", {"mechanism": method, "dataset": data, "epsilon": moved}
            )
        else:
            self._page = self._chance.choice(PAGES)
            await self._change(f"page {self._page}" + (", slow method" if self._slow else ""), self._query)

    async def _change(self, kind: str, query: dict[str, str]) -> None:
        moved, self._query = query != self._query, query
        self._stop_asking()
        start = time.monotonic()
        self._over.clear()
        self._shown_epsilon = None
        await self._ask(moved=moved)
        try:
            await asyncio.wait_for(self._over.wait(), PATIENCE)
        except TimeoutError:
            self._waits.errors.append(f"{kind}: no page after {PATIENCE:g} s ({self._query})")
        seconds = time.monotonic() - start
        self._waits.seconds[kind].append(seconds)
        try:
            async with asyncio.timeout(PATIENCE):
                while self._shown_epsilon not in (None, epsilon(query)):  # what was there before, paler, while a job is at work
                    self._over.clear()
                    await self._over.wait()
        except TimeoutError:
            self._waits.errors.append(
                f"{kind}: no result after {PATIENCE:g} s ({self._query}), but that of ε = {self._shown_epsilon}"
            )
        if self._shown_epsilon is not None:
            name = "result of a slow method" if query.get("mechanism") in SLOW else "result of a fast method"
            self._waits.results[name].append(time.monotonic() - start)
        if seconds > LONG:
            self._waits.long.append(f"{seconds:.1f} s, {kind}: /{self._page}?{urlencode(query)}")

    async def _ask(self, fragment: str = "", moved: bool = False) -> None:
        message = BackMsg()
        message.rerun_script.query_string = urlencode(self._query)
        message.rerun_script.page_name = self._page
        message.rerun_script.fragment_id = fragment
        message.rerun_script.is_auto_rerun = bool(fragment)
        message.rerun_script.is_history_navigation = moved  # else an address that was there before is taken for a late one
        if self._socket is not None:
            await self._socket.send(message.SerializeToString())

    async def _connect(self) -> None:
        known = [Subprotocol(text) for text in ("streamlit", "PLACEHOLDER", self._session) if text]
        self._socket = await connect(
            self._address.replace("http", "ws") + "/_stcore/stream",
            origin=Origin("/".join(self._address.split("/")[:3])),
            local_addr=(self._own_address, 0),  # by which nginx knows a person again
            subprotocols=known,
            max_size=None,
            proxy=None,
            ping_interval=None,
            open_timeout=PATIENCE,
        )
        self._reader = asyncio.create_task(self._read(self._socket))

    async def _read(self, stream: ClientConnection) -> None:
        try:
            async for payload in stream:
                message = ForwardMsg()
                message.ParseFromString(bytes(payload) if not isinstance(payload, str) else payload.encode())
                self._heard(message)
        except ConnectionClosed:
            pass

    def _heard(self, message: Any) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            if not message.metadata.run.fragment_ids:
                self._stop_asking()
            came = message.new_session.initialize.session_id
            if self._session and came == self._session:
                self._waits.kept += 1
            self._session = ""  # as a browser does, once it has the session again
            self._known = came
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            sentence = SENTENCE.search(message.delta.new_element.markdown.body)
            if sentence and not self._page:
                self._shown_epsilon = float(sentence[1])
            if message.delta.new_element.WhichOneof("type") == "exception":
                self._waits.errors.append(f"{message.delta.new_element.exception.message[:200]} ({self._query} {self._page})")
        elif kind == "page_info_changed":
            written = dict(parse_qsl(message.page_info_changed.query_string))
            if epsilon(written) == epsilon(self._query):  # else it is of the run before
                self._query = written
        elif kind == "auto_rerun":
            part, every = message.auto_rerun.fragment_id, message.auto_rerun.interval
            if part not in self._again:
                self._again[part] = asyncio.create_task(self._repeat(part, every))
        elif kind == "stop_auto_rerun":
            for part in message.stop_auto_rerun.fragment_ids:
                if part in self._again:
                    self._again.pop(part).cancel()
        elif kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
            self._over.set()

    def _stop_asking(self) -> None:
        for task in self._again.values():
            task.cancel()
        self._again.clear()

    async def _repeat(self, part: str, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            await self._ask(part)

    async def _cut(self) -> None:
        """The connection breaks, and the browser connects again a moment later."""
        self._waits.cuts += 1
        known = self._known
        await self._leave()
        self._session = known
        await asyncio.sleep(self._chance.uniform(0.5, 5.0))
        await self._connect()
        await self._change("after a cut connection", self._query)

    async def _leave(self) -> None:
        self._stop_asking()
        if self._socket is not None:
            await self._socket.close()
        if self._reader is not None:
            await self._reader


async def visit(addresses: Sequence[str], people: int, seconds: float, seed: int, slow: float, thinks: float) -> Waits:
    """So many people for so long; they come within the first quarter of the time."""
    chance, waits = random.Random(seed), Waits()
    until = time.monotonic() + seconds

    async def one(k: int) -> None:
        person = Person(addresses[k % len(addresses)], random.Random(chance.random()), waits, k < slow * people, thinks)
        await asyncio.sleep(chance.uniform(0, seconds / 4))
        await person.live(until)

    await asyncio.gather(*(one(k) for k in range(people)))
    return waits


def line(name: str, seconds: Sequence[float]) -> str:
    """One line of the table."""
    middle, late = np.quantile(seconds, [0.5, 0.95])
    return f"{name:45}{len(seconds):7}{middle:8.2f}{late:8.2f}{max(seconds):8.2f}"


def report(waits: Waits) -> None:
    """The table."""
    print(f"{'waits in seconds':45}{'number':>7}{'median':>8}{'95 %':>8}{'worst':>8}")
    for kind, seconds in sorted(waits.seconds.items()):
        print(line(kind, seconds))
    print(line("all", [s for seconds in waits.seconds.values() for s in seconds]))
    for kind, seconds in sorted(waits.results.items()):
        print(line(kind, seconds))
    print(f"{waits.cuts} connections cut, {waits.kept} found their session again; {len(waits.errors)} errors")
    for text in waits.long:
        print(f"  {text}")
    for error in waits.errors[:10]:
        print(f"  {error}")


def targets(people: int, waits: Waits, peak: int) -> None:
    """The targets for a class that were reached.

    Args:
        peak: megabytes of all processes at most.
    """
    every = [s for seconds in waits.seconds.values() for s in seconds]
    late, most = float(np.quantile(every, 0.95)), CROWD if people > CLASS else LATE
    rows = [("95 % of waits, s", late, most)]
    rows += [("errors", len(waits.errors), 0), ("cut connections that lost their session", waits.cuts - waits.kept, 0)]
    rows += [("megabytes at most", peak, MOST)]
    for name, value, limit in rows:
        print(f"{name:45}{value:8.4g} of at most {limit:g}: {'reached' if value <= limit else 'NOT REACHED'}")


def main(given: argparse.Namespace, work: Path, servers: Sequence[Server], addresses: Sequence[str]) -> None:
    """Measures and prints."""
    time.sleep(LOADED)
    print(f"before any session: {[server.counted() for server in servers]}", flush=True)
    before = sum(server.processor_seconds() for server in servers)
    waits = asyncio.run(visit(addresses, given.people, 60 * given.minutes, given.seed, given.slow, given.thinks))
    report(waits)
    peak = sum(server.peak() for server in servers)  # a server that starts anew counts from there
    took, changes = sum(server.processor_seconds() for server in servers) - before, sum(map(len, waits.seconds.values()))
    print(f"{took:.0f} s of processor time for {changes} changes: {took / changes:.3f} s each, with background work")
    print(f"at the end: {[server.counted() for server in servers]}", flush=True)
    _, *tracebacks = "".join(path.read_text(errors="replace") for path in work.glob("log*")).split("Traceback")
    print(f"the logs have {len(tracebacks)} tracebacks")
    for text in tracebacks[:3]:
        print(f"  Traceback{text[-1500:]}")
    targets(given.people, waits, peak)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option, default in (("people", 30), ("seed", 0), ("processes", 1)):
        parser.add_argument(f"--{option}", type=int, default=default)
    for option, value in (("minutes", 3.0), ("slow", 0.2), ("thinks", 8.0)):
        parser.add_argument(f"--{option}", type=float, default=value)
    parser.add_argument("--nginx", action="store_true")
    given = parser.parse_args()
    with ExitStack() as held:
        work = Path(held.enter_context(tempfile.TemporaryDirectory()))
        servers = []
        for k in range(given.processes):
            servers.append(Server(work, f"log{k}", "dpviz" if given.nginx else ""))
            held.callback(servers[-1].stop)
        print(f"processes of the app: {', '.join(str(server.process) for server in servers)}", flush=True)
        main(
            given, work, servers, [held.enter_context(nginx(work, servers))] if given.nginx else [one.address for one in servers]
        )
