"""Kills a sweep at random moments, again and again: what was finished stays, and the last call gives the same table.

    python -m benchmarks.kills [--times 200] [--seed 0] [--jobs 2]

Every call ends after a random time by SIGKILL, SIGTERM or Ctrl-C (SIGINT), until `--times` were killed; each goes on where the
one before was stopped. It fails where a stored part was damaged, a traceback was printed, an exit code is another than that of
the signal, a process or a half-written file is left, or the table differs by a byte from that of a call nobody stopped.
"""

from __future__ import annotations

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
PATIENCE = 60.0  # seconds until the processes of a call that was killed are gone


def command(folder: Path, seeds: int, jobs: int, name: str) -> list[str]:
    """One call."""
    out = ["--cache", str(folder / "cache"), "--jobs", str(jobs), "--out", str(folder / name)]
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


def kill_one(folder: Path, seeds: int, jobs: int, wait: float, number: signal.Signals) -> bool:
    """Starts a call and kills it after `wait` seconds; returns whether it was still at work."""
    call = subprocess.Popen(command(folder, seeds, jobs, "killed.csv"), stderr=subprocess.PIPE, start_new_session=True)
    try:
        _, said = call.communicate(timeout=wait)
        assert (call.returncode, said) == (0, b""), said.decode()
        return False
    except subprocess.TimeoutExpired:
        call.send_signal(number)
        _, said = call.communicate()
    early = call.returncode == -number  # before Python could listen
    assert call.returncode == CODES[number] or early, f"exit code {call.returncode} after {number.name}"
    assert said == b"", said.decode()
    end = time.monotonic() + PATIENCE
    while left := group(call.pid):
        assert time.monotonic() < end, f"{number.name}: processes {left} are left"
        time.sleep(0.1)
    return True


def attack(times: int, seed: int, jobs: int, folder: Path) -> int:
    """Kills so many calls; returns how many parts were finished by calls that were killed."""
    chance, killed, round_, kept = random.Random(seed), 0, 0, 0
    while killed < times:
        seeds = 40 + 10 * round_  # a larger figure once one is finished
        number = chance.choice(list(CODES))
        if kill_one(folder, seeds, jobs, chance.uniform(0.05, 6.0), number):
            killed += 1
        else:
            round_ += 1
        cells = len(list((folder / "cache" / "cells").glob("*.cell")))
        assert cells >= kept, "a finished part has gone"
        assert not list((folder / "cache" / "cells").glob("*.damaged")), "a stored part was damaged"
        kept = cells
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
