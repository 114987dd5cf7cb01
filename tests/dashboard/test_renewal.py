"""A server that has grown starts anew when all sessions ended, and only then: real processes, and browsers that speak sockets."""

import asyncio
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import until

from dpviz.dashboard.frame import private, renewal

pytest.importorskip("websockets")
from benchmarks import sessions
from benchmarks.servers import Server

#: the app with a short patience; it keeps memory as soon as a session is there, and counts its starts
APP = """
import threading, time
from dpviz.dashboard.frame import renewal, server, session
session.LINGER, session.PAUSE, session._TICK = 8.0, 1.5, 0.3
renewal.QUIET, server.LATER = 3.0, 0.0
open("starts", "a").write("x")
started = renewal.started
def after():
    started()
    open("ready", "a").write("x")
    while not session._visits:
        time.sleep(0.1)
    renewal.kept = b"x" * GROWTH
    if BUSY:
        from dpviz.dashboard.jobs.job import Job
        from dpviz.dashboard.jobs.pool import pool
        def work(monitor):
            while not __import__("os").path.exists("done"):
                time.sleep(0.1)
            yield None
        pool().submit(Job("busy", work), "somebody")
renewal.started = after
from dpviz.cli.start import main
raise SystemExit(main())
"""


class Grown(Server):
    def __init__(self, folder: Path, growth: int, busy: bool = False) -> None:
        code = APP.replace("GROWTH", str(growth)).replace("BUSY", str(busy))
        super().__init__(folder, start=("-c", code))
        self.folder = folder
        until((folder / "ready").exists, "all libraries")

    def starts(self) -> int:
        return len((self.folder / "starts").read_text())

    def visit(self, stay: float, *, cut: bool = False) -> None:
        """A person comes, stays, may lose the connection and come back after two seconds, and leaves."""

        async def live() -> None:
            waits = sessions.Waits()
            person = sessions.Person(self.address, random.Random(0), waits, False, 1.0)
            await person._connect()
            await person._change("opened", {"dataset": "teaching", "seeds": "2"})
            await asyncio.sleep(stay)
            if cut:
                await person._cut()
                assert waits.kept == 1
            await person._leave()
            assert not waits.errors

        with ThreadPoolExecutor(1) as apart:  # a browser of another test runs a loop in this thread
            apart.submit(asyncio.run, live()).result()


def test_a_server_that_cannot_start_anew_serves_on_and_waits_before_it_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def gone(*command: object) -> None:
        tried.append(private._SOCKET in os.environ)
        raise FileNotFoundError

    monkeypatch.setattr(private.os, "execv", gone)
    monkeypatch.setattr(renewal, "_asked", -renewal.QUIET)
    with socket.socket() as listening:
        monkeypatch.setattr(private, "_listening", listening)
        renewal.renew()
        renewal.renew()
    assert tried == [True]
    assert private._SOCKET not in os.environ, "a program that this one starts would take it for its own"


@pytest.fixture
def servers() -> Iterator[list[Grown]]:
    made: list[Grown] = []
    yield made
    for one in made:
        one.stop()


@pytest.mark.long
def test_a_server_that_has_grown_starts_anew_when_it_is_empty(tmp_path: Path, servers: list[Grown]) -> None:
    server = Grown(tmp_path, 2 * renewal.GROWN)
    servers.append(server)
    process = server.process
    server.visit(13.0, cut=True)  # longer than all patience together
    assert server.starts() == 1
    refused = []

    def connects() -> None:
        while server.starts() == 1 or len((tmp_path / "ready").read_text()) == 1:
            with socket.socket() as probe:
                refused.append(probe.connect_ex(("127.0.0.1", int(server.address.rpartition(":")[2].strip("/")))))
            time.sleep(0.05)

    people = threading.Thread(target=connects)
    people.start()
    until(lambda: server.starts() == 2, "the new start")
    server.visit(0.0)  # waits until it listens
    people.join()
    assert server.process == process
    assert set(refused) == {0}
    assert server.counted()["megabytes"] > 50


@pytest.mark.long
@pytest.mark.parametrize(("growth", "busy"), [(0, False), (2 * renewal.GROWN, True)])
def test_a_server_with_a_job_or_without_growth_stays(tmp_path: Path, servers: list[Grown], growth: int, busy: bool) -> None:
    server = Grown(tmp_path, growth, busy)
    servers.append(server)
    server.visit(0.0)
    time.sleep(16.0)  # LINGER, QUIET and more
    assert server.starts() == 1
    if busy:
        (tmp_path / "done").touch()
        until(lambda: server.starts() == 2, "the new start")
