"""Kills a sweep at random moments, again and again: what was finished stays, and the last call gives the same table.

    python -m benchmarks.kills [--times 200] [--seed 0] [--jobs 2]

A first call is left alone, to see how long one takes. Every other call ends after a random part of that time by SIGKILL,
SIGTERM or Ctrl-C (SIGINT), until `--times` were killed; each goes on where the one before was stopped. It fails where a stored
part was damaged, a traceback was printed, an exit code is another than that of the signal, a process or a half-written file is
left, or the table differs by a byte from that of a call nobody stopped.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FLAGS = "--dataset teaching --mechanisms dp-gd,cms-output,amp --epsilons 0.3,3 --quiet"
CODES = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
ENDING = 3.0  # seconds that a call takes to end after its work is done
PATIENCE = 60.0  # seconds until the processes of a call that was killed are gone


def command(folder: Path, seeds: int, jobs: int, name: str) -> list[str]:
    """One call."""
    out = ["--cache", str(folder / "cache"), "--jobs", str(jobs), "--out", str(folder / name), "--overwrite"]
    return [sys.executable, "-m", "dpviz", "sweep", *FLAGS.split(), "--seeds", str(seeds), *out]


def group(leader: int) -> list[int]:
    """Processes of a session that are alive."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def wait_until_gone(leader: int, name: str) -> None:
    """Waits for the end of all processes of a session; fails where some stay."""
    end = time.monotonic() + PATIENCE
    while left := group(leader):
        assert time.monotonic() < end, f"{name}: processes {left} are left"
        time.sleep(0.1)


def intact(cells: Path, kept: int) -> int:
    """How many parts are stored; fails where one was damaged, or where fewer are there than before."""
    there = len(list(cells.glob("*.cell")))
    assert there >= kept, "a finished part has gone"
    assert not list(cells.glob("*.damaged")), "a stored part was damaged"
    return there


def kill_one(folder: Path, seeds: int, jobs: int, wait: float, number: signal.Signals) -> bool:
    """Starts a call and kills it after `wait` seconds; returns whether it was still at work."""
    one = command(folder, seeds, jobs, "killed.csv")
    call = subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said, _ = call.communicate(timeout=wait)
        assert (call.returncode, said) == (0, b""), said.decode()
        return False
    except subprocess.TimeoutExpired:
        call.send_signal(number)
        sent = time.monotonic()
        said, _ = call.communicate()
    if (call.returncode, said) == (0, b"") and time.monotonic() - sent < ENDING:
        return False  # it had finished when the signal came
    early = call.returncode == -number  # before Python could listen
    assert call.returncode == CODES[number] or early, f"exit code {call.returncode} after {number.name}"
    assert said == b"", said.decode()
    wait_until_gone(call.pid, number.name)
    return True


def attack(times: int, seed: int, jobs: int, folder: Path) -> int:
    """Kills so many calls; returns how many parts were finished by calls that were killed."""
    chance, killed, round_, kept = random.Random(seed), 0, 0, 0
    (folder / "first").mkdir()
    start = time.monotonic()
    subprocess.run(command(folder / "first", 40, jobs, "first.csv"), check=True)
    alone = time.monotonic() - start
    while killed < times:
        seeds = 40 + 10 * round_  # a larger figure once one is finished
        number = chance.choice(list(CODES))
        if kill_one(folder, seeds, jobs, chance.uniform(0.05, 1.1 * alone), number):
            killed += 1
        else:
            round_ += 1
        kept = intact(folder / "cache" / "cells", kept)
    seeds = 40 + 10 * round_
    for name, cache in (("resumed.csv", folder), ("at-once.csv", folder / "fresh")):
        cache.mkdir(exist_ok=True)
        subprocess.run(command(cache, seeds, jobs, name), check=True)
    resumed, at_once = ((folder / name).read_bytes().splitlines() for name in ("resumed.csv", "fresh/at-once.csv"))
    differ = [f"\n  {one.decode()}\n  {other.decode()}" for one, other in zip(resumed, at_once, strict=False) if one != other]
    assert resumed == at_once, f"{len(differ)} of {len(at_once)} lines differ from a call nobody stopped: {''.join(differ[:3])}"
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option, default in (("times", 200), ("seed", 0), ("jobs", 2)):
        parser.add_argument(f"--{option}", type=int, default=default)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as work:
        finished = attack(given.times, given.seed, given.jobs, Path(work))
    print(f"{given.times} calls killed; {finished} parts were finished by them, none was lost, and the table is the same")
