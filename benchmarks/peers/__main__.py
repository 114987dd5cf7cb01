"""Compares dpviz with its peers in one run and prints a table of ratios.

    python -m benchmarks.peers [--data FOLDER] [--out FILE] [--quick] [--only PART ...]

The first run makes a virtual environment for each peer. Contestants take turns; a ratio is the median of the rounds'
ratios, with its range. Both sides may use all threads; a peer uses as many, and the solver, that make it fastest.
"""

import argparse
import contextlib
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

_there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
os.environ.setdefault("OMP_NUM_THREADS", str(_there))  # before numpy looks

import numpy as np  # noqa: E402

from benchmarks.peers import races  # noqa: E402
from benchmarks.peers.compiling import compiling  # noqa: E402
from benchmarks.peers.environments import Peer, Unavailable, start  # noqa: E402
from benchmarks.peers.measure import Row, markdown  # noqa: E402
from benchmarks.peers.rows import Track, track  # noqa: E402
from benchmarks.peers.whole_figure import whole_figure  # noqa: E402
from dpviz.common.files import cache_folder  # noqa: E402
from dpviz.common.threads import processors  # noqa: E402
from dpviz.common.validate import InvalidInput  # noqa: E402

PARTS = ("dp-sgd", "mlp", "objective", "figure", "compiling")


def main(arguments: list[str] | None = None) -> int:
    """Runs the parts asked for; 1 where a peer cannot be had or a figure is not reached."""
    options = _parser().parse_args(arguments)
    rows: list[Row] = []
    failed = False
    versions: dict[str, str] = {}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        try:
            raced = track(options.data, Path(folder), 10_000 if options.quick else 48_842)
        except InvalidInput as problem:
            print(problem, file=sys.stderr)
            return 2
        started: dict[str, Peer] = {}

        def peer(name: str) -> Peer:
            if name not in started:
                started[name] = stack.enter_context(start(name, options.environments, raced.arrays, processors()))
                versions.update({f"{name}: {k}": v for k, v in started[name].versions.items()})
            return started[name]

        for part in options.only or PARTS:
            print(f"{part} ...", file=sys.stderr, flush=True)
            begun = time.perf_counter()
            try:
                rows += _part(part, raced, peer, quick=options.quick)
            except Unavailable as problem:
                failed = True
                rows.append(Row(f"{part}: not measured", notes=(str(problem),)))
            print(f"{part}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
            head = _head(raced, versions, load, quick=options.quick)
            if options.out:  # after each part, so that an interrupted run leaves what it measured
                _write(options.out, head, rows, versions)
        print(head + "\n" + markdown(rows))
    return int(failed or (not options.quick and any(row.reached is False for row in rows)))


def _write(path: Path, head: str, rows: list[Row], versions: dict[str, str]) -> None:
    """The table as Markdown, and as JSON with all that was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text(head + "\n" + markdown(rows), encoding="utf-8")
    content = {"head": head, "versions": versions, "rows": [asdict(row) for row in rows]}
    path.with_suffix(".json").write_text(json.dumps(content, indent=1, default=float), encoding="utf-8")


def _part(part: str, raced: Track, peer: Callable[[str], Peer], *, quick: bool) -> list[Row]:
    rounds = 2 if quick else 5
    if part == "dp-sgd":
        epochs = 2.0 if quick else 20.0
        return races.opacus(
            raced, peer("opacus"), processors(), model="logistic", batch=1_000 if quick else 4_000, epochs=epochs, rounds=rounds
        )
    if part == "mlp":
        epochs, rounds = (0.5, 1) if quick else (5.0, 2)
        return races.opacus(raced, peer("opacus"), processors(), model="mlp", batch=1_024, epochs=epochs, rounds=rounds)
    if part == "objective":
        defaults = races.at_defaults(raced, peer("scikit-learn"), rounds)
        return defaults + races.diffprivlib(raced, peer("diffprivlib"), processors(), rounds)
    size = {"budgets": 3, "seeds": 2} if quick else {"budgets": 10, "seeds": 10}
    if part == "figure":
        more = {**size, "repeats": 1 if quick else 3}
        return [row for papers in (False, True) for row in whole_figure(raced, peer("scikit-learn"), **more, papers=papers)]
    return compiling(raced, **size)


def _head(raced: Track, versions: dict[str, str], load: float, *, quick: bool) -> str:
    used = processors()
    lines = [
        "# dpviz beside its peers",
        "",
        f"{time.strftime('%Y-%m-%d')}, at most {used} threads for each side, Python {platform.python_version()}, "
        f"numpy {np.__version__}.",
        f"Data: {raced.words}.",
        f"Peers: {', '.join(f'{k} {v}' for k, v in versions.items()) or 'none'}.",
        "A ratio is the median of rounds in which both sides take turns, with its range; × is how many times faster dpviz is.",
    ]
    if quick:
        lines.append("**Quick run: smaller tasks, so these ratios are not the ones to reach.**")
    if load > 0.5:
        lines.append(f"**The machine was busy before (load {load:.1f}): wall times are unsure, CPU times less so.**")
    return "\n".join(lines) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    real = os.environ.get("DPVIZ_REAL_DATA")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        default=Path(real) if real else None,
        help="a folder with UCI's adult.data and adult.test, with header lines (default: DPVIZ_REAL_DATA, else a made-up census)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write FILE.md and FILE.json too")
    parser.add_argument("--quick", action="store_true", help="smaller tasks and fewer rounds, to see that all runs")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"some of: {', '.join(PARTS)}")
    parser.add_argument(
        "--environments", type=Path, metavar="FOLDER", default=cache_folder() / "peers", help="where the peers are installed"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
